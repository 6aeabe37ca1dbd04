//! Keys from files: what signs a card, what the planner makes of it, and what is said of a file that is no key.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use testing::{Program as Agent, programs, skip};

fn planner(arguments: &[&str]) -> std::process::Output {
    Command::new(programs().join("planner")).args(arguments).output().unwrap()
}

/// A fresh ES256 key: the file's bytes as DER and as PEM.
fn signing_key() -> (Vec<u8>, String) {
    use base64::Engine;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &ring::rand::SystemRandom::new());
    let der = made.unwrap().as_ref().to_vec();
    let text = base64::prelude::BASE64_STANDARD.encode(&der);
    let (first, second) = text.split_at(64);
    (der, format!("-----BEGIN PRIVATE KEY-----\n{first}\n{second}\n-----END PRIVATE KEY-----\n"))
}

#[test]
fn w14_a_key_from_a_file_signs_beside_the_kits_and_is_in_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let (der, pem) = signing_key();
    for (name, bytes) in [("key.der", der.as_slice()), ("key.pem", pem.as_bytes())] {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let mut agent = Command::new(programs().join("deployer"))
            .args(["--listen", "127.0.0.1:0", "--store", "memory", "--log", "trace", "--signing-key"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("localhost:").last().unwrap().split('/').next().unwrap().to_owned();
        let read = |path: &str| {
            let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{address}")).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.split_once("\r\n\r\n").unwrap().1.to_owned()
        };
        let card: serde_json::Value = serde_json::from_str(&read("/.well-known/agent-card.json")).unwrap();
        let mut keys = signature::jwks::read(read("/.well-known/jwks.json").as_bytes()).unwrap();
        keys.push(signature::Key::hs256("deployer-key-1", b"manual-demo-signing-key-not-for-production"));
        let checked = signature::check(&card, &keys);
        let found: Vec<_> = checked.iter().map(|checked| checked.result.unwrap()).collect();
        use signature::Form::{Served, Specification, WithoutEmpty};
        assert_eq!(found, [Served, Specification, WithoutEmpty]);
        let killed = Command::new("kill").args(["-TERM", &agent.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let mut log = String::new();
        agent.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        agent.wait().unwrap();
        let secret = pem.lines().nth(1).unwrap();
        assert!(log.contains("deployer recites") && !log.contains(secret), "{log}");
    }
}

#[test]
fn w14_a_key_file_that_is_none_ends_the_start_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let start = |name: &str, content: Option<&str>| {
        let file = folder.path().join(name);
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let mut agent = Command::new(programs().join("test-runner"));
        let output =
            agent.args(["--listen", "127.0.0.1:0", "--store", "memory", "--signing-key"]).arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty(), "it does not say that it is ready");
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.starts_with(&format!("--signing-key {}: ", file.display())), "{words}");
        words
    };
    let make = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out";
    let missing = start("missing.pem", None);
    assert!(missing.contains("No such file") && missing.contains(make), "{missing}");
    let words = start("text.pem", Some("no key, but secret all the same"));
    assert!(words.contains("not a PKCS#8 private key on the curve P-256") && words.contains(make), "{words}");
    assert!(!words.contains("secret all the same"), "{words}");
    for label in ["EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
        let words = start("other.pem", Some(&format!("-----BEGIN {label}-----\nAA==\n-----END {label}-----\n")));
        assert!(words.contains("openssl pkcs8 -topk8 -nocrypt -in"), "{words}");
    }
}

