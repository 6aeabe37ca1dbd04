//! The JSON-RPC envelope: decision W4.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use proptest::prelude::*;
use protocol::call::Call;
use protocol::json::DEPTH;
use protocol::rpc::{self, Answer, Id};
use protocol::{Error, ErrorKind, Method};
use serde_json::value::RawValue;

/// What becomes of a body: `id method params`, or `id code`.
fn read(body: impl AsRef<[u8]>) -> String {
    match rpc::read(body.as_ref()) {
        Ok(request) => {
            let params = request.params.map_or("-", RawValue::get);
            format!("{} {} {params}", request.id.json(), request.method)
        }
        Err(refusal) => format!("{} {}", refusal.id.json(), refusal.error.kind().code()),
    }
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[test]
fn w04_an_id_is_a_text_an_integer_or_null_and_comes_back_as_it_was() {
    for id in [
        "7",
        r#""7""#,
        "0",
        "-7",
        "1152921504606846976",
        "9223372036854775808",
        "18446744073709551616",
        "null",
        r#""""#,
        r#""a b\n\"\u00e9""#,
        r#""é🦀""#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"GetTask","params":{{"id":"t"}}}}"#);
        assert_eq!(read(body), format!(r#"{id} GetTask {{"id":"t"}}"#));
    }
    for id in ["1.5", "1.0", "1e3", "true", "{}", "[]", "[1]", r#""\ud800""#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"GetTask"}}"#);
        assert_eq!(read(body), "null -32600", "{id}");
    }
    assert_eq!(read(r#"{"jsonrpc":"2.0","method":"GetTask"}"#), "null GetTask -");
}

#[test]
fn w04_what_is_no_request_is_refused_with_the_id_if_it_could_be_read() {
    for (body, outcome) in [
        ("{}", "null -32600"),
        ("[]", "null -32600"),
        ("null", "null -32600"),
        ("7", "null -32600"),
        (r#""x""#, "null -32600"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"},{"jsonrpc":"2.0","id":2,"method":"GetTask"}]"#, "null -32600"),
        (r#"["2.0",1,"GetTask",{}]"#, "null -32600"),
        (r#"{"id":1,"method":"GetTask"}"#, "1 -32600"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#, "1 -32600"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"GetTask"}"#, "1 -32600"),
        (r#"{"jsonrpc":null,"id":1,"method":"GetTask"}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","id":"a"}"#, r#""a" -32600"#),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":["GetTask"]}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, "1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}"#, "null -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"ListTasks"}"#, "null -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","\ud800":1}"#, "null -32600"),
    ] {
        assert_eq!(read(body), outcome, "{body}");
    }
}

#[test]
fn w04_what_is_no_json_is_a_parse_error() {
    for body in [
        "",
        " \n\t ",
        "{",
        "[",
        "[1,",
        r#"{"jsonrpc": "2.0", "method": "#,
        "{} {}",
        "{}x",
        "nul",
        "'a'",
        "\u{feff}{}",
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{]}"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"#,
        "{\"a\":\"\n\"}",
        "\u{c}{}",
        "{\"a\":NaN}",
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"} trailing"#,
    ] {
        assert_eq!(read(body), "null -32700", "{body}");
    }
    for body in [
        &b"\xff"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"params\":{\"id\":\"\xff\"}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",\"x-new\":\"\xc3\"}",
        b"[\"\xed\xa0\x80\"]",
    ] {
        assert_eq!(read(body), "null -32700", "{body:?}");
    }
}

#[test]
fn w04_missing_params_are_none_and_others_are_looked_at_by_the_call() {
    for (params, outcome) in [("null", "-"), ("{}", "{}"), ("[1]", "[1]"), (r#""x""#, r#""x""#), ("1e400", "1e400")] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{params}}}"#);
        assert_eq!(read(body), format!("1 ListTasks {outcome}"));
    }
    assert!(Call::read(Method::ListTasks, None).is_ok());
    assert!(Call::read(Method::GetExtendedAgentCard, None).is_ok());
    assert_eq!(Call::read(Method::GetTask, None).unwrap_err().field_violations()[0].field, "id");
}

#[test]
fn w04_escapes_and_white_space_change_nothing() {
    let body = "\r\n{ \"\\u006asonrpc\" : \"2\\u002e0\" ,\t\"id\":\n1, \"meth\\u006fd\":\"Get\\u0054ask\"}\n";
    assert_eq!(read(body), "1 GetTask -");
    assert_eq!(read(r#"{"x-new":{"id":9},"params":{},"method":"","id":1,"jsonrpc":"2.0"}"#), "1  {}");
}

#[test]
fn w04_deep_json_is_refused_with_its_id_and_never_a_stack_overflow() {
    let with =
        |member: &str, deep: &str| read(format!(r#"{{"jsonrpc":"2.0","id":7,"method":"GetTask","{member}":{deep}}}"#));
    for depth in [3_000, 300_000] {
        for member in ["params", "x-new"] {
            assert_eq!(with(member, &nested(depth)), "7 -32600");
            assert_eq!(with(member, &r#"{"a":"#.repeat(depth)), "null -32700");
        }
        assert_eq!(with("id", &nested(depth)), "null -32600");
        assert_eq!(read(nested(depth)), "null -32600");
        assert_eq!(read("[".repeat(depth)), "null -32700");
    }
    assert_eq!(with("params", &nested(DEPTH - 1)), format!("7 GetTask {}", nested(DEPTH - 1)));
    assert_eq!(with("params", &nested(DEPTH)), "7 -32600");
    let brackets = format!(r#""\"{}""#, "[{".repeat(3_000));
    assert_eq!(with("x-new", &brackets), "7 GetTask -");
}

#[test]
fn deep_params_that_come_without_an_envelope_name_their_field() {
    let data = nested(3_000);
    let params = format!(r#"{{"message":{{"messageId":"m","role":1,"parts":[{{"data":{data}}}]}}}}"#);
    let raw = RawValue::from_string(params).unwrap();
    let error = Call::read(Method::SendMessage, Some(&raw)).unwrap_err();
    assert_eq!(error.field_violations()[0].field, "message.parts[0].data");
    let params = format!(r#"{{"id":"t","x-new":{data}}}"#);
    let raw = RawValue::from_string(params).unwrap();
    assert!(Call::read(Method::GetTask, Some(&raw)).is_ok());
}

#[test]
fn w04_an_answer_has_exactly_one_of_result_and_error() {
    let body = br#"{"jsonrpc":"2.0","id":"\u0041","method":"GetTask"}"#;
    let id = rpc::read(body).unwrap().id;
    assert_eq!(rpc::result(&id, &vec![1]).unwrap(), r#"{"jsonrpc":"2.0","id":"\u0041","result":[1]}"#);
    let error = rpc::error(&id, &ErrorKind::Parse.into());
    assert_eq!(error, r#"{"jsonrpc":"2.0","id":"\u0041","error":{"code":-32700,"message":"Invalid JSON payload"}}"#);
    assert_eq!(rpc::result(&Id::NULL, &()).unwrap(), r#"{"jsonrpc":"2.0","id":null,"result":null}"#);
}

#[test]
fn a_request_that_was_written_is_read() {
    let params = serde_json::json!({"id": "t"});
    let body = rpc::request(&Id::from(u64::MAX), "GetTask", &params).unwrap();
    assert_eq!(read(&body), r#"18446744073709551615 GetTask {"id":"t"}"#);
    let text = String::from_utf8(body).unwrap();
    assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":18446744073709551615,"method":"GetTask","params":"#), "{text}");
    assert_eq!(rpc::read(text.as_bytes()).unwrap().id.into_owned(), Id::from(u64::MAX));
}

#[test]
fn an_answer_is_read_with_the_error_first() {
    let read = |body: &str| match rpc::answer::<serde_json::Value>(body.as_bytes()) {
        Ok(Answer::Result(value)) => value.to_string(),
        Ok(Answer::Error(error)) => error.to_string(),
        Err(why) => format!("none: {why}").chars().take(4).collect(),
    };
    for (body, outcome) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, r#"{"a":1}"#),
        (r#"{"result":null}"#, "null"),
        (r#"{"error":null,"result":1}"#, "1"),
        (r#"{"error":{"code":-32001,"message":"m"},"result":1}"#, "error -32001: m"),
        (r#"{"error":{"code":-32001,"message":null,"data":null}}"#, "error -32001: "),
        (r#"{"error":{"code":-32001}}"#, "error -32001: "),
        (r#"{"error":{"message":"m"}}"#, "none"),
        (r#"{"error":[-32001,"m"]}"#, "none"),
        (r#"{"error":"m"}"#, "none"),
        (r#"[null,1]"#, "none"),
        ("{}", "none"),
        ("", "none"),
        (r#"{"result":1} x"#, "none"),
    ] {
        assert_eq!(read(body), outcome, "{body}");
    }
}

#[test]
fn a_remote_error_gives_its_reason_if_it_has_one() {
    let reason = |data: &str| {
        let body = format!(r#"{{"error":{{"code":-32001,"message":"m","data":{data}}}}}"#);
        match rpc::answer::<()>(body.as_bytes()) {
            Ok(Answer::Error(error)) => error.reason(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason(r#"[{"x":1},{"reason":"TASK_NOT_FOUND"}]"#).as_deref(), Some("TASK_NOT_FOUND"));
    for none in ["null", "[]", "{}", "\"text\"", "[1]", r#"[{"reason":7}]"#] {
        assert_eq!(reason(none), None, "{none}");
    }
}

#[test]
fn methods_and_calls_go_by_the_same_names() {
    for (method, name) in Method::ALL {
        assert_eq!(method.name(), name);
        assert_eq!(Method::from_name(name), Some(method));
        assert_eq!(format!("{method:?}"), name);
        let params = r#"{"id":"t","taskId":"t","url":"u","message":{"messageId":"m","role":1,"parts":[{"text":""}]}}"#;
        let raw = RawValue::from_string(params.to_owned()).unwrap();
        let call = Call::read(method, Some(&raw)).unwrap();
        assert_eq!(call.method(), method);
        assert_eq!(call.tenant(), None);
        let written = RawValue::from_string(serde_json::to_string(&call).unwrap()).unwrap();
        assert_eq!(Call::read(method, Some(&written)).unwrap(), call);
        let tenant = RawValue::from_string(params.replacen('{', r#"{"tenant":"x","#, 1)).unwrap();
        assert_eq!(Call::read(method, Some(&tenant)).unwrap().tenant(), Some("x"));
    }
    assert_eq!(Method::from_name("message/send"), None);
    assert_eq!(Method::from_name("sendmessage"), None);
    let streams = Method::ALL.into_iter().filter(|(method, _)| method.streams()).map(|(_, name)| name);
    assert_eq!(streams.collect::<Vec<_>>(), ["SendStreamingMessage", "SubscribeToTask"]);
    assert_eq!(protocol::call::unknown_method(), Error::from(ErrorKind::MethodNotFound));
}

fn nearly_json() -> impl Strategy<Value = String> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u",
        "d800",
        "\"jsonrpc\":\"2.0\"",
        "\"id\":",
        "\"method\":\"GetTask\"",
        "\"params\":",
        "{}",
        "null",
        "true",
        "1",
        "-",
        ".5",
        "e9",
        " ",
        "\n",
        "é",
        "\u{feff}",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn w04_no_bytes_make_reading_panic(bytes: Vec<u8>, nearly in nearly_json()) {
        for body in [&bytes[..], nearly.as_bytes(), format!("{{{nearly}}}").as_bytes()] {
            match rpc::read(body) {
                Ok(request) => {
                    let answer = rpc::result(&request.id, &()).unwrap();
                    serde_json::from_slice::<serde_json::Value>(&answer).unwrap();
                    for (method, _) in Method::ALL {
                        let _ = Call::read(method, request.params);
                    }
                }
                Err(refusal) => {
                    let json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() && std::str::from_utf8(body).is_ok();
                    let kind = if json { ErrorKind::InvalidRequest } else { ErrorKind::Parse };
                    prop_assert_eq!(refusal.error.kind(), kind);
                }
            }
            let _ = rpc::answer::<serde_json::Value>(body);
        }
    }

    #[test]
    fn w04_any_text_can_be_an_id(id: String, number: i128) {
        for id in [serde_json::to_string(&id).unwrap(), number.to_string()] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"GetTask"}}"#);
            prop_assert_eq!(read(body), format!("{id} GetTask -"));
        }
    }

    #[test]
    fn deeper_than_agrees_with_counting(text in "[\\[\\]{}\"\\\\a]{0,30}", limit in 0usize..6) {
        let (mut depth, mut deepest, mut chars) = (0i32, 0, text.chars());
        while let Some(char) = chars.next() {
            match char {
                '[' | '{' => { depth += 1; deepest = deepest.max(depth); }
                ']' | '}' => depth = (depth - 1).max(0),
                '"' => while let Some(inner) = chars.next() {
                    match inner { '\\' => { chars.next(); } '"' => break, _ => {} }
                },
                _ => {}
            }
        }
        prop_assert_eq!(rpc::deeper_than(text.as_bytes(), limit), deepest > limit as i32);
    }
}
