//! Keys, forms and signatures.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use protocol::AgentCard;
use protocol::card::AgentCardSignature;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

use super::{Doubt, Form, Key, SignatureError, canonical, canonical_as_served, check, jwks, verify};

fn card() -> AgentCard {
    serde_json::from_value(json!({
        "name": "deployer", "description": "Deploys.", "version": "1.0.0",
        "supportedInterfaces": [{"url": "http://localhost:1/a2a/jsonrpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": false},
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "defaultInputModes": [], "defaultOutputModes": ["text/plain"], "skills": []
    }))
    .unwrap()
}

fn es256() -> Key {
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    Key::es256_pkcs8("k1", der.as_ref()).unwrap()
}

#[test]
fn w14_hs256_keeps_what_is_served_and_es256_drops_what_is_at_its_default() {
    assert!(canonical_as_served(&card()).unwrap().contains(r#""bearer":{"list":[]}"#));
    let form = canonical(&card()).unwrap();
    assert!(form.contains(r#""bearer":{}"#));
    assert!(form.contains(r#""defaultInputModes":[]"#), "a required member stays");
    assert!(form.contains(r#""streaming":false"#), "an optional member that was set stays");
    assert!(form.starts_with(r#"{"capabilities":"#), "members are sorted");
}

#[test]
fn the_form_of_the_specification_drops_defaults_where_the_proto_has_them_and_nowhere_else() {
    let mut value = serde_json::to_value(card()).unwrap();
    value["skills"] = json!([{
        "id": "s", "name": "s", "description": "", "tags": [], "securityRequirements": [{"schemes": {}}]
    }]);
    value["capabilities"]["extensions"] =
        json!([{"uri": "", "required": false, "params": {"list": [], "scopes": {}, "uri": ""}}]);
    let flow = json!({"scopes": {}});
    value["securitySchemes"] = json!({
        "old": {"oauth2SecurityScheme": {"flows": {"implicit": flow}}},
        "new": {"oauth2SecurityScheme": {"flows": {"clientCredentials": flow}}},
    });
    let form = canonical(&serde_json::from_str(&value.to_string()).unwrap()).unwrap();
    for kept in [
        r#""extensions":[{"params":{"list":[],"scopes":{},"uri":""}}]"#,
        r#""clientCredentials":{"scopes":{}}"#,
        r#""implicit":{}"#,
        r#""skills":[{"description":"","id":"s","name":"s","securityRequirements":[{}],"tags":[]}]"#,
    ] {
        assert!(form.contains(kept), "{kept} in {form}");
    }
}

#[test]
fn canonical_json_sorts_by_utf16_code_units_and_writes_numbers_as_ecmascript_does() {
    let mut extended = card();
    let params = r#"{"\ufb33": 1, "\ud83d\ude00": 2, "\u20ac": 3, "1": 4, "\r": 5, "n": [1e30, 4.50, 2e-3, 1e-27, 333333333.33333329, -0.0], "t": "\u000f\n\"\\\u00e9"}"#;
    let extension = format!(r#"{{"extensions": [{{"uri": "u", "params": {params}}}]}}"#);
    extended.capabilities = serde_json::from_str(&extension).unwrap();
    let expected = concat!(
        r#""params":{"\r":5,"1":4,"n":[1e+30,4.5,0.002,1e-27,333333333.3333333,0],"#,
        "\"t\":\"\\u000f\\n\\\"\\\\\u{e9}\",\"\u{20ac}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}"
    );
    for text in [canonical_as_served(&extended).unwrap(), canonical(&extended).unwrap()] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn w14_the_deployers_card_has_the_signature_that_the_kit_published() {
    let walkthrough = include_str!("../../../scenarios/kit/captures/17-signed-card.txt");
    let payload = walkthrough.lines().nth(1).unwrap();
    let card: AgentCard = serde_json::from_str(payload).unwrap();
    let key = Key::hs256("deployer-key-1", b"manual-demo-signing-key-not-for-production");
    let steps = key.steps(&card).unwrap();
    assert_eq!(steps.payload, payload);
    assert_eq!(steps.header, r#"{"alg":"HS256","typ":"JOSE","kid":"deployer-key-1"}"#);
    assert_eq!(walkthrough.lines().nth(7).unwrap(), steps.signing_input);
    assert_eq!(steps.signature.signature, "yPk834ji_dOVmxElhzV3yTYBT9NVp8Bx1j5K0LQmOww");

    let mut signed = card.clone();
    signed.signatures = vec![steps.signature, es256().sign(&card).unwrap()];
    assert!(verify(&signed, &[key]), "one of two signatures is of a known key");
    let form = canonical(&card).unwrap();
    assert_eq!(form, payload.replace(r#""bearer":{"list":[]}"#, r#""bearer":{}"#));
}

#[test]
fn a_key_is_read_from_pem_as_from_der_and_only_on_its_curve() {
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let text = BASE64_STANDARD.encode(der.as_ref());
    let (first, rest) = text.split_at(64);
    let pem = format!("-----BEGIN PRIVATE KEY-----\r\n{first}\r\n{rest}\r\n-----END PRIVATE KEY-----\r\n");
    let (from_der, from_pem) = (Key::es256_pkcs8("k", der.as_ref()), Key::es256_pkcs8("k", pem.as_bytes()));
    let mut signed = card();
    signed.signatures.push(from_pem.unwrap().sign(&card()).unwrap());
    let from_der = from_der.unwrap();
    assert!(verify(&signed, std::slice::from_ref(&from_der)));
    let published = jwks::publish(&[from_der]).to_string();
    assert!(verify(&signed, &jwks::read(published.as_bytes()).unwrap()));

    let other = &ring::signature::ECDSA_P384_SHA384_FIXED_SIGNING;
    let other = EcdsaKeyPair::generate_pkcs8(other, &SystemRandom::new()).unwrap();
    for wrong in [other.as_ref(), b"", b"-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----"] {
        assert!(matches!(Key::es256_pkcs8("k", wrong), Err(SignatureError::NotAKey)));
    }
}

#[test]
fn a_key_never_shows_its_bytes() {
    let shown = format!("{:?}", Key::hs256("k1", b"secret"));
    assert_eq!(shown, r#"Key { id: "k1", algorithm: "HS256", .. }"#);
}

#[test]
fn a_signed_card_verifies_and_a_changed_one_does_not() {
    for key in [Key::hs256("k1", b"secret"), es256()] {
        let mut signed = card();
        signed.signatures.push(key.sign(&card()).unwrap());
        assert!(verify(&signed, std::slice::from_ref(&key)));
        assert!(!verify(&signed, &[Key::hs256("other", b"secret")]), "an unknown key does not count");
        assert!(!verify(&card(), std::slice::from_ref(&key)), "no signature is no proof");
        signed.description.push_str(" To production.");
        assert!(!verify(&signed, &[key]));
    }
}

#[test]
fn the_header_cannot_choose_the_algorithm() {
    let key = es256();
    let mut forged = card();
    let jwk = key.public_jwk().unwrap();
    let coordinate = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    forged.signatures.push(Key::hs256("k1", &point).sign(&card()).unwrap());
    assert!(!verify(&forged, &[key]));

    // Signed with the right key, under a header that names another algorithm.
    let (key, secret) = (Key::hs256("k1", b"secret"), hmac::Key::new(hmac::HMAC_SHA256, b"secret"));
    let signed_under = |header: &str| {
        let protected = BASE64_URL_SAFE_NO_PAD.encode(header);
        let payload = BASE64_URL_SAFE_NO_PAD.encode(canonical_as_served(&card()).unwrap());
        let signature = hmac::sign(&secret, format!("{protected}.{payload}").as_bytes());
        let mut signed = card();
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        signed.signatures.push(AgentCardSignature { protected, signature, header: None });
        verify(&signed, std::slice::from_ref(&key))
    };
    assert!(signed_under(r#"{"alg":"HS256","kid":"k1"}"#));
    for header in [r#"{"alg":"none","kid":"k1"}"#, r#"{"kid":"k1"}"#, r#"{"alg":"HS256"}"#, "[]", "no json"] {
        assert!(!signed_under(header), "{header}");
    }
}

#[test]
fn w14_a_second_signature_is_made_where_the_public_sdks_sign_another_form() {
    let key = es256().named_by_thumbprint();
    let jku = "http://localhost:1/.well-known/jwks.json";
    let mut signed = card();
    signed.signatures = key.signatures(&card(), Some(jku)).unwrap();
    let value = serde_json::to_value(&signed).unwrap();
    let checked = check(&value, std::slice::from_ref(&key));
    let results: Vec<_> = checked.iter().map(|checked| checked.result).collect();
    assert_eq!(results, [Ok(Form::Specification), Ok(Form::WithoutEmpty)]);
    assert!(checked.iter().all(|checked| checked.jku.as_deref() == Some(jku)));
    assert_eq!(checked[0].key_id.as_deref(), Some(key.id()));

    let mut open = card();
    open.security_requirements.clear();
    open.default_input_modes.push("text/plain".into());
    open.skills = serde_json::from_value(json!([{"id": "s", "name": "s", "description": "d", "tags": ["t"]}])).unwrap();
    assert_eq!(key.signatures(&open, None).unwrap().len(), 1, "both forms are the same text");
    assert_eq!(Key::hs256("k", b"secret").signatures(&card(), None).unwrap().len(), 1);
}

#[test]
fn a_thumbprint_is_that_of_rfc_7638() {
    let key = es256().named_by_thumbprint();
    let jwk = key.public_jwk().unwrap();
    let members = format!(r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#, jwk["x"], jwk["y"]);
    let digest = ring::digest::digest(&ring::digest::SHA256, members.as_bytes());
    assert_eq!(BASE64_URL_SAFE_NO_PAD.encode(digest), key.id());
    assert_eq!(key.clone().named_by_thumbprint().id(), key.id());
    assert_eq!(jwk["d"], Value::Null, "the private half stays here");
}

#[test]
fn each_signature_is_told_of_with_the_reason_why_it_does_not_hold() {
    let (key, other) = (es256(), es256());
    let mut signed = card();
    signed.signatures = vec![key.sign(&card()).unwrap()];
    let mut value = serde_json::to_value(&signed).unwrap();
    let entry = value["signatures"][0].clone();
    let under = |header: &str| {
        let mut entry = entry.clone();
        entry["protected"] = BASE64_URL_SAFE_NO_PAD.encode(header).into();
        entry
    };
    value["signatures"] = json!([
        entry,
        {"protected": "no base64", "signature": ""},
        {"protected": entry["protected"], "signature": "!"},
        under(r#"{"alg":"ES256","kid":"k1","crit":["b64"]}"#),
        under(r#"{"alg":"ES256"}"#),
        under(r#"{"alg":"ES256","kid":"k2"}"#),
        under(r#"{"alg":"ES384","kid":"k1"}"#),
        under(r#"{"alg":"ES256","kid":"k1","typ":"JOSE","x":1}"#),
        7,
    ]);
    let results: Vec<_> = check(&value, &[key]).into_iter().map(|checked| checked.result).collect();
    let doubts = [
        Doubt::Unreadable,
        Doubt::Unreadable,
        Doubt::Critical,
        Doubt::Nameless,
        Doubt::UnknownKey,
        Doubt::OtherAlgorithm,
        Doubt::Different,
        Doubt::Unreadable,
    ];
    assert_eq!(results[0], Ok(Form::Specification));
    assert_eq!(results[1..], doubts.map(Err));
    assert_eq!(check(&value, &[other])[0].result, Err(Doubt::Different));
    assert!(check(&json!({"name": "x"}), &[]).is_empty());
}

#[test]
fn members_that_are_not_known_here_are_part_of_what_was_signed() {
    let key = Key::hs256("k1", b"secret");
    let mut card = serde_json::to_value(card()).unwrap();
    card["lookingGlass"] = json!({"kept": "", "n": null});
    let signed = |card: &Value, form: Form| {
        let protected = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"k1"}"#);
        let input = format!("{protected}.{}", BASE64_URL_SAFE_NO_PAD.encode(form.text(card).unwrap()));
        let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"secret"), input.as_bytes());
        let mut card = card.clone();
        card["signatures"] = json!([{"protected": protected, "signature": BASE64_URL_SAFE_NO_PAD.encode(made)}]);
        card
    };
    for form in Form::ALL {
        let mut signed = signed(&card, form);
        assert_eq!(check(&signed, std::slice::from_ref(&key))[0].result, Ok(form));
        signed["lookingGlass"]["kept"] = "changed".into();
        assert_eq!(check(&signed, std::slice::from_ref(&key))[0].result, Err(Doubt::Different));
    }
    card["nothing"] = Value::Null;
    let text = Form::Specification.text(&card).unwrap();
    assert!(text.contains(r#""lookingGlass":{"kept":"","n":null}"#) && !text.contains("nothing"), "{text}");
}

#[test]
fn a_set_of_keys_is_read_with_what_is_known_of_it() {
    let (first, second) = (es256(), es256().named_by_thumbprint());
    let mut set = jwks::publish(&[first.clone(), Key::hs256("secret", b"secret"), second]);
    assert_eq!(set["keys"].as_array().unwrap().len(), 2, "a secret is not published");
    assert_eq!(set["keys"][0]["use"], "sig");
    let unknown = json!({"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"});
    set["keys"].as_array_mut().unwrap().insert(0, unknown.clone());
    assert_eq!(jwks::read(set.to_string().as_bytes()).unwrap().len(), 2);
    let one = first.public_jwk().unwrap();
    assert_eq!(jwks::read(one.to_string().as_bytes()).unwrap()[0].id(), "k1");
    let mut nameless = one.clone();
    nameless.as_object_mut().unwrap().remove("kid");
    let mut signed = card();
    signed.signatures.push(first.sign(&card()).unwrap());
    assert!(verify(&signed, &jwks::read(nameless.to_string().as_bytes()).unwrap()), "tried whatever its name");
    let secret = json!({"kty": "oct", "k": "c2VjcmV0", "kid": "k1"});
    assert!(jwks::read(secret.to_string().as_bytes()).unwrap()[0].is_secret());
    let with = |member: &str, value: &str| {
        let mut jwk = one.clone();
        jwk[member] = value.into();
        jwk.to_string()
    };
    for (wrong, why) in [
        ("{", "EOF"),
        ("[]", "no member keys"),
        (r#"{"keys": []}"#, "it is empty"),
        (&unknown.to_string(), "the kind AKP is not known"),
        (&with("x", "AAAA"), "x is not 32 bytes long"),
        (&with("y", "?"), "y is no base64url"),
        (&with("alg", "ES384"), "the algorithm ES384"),
        (&with("crv", "P-521"), "the kind EC P-521"),
    ] {
        let error = jwks::read(wrong.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}

#[test]
fn cards_that_the_public_sdks_signed_hold() {
    let python = include_str!("../tests/cards/python-sdk.json");
    let js = include_str!("../tests/cards/js-sdk.json");
    for (text, algorithms) in [(python, vec!["ES256", "ES384", "EdDSA", "RS256"]), (js, vec!["ES256"])] {
        let mut signed: Value = serde_json::from_str(text).unwrap();
        let keys = jwks::read(signed["jwks"].to_string().as_bytes()).unwrap();
        let checked = check(&signed["card"], &keys);
        let found: Vec<_> = checked.iter().map(|checked| checked.algorithm.clone().unwrap()).collect();
        assert_eq!(found, algorithms);
        assert!(checked.iter().all(|checked| checked.result == Ok(Form::WithoutEmpty)), "{checked:?}");
        signed["card"]["version"] = "2.1".into();
        let changed = check(&signed["card"], &keys);
        assert!(changed.iter().all(|checked| checked.result == Err(Doubt::Different)), "{changed:?}");
    }
}