#[test]
fn w14_the_planner_says_which_signatures_of_a_card_hold() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let key = file("key.pem", &signing_key().1);
    let verify = |url: &str, more: &[&str]| {
        let output = planner(&[&["card", url, "--verify"], more].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };

    let unsigned = Agent::start("test-runner");
    let (code, out, error) = verify(&unsigned.url, &[]);
    assert_eq!((code, error.as_str()), (1, "the card is not signed\n"));
    assert!(out.starts_with("test-runner ") && out.contains("\n  streams, posts to webhooks\n"), "{out}");

    let with_demo_key = Agent::start("deployer");
    let (code, out, error) = verify(&with_demo_key.url, &[]);
    assert_eq!((code, error.as_str()), (1, "no signature of the card holds\n"));
    assert!(out.contains("signature 1, HS256 with the key deployer-key-1: not checked: it does not say"), "{out}");
    let secret =
        r#"{"kty": "oct", "kid": "deployer-key-1", "k": "bWFudWFsLWRlbW8tc2lnbmluZy1rZXktbm90LWZvci1wcm9kdWN0aW9u"}"#;
    let secret = file("demo.json", secret);
    let (code, out, _) = verify(&with_demo_key.url, &["--jwks", &secret]);
    assert!(code == 0 && out.ends_with(": holds, over the card as it is served\n"), "{out}");

    let signed = Agent::start_with("deployer", &["--signing-key", &key]);
    let keys = format!("{}/.well-known/jwks.json", signed.url);
    let (code, out, error) = verify(&signed.url, &[]);
    assert_eq!((code, error.as_str()), (0, ""));
    let held: Vec<_> = out.lines().filter(|line| line.contains(": holds, over ")).collect();
    assert_eq!(held.len(), 2, "{out}");
    assert!(held[0].ends_with(&format!("the form of specification 8.4.1, with the key of {keys}")), "{out}");
    let (code, out, _) = verify(&signed.url, &["--jwks", &keys, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let holds: Vec<_> = json["signatures"].as_array().unwrap().iter().map(|seal| seal["holds"].clone()).collect();
    assert_eq!((code, holds), (0, vec![false.into(), true.into(), true.into()]));
    assert_eq!(json["card"]["name"], "deployer");

    let other = file("other.json", &signature::jwks::publish(&[]).to_string());
    let (code, _, error) = verify(&signed.url, &["--jwks", &other]);
    assert!(code == 2 && error.contains("--jwks ") && error.contains("no JSON Web Key that could be read"), "{error}");
    let (code, _, error) = verify(&signed.url, &["--jwks", "http://127.0.0.1:9/keys"]);
    assert!(code == 2 && error.starts_with("--jwks http://127.0.0.1:9/keys: 127.0.0.1:9 does not answer"), "{error}");
    assert_eq!(planner(&["card", &signed.url, "--jwks", &other]).status.code(), Some(2), "--jwks needs --verify");
}

#[test]
fn w14_the_commands_that_are_told_for_a_remedy_make_keys_that_sign() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skip("openssl is not here");
    }
    let folder = tempfile::tempdir().unwrap();
    // In the folder, so that the names in the commands are plain.
    let start = |file: &str| {
        let mut agent = Command::new(programs().join("test-runner"));
        agent.args(["--listen", "127.0.0.1:0", "--store", "memory", "--signing-key", file]).current_dir(&folder);
        agent.output().unwrap()
    };
    let follow = |words: &[u8]| {
        let words = String::from_utf8(words.to_vec()).unwrap();
        let command = words.split('`').nth(1).unwrap_or_else(|| panic!("no command in {words}"));
        let mut told = command.split(' ');
        let done = Command::new(told.next().unwrap()).args(told).current_dir(&folder).output().unwrap();
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    };
    follow(&start("key.pem").stderr);
    let make = ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "old.pem"];
    assert!(Command::new("openssl").args(make).current_dir(&folder).output().unwrap().status.success());
    follow(&start("old.pem").stderr);
    for made in ["key.pem", "pkcs8.pem"] {
        let file = folder.path().join(made);
        let agent = Agent::start_with("test-runner", &["--store", "memory", "--signing-key", file.to_str().unwrap()]);
        assert_eq!(planner(&["card", &agent.url, "--verify"]).status.code(), Some(0), "{made}");
    }
}
