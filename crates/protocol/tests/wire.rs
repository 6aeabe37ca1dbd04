//! How the data model is read and written: decisions W5 and W6.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod any;

use std::fmt::Debug;

use proptest::prelude::*;
use protocol::call::{
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, TaskPushNotificationConfigRequest,
};
use protocol::card::{
    AgentCapabilities, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill, OAuthFlow,
    OAuthFlows, SecurityRequirement, SecurityScheme, StringList,
};
use protocol::error::{FieldViolation, RemoteError};
use protocol::push::AuthenticationInfo;
use protocol::{
    AgentCard, Artifact, Content, Json, Message, Object, Part, Role, StreamResponse, Task, TaskArtifactUpdateEvent,
    TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads a text as a type and writes it again.
type Round = fn(&str) -> Result<String, String>;

fn round<T: DeserializeOwned + Serialize>(text: &str) -> Result<String, String> {
    let value: T = serde_json::from_str(text).map_err(|cause| cause.to_string())?;
    Ok(serde_json::to_string(&value).unwrap())
}

/// The same for a type that is only read.
fn shown<T: DeserializeOwned + Debug>(text: &str) -> Result<String, String> {
    let value: T = serde_json::from_str(text).map_err(|cause| cause.to_string())?;
    Ok(format!("{value:?}"))
}

const PART: &str = r#"{"text":"a","metadata":{"k":1},"filename":"f","mediaType":"text/plain"}"#;
const MESSAGE: &str = r#"{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","parts":[PART,{"raw":"AAE="},{"url":"u"},{"data":null}],"metadata":{"k":[1]},"extensions":["e"],"referenceTaskIds":["r"]}"#;
const STATUS: &str = r#"{"state":"TASK_STATE_WORKING","message":MESSAGE,"timestamp":"2026-10-06T09:00:00.250Z"}"#;
const ARTIFACT: &str =
    r#"{"artifactId":"a","name":"n","description":"d","parts":[PART],"metadata":{"k":{}},"extensions":["e"]}"#;
const TASK: &str =
    r#"{"id":"t","contextId":"c","status":STATUS,"history":[MESSAGE],"artifacts":[ARTIFACT],"metadata":{"k":1}}"#;
const PUSH: &str = r#"{"tenant":"x","id":"p","taskId":"t","url":"http://h/","token":"s","authentication":{"scheme":"Bearer","credentials":"c"}}"#;
const SEND: &str = r#"{"tenant":"x","message":MESSAGE,"configuration":CONFIGURATION,"metadata":{"k":1}}"#;
const CONFIGURATION: &str = r#"{"acceptedOutputModes":["text/plain"],"historyLength":2,"returnImmediately":true,"taskPushNotificationConfig":PUSH}"#;
const FLOW: &str = r#"{"deviceAuthorizationUrl":"d","authorizationUrl":"a","tokenUrl":"t","refreshUrl":"r","scopes":{"s":"what"},"pkceRequired":true}"#;
const SKILL: &str = r#"{"id":"i","name":"n","description":"d","tags":["t"],"examples":["e"],"inputModes":["i"],"outputModes":["o"],"securityRequirements":[{"schemes":{"bearer":{"list":["s"]}}}]}"#;
const CARD: &str = r#"{"name":"n","description":"d","supportedInterfaces":[{"url":"u","protocolBinding":"JSONRPC","tenant":"x","protocolVersion":"1.0"}],"provider":{"url":"u","organization":"o"},"version":"1","documentationUrl":"d","capabilities":{"streaming":true,"pushNotifications":false,"extensions":[{"uri":"u","description":"d","required":true,"params":{"k":1}}],"extendedAgentCard":true},"securitySchemes":{"bearer":{"httpAuthSecurityScheme":{"description":"d","scheme":"Bearer","bearerFormat":"JWT"}}},"securityRequirements":[{"schemes":{"bearer":{"list":[]}}}],"defaultInputModes":["i"],"defaultOutputModes":["o"],"skills":[SKILL],"signatures":[{"protected":"p","signature":"s","header":{"k":1}}],"iconUrl":"i"}"#;

/// Every type of the data model, with every member it has.
fn samples() -> Vec<(&'static str, Round, String)> {
    fn full(text: &str) -> String {
        let pieces = [
            ("SEND", SEND),
            ("CONFIGURATION", CONFIGURATION),
            ("PUSH", PUSH),
            ("TASK}", &format!("{TASK}}}")),
            ("TASK]", &format!("{TASK}]")),
            ("STATUS", STATUS),
            ("MESSAGE", MESSAGE),
            ("ARTIFACT", ARTIFACT),
            ("PART", PART),
            ("SKILL", SKILL),
            ("FLOW", FLOW),
        ];
        let mut text = text.to_owned();
        for (name, piece) in pieces {
            for before in [":", "["] {
                text = text.replace(&format!("{before}{name}"), &format!("{before}{piece}"));
            }
        }
        text
    }
    let samples: Vec<(&str, Round, &str)> = vec![
        ("Part", round::<Part>, PART),
        ("Message", round::<Message>, MESSAGE),
        ("TaskStatus", round::<TaskStatus>, STATUS),
        ("Artifact", round::<Artifact>, ARTIFACT),
        ("Task", round::<Task>, TASK),
        (
            "TaskStatusUpdateEvent",
            round::<TaskStatusUpdateEvent>,
            r#"{"taskId":"t","contextId":"c","status":STATUS,"metadata":{"k":1}}"#,
        ),
        (
            "TaskArtifactUpdateEvent",
            round::<TaskArtifactUpdateEvent>,
            r#"{"taskId":"t","contextId":"c","artifact":ARTIFACT,"append":true,"lastChunk":true,"metadata":{"k":1}}"#,
        ),
        ("StreamResponse task", round::<StreamResponse>, r#"{"task":TASK}"#),
        ("StreamResponse message", round::<StreamResponse>, r#"{"message":MESSAGE}"#),
        (
            "StreamResponse status",
            round::<StreamResponse>,
            r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":STATUS}}"#,
        ),
        (
            "StreamResponse artifact",
            round::<StreamResponse>,
            r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":ARTIFACT}}"#,
        ),
        ("SendMessageResponse task", round::<SendMessageResponse>, r#"{"task":TASK}"#),
        ("SendMessageResponse message", round::<SendMessageResponse>, r#"{"message":MESSAGE}"#),
        ("TaskPushNotificationConfig", round::<TaskPushNotificationConfig>, PUSH),
        ("AuthenticationInfo", round::<AuthenticationInfo>, r#"{"scheme":"Bearer","credentials":"c"}"#),
        ("SendMessageRequest", round::<SendMessageRequest>, SEND),
        ("SendMessageConfiguration", round::<SendMessageConfiguration>, CONFIGURATION),
        ("GetTaskRequest", round::<GetTaskRequest>, r#"{"tenant":"x","id":"t","historyLength":0}"#),
        (
            "ListTasksRequest",
            round::<ListTasksRequest>,
            r#"{"tenant":"x","contextId":"c","status":"TASK_STATE_FAILED","pageSize":7,"pageToken":"p","historyLength":1,"statusTimestampAfter":"2026-10-06T09:00:00.250Z","includeArtifacts":true}"#,
        ),
        (
            "ListTasksResponse",
            shown::<ListTasksResponse>,
            r#"{"tasks":[TASK],"nextPageToken":"p","pageSize":1,"totalSize":9}"#,
        ),
        ("CancelTaskRequest", round::<CancelTaskRequest>, r#"{"tenant":"x","id":"t","metadata":{"k":1}}"#),
        ("SubscribeToTaskRequest", round::<SubscribeToTaskRequest>, r#"{"tenant":"x","id":"t"}"#),
        (
            "TaskPushNotificationConfigRequest",
            round::<TaskPushNotificationConfigRequest>,
            r#"{"tenant":"x","taskId":"t","id":"p"}"#,
        ),
        (
            "ListTaskPushNotificationConfigsRequest",
            round::<ListTaskPushNotificationConfigsRequest>,
            r#"{"tenant":"x","taskId":"t","pageSize":3,"pageToken":"p"}"#,
        ),
        (
            "ListTaskPushNotificationConfigsResponse",
            round::<ListTaskPushNotificationConfigsResponse>,
            r#"{"configs":[PUSH],"nextPageToken":"p"}"#,
        ),
        ("GetExtendedAgentCardRequest", round::<GetExtendedAgentCardRequest>, r#"{"tenant":"x"}"#),
        ("AgentCard", round::<AgentCard>, CARD),
        ("AgentSkill", round::<AgentSkill>, SKILL),
        (
            "AgentInterface",
            round::<AgentInterface>,
            r#"{"url":"u","protocolBinding":"GRPC","tenant":"x","protocolVersion":"1.0"}"#,
        ),
        ("AgentProvider", round::<AgentProvider>, r#"{"url":"u","organization":"o"}"#),
        (
            "AgentCapabilities",
            round::<AgentCapabilities>,
            r#"{"streaming":true,"pushNotifications":true,"extensions":[{"uri":"u"}],"extendedAgentCard":false}"#,
        ),
        (
            "AgentExtension",
            round::<AgentExtension>,
            r#"{"uri":"u","description":"d","required":true,"params":{"k":1}}"#,
        ),
        ("AgentCardSignature", round::<AgentCardSignature>, r#"{"protected":"p","signature":"s","header":{"k":1}}"#),
        ("SecurityRequirement", round::<SecurityRequirement>, r#"{"schemes":{"bearer":{"list":["s"]}}}"#),
        ("StringList", round::<StringList>, r#"{"list":["s"]}"#),
        ("OAuthFlow", round::<OAuthFlow>, FLOW),
        ("OAuthFlows authorization code", round::<OAuthFlows>, r#"{"authorizationCode":FLOW}"#),
        ("OAuthFlows client credentials", round::<OAuthFlows>, r#"{"clientCredentials":FLOW}"#),
        ("OAuthFlows implicit", round::<OAuthFlows>, r#"{"implicit":FLOW}"#),
        ("OAuthFlows password", round::<OAuthFlows>, r#"{"password":FLOW}"#),
        ("OAuthFlows device code", round::<OAuthFlows>, r#"{"deviceCode":FLOW}"#),
        (
            "SecurityScheme API key",
            round::<SecurityScheme>,
            r#"{"apiKeySecurityScheme":{"description":"d","location":"header","name":"n"}}"#,
        ),
        (
            "SecurityScheme HTTP",
            round::<SecurityScheme>,
            r#"{"httpAuthSecurityScheme":{"description":"d","scheme":"Bearer","bearerFormat":"JWT"}}"#,
        ),
        (
            "SecurityScheme OAuth",
            round::<SecurityScheme>,
            r#"{"oauth2SecurityScheme":{"description":"d","flows":{"deviceCode":FLOW},"oauth2MetadataUrl":"u"}}"#,
        ),
        (
            "SecurityScheme OpenID",
            round::<SecurityScheme>,
            r#"{"openIdConnectSecurityScheme":{"description":"d","openIdConnectUrl":"u"}}"#,
        ),
        ("SecurityScheme mTLS", round::<SecurityScheme>, r#"{"mtlsSecurityScheme":{"description":"d"}}"#),
        ("FieldViolation", round::<FieldViolation>, r#"{"field":"f","description":"d"}"#),
        ("RemoteError", shown::<RemoteError>, r#"{"code":-32001,"message":"m","data":[{"reason":"R"}]}"#),
    ];
    samples.into_iter().map(|(name, round, text)| (name, round, full(text))).collect()
}

/// Members that hold what a client likes, and members whose names are not the protocol's.
const CLIENTS: [&str; 4] = ["data", "metadata", "params", "header"];
const MAPS: [&str; 3] = ["securitySchemes", "schemes", "scopes"];

/// The places of all objects that the protocol defines, as JSON pointers, outermost first.
fn objects(value: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, is_map: bool, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if !is_map {
                    found.push(at.to_owned());
                }
                for (name, value) in members.iter().filter(|(name, _)| !CLIENTS.contains(&name.as_str())) {
                    walk(value, &format!("{at}/{name}"), MAPS.contains(&name.as_str()), found);
                }
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, item)| walk(item, &format!("{at}/{n}"), false, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, "", false, &mut found);
    found
}

fn members<'a>(value: &'a mut Value, at: &str) -> &'a mut Map<String, Value> {
    value.pointer_mut(at).unwrap().as_object_mut().unwrap()
}

/// The same text with each object of the protocol changed in turn.
fn with_each_object(text: &str, change: impl Fn(&mut Value)) -> Vec<(String, String)> {
    let whole: Value = serde_json::from_str(text).unwrap();
    let changed = |at: String| {
        let mut whole = whole.clone();
        change(whole.pointer_mut(&at).unwrap());
        (at, whole.to_string())
    };
    objects(&whole).into_iter().map(changed).collect()
}

/// Whether this is a security scheme: one that is not as it should be is kept as it came.
fn forgiving(name: &str, at: &str) -> bool {
    name.starts_with("SecurityScheme ") || at.starts_with("/securitySchemes/")
}

fn snake(name: &str) -> String {
    name.chars().flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase())).collect()
}

#[test]
fn w06_a_full_value_of_every_type_comes_back_byte_for_byte() {
    for (name, round, full) in samples() {
        let read = round(&full).unwrap_or_else(|why| panic!("{name}: {why}\n{full}"));
        if !["ListTasksResponse", "RemoteError"].contains(&name) {
            assert_eq!(read, full, "{name}");
        }
    }
}

#[test]
fn w05_an_array_is_never_read_as_an_object() {
    for (name, round, full) in samples() {
        for (at, text) in with_each_object(&full, |object| {
            *object = Value::Array(object.as_object().unwrap().values().cloned().collect());
        }) {
            assert!(round(&text).is_err() || forgiving(name, &at), "{name} at {at:?}: {text}");
        }
    }
}

#[test]
fn w05_the_names_of_the_proto_are_read_and_those_of_json_written() {
    for (name, round, full) in samples() {
        let mut renamed: Value = serde_json::from_str(&full).unwrap();
        let mut places = objects(&renamed);
        places.reverse();
        for at in places {
            let object = members(&mut renamed, &at);
            *object = std::mem::take(object).into_iter().map(|(name, value)| (snake(&name), value)).collect();
        }
        assert_eq!(round(&renamed.to_string()), round(&full), "{name}");
    }
}

#[test]
fn w05_unknown_members_are_ignored_wherever_they_stand() {
    for (name, round, full) in samples() {
        for (at, text) in with_each_object(&full, |object| {
            object.as_object_mut().unwrap().shift_insert(0, "x-new".into(), serde_json::json!({"a": [1, {}]}));
        }) {
            assert_eq!(round(&text), round(&full), "{name} at {at:?}");
        }
    }
}

#[test]
fn w06_members_are_written_in_one_order_however_they_came() {
    for (name, round, full) in samples() {
        for (at, text) in with_each_object(&full, |object| {
            let object = object.as_object_mut().unwrap();
            *object = std::mem::take(object).into_iter().rev().collect();
        }) {
            assert_eq!(round(&text), round(&full), "{name} at {at:?}");
        }
    }
}

#[test]
fn w05_null_is_absent_except_for_data() {
    for (name, round, full) in samples() {
        let whole: Value = serde_json::from_str(&full).unwrap();
        for at in objects(&whole) {
            for member in members(&mut whole.clone(), &at).keys().filter(|member| *member != "data") {
                let (mut null, mut absent) = (whole.clone(), whole.clone());
                members(&mut null, &at)[member] = Value::Null;
                members(&mut absent, &at).shift_remove(member);
                let (null, absent) = (round(&null.to_string()).ok(), round(&absent.to_string()).ok());
                assert!(null == absent || forgiving(name, &at), "{name} {at}/{member}: {null:?} and {absent:?}");
            }
        }
    }
    let null: Part = serde_json::from_str(r#"{"data":null}"#).unwrap();
    assert_eq!(null.content, Content::Data(Json::parse("null").unwrap()));
    assert_eq!(serde_json::to_string(&null).unwrap(), r#"{"data":null}"#);
}

#[test]
fn w05_an_empty_optional_text_is_absent() {
    let content = ["text", "raw", "role", "state", "status", "message"];
    for (name, round, full) in samples() {
        let whole: Value = serde_json::from_str(&full).unwrap();
        for at in objects(&whole).into_iter().filter(|at| !forgiving(name, at)) {
            let texts = members(&mut whole.clone(), &at).clone().into_iter().filter(|(_, value)| value.is_string());
            for (member, _) in texts.filter(|(member, _)| !content.contains(&member.as_str())) {
                let (mut empty, mut absent) = (whole.clone(), whole.clone());
                members(&mut empty, &at)[&member] = "".into();
                members(&mut absent, &at).shift_remove(&member);
                let Ok(absent) = round(&absent.to_string()) else { continue };
                let is_time = ["timestamp", "statusTimestampAfter"].contains(&member.as_str());
                match round(&empty.to_string()) {
                    Ok(empty) => assert_eq!(empty, absent, "{name} {at}/{member}"),
                    Err(why) => assert!(is_time, "{name} {at}/{member}: {why}"),
                }
            }
        }
    }
}

#[test]
fn w05_required_ids_are_not_empty() {
    for text in
        [r#"{"id":"","status":{"state":1}}"#, r#"{"status":{"state":1}}"#, r#"{"id":null,"status":{"state":1}}"#]
    {
        assert!(serde_json::from_str::<Task>(text).is_err(), "{text}");
    }
    assert!(serde_json::from_str::<Message>(r#"{"messageId":"","role":1,"parts":[]}"#).is_err());
    assert!(serde_json::from_str::<Message>(r#"{"messageId":"m","role":1,"referenceTaskIds":[""]}"#).is_err());
}

#[test]
fn w05_a_oneof_has_exactly_one_member() {
    let refused: &[(Round, &str)] = &[
        (round::<Part>, "{}"),
        (round::<Part>, r#"{"text":null}"#),
        (round::<Part>, r#"{"filename":"f"}"#),
        (round::<Part>, r#"{"text":"a","data":{}}"#),
        (round::<Part>, r#"{"text":"a","data":null}"#),
        (round::<Part>, r#"{"raw":"","url":""}"#),
        (round::<Part>, r#"{"text":"a","text":"b"}"#),
        (round::<StreamResponse>, "{}"),
        (round::<StreamResponse>, r#"{"task":null}"#),
        (round::<StreamResponse>, r#"{"x-new":1}"#),
        (round::<StreamResponse>, r#"{"task":{"id":"t","status":{}},"message":{"messageId":"m"}}"#),
        (round::<StreamResponse>, r#"{"task":{"id":"t","status":{}},"task":{"id":"t","status":{}}}"#),
        (round::<StreamResponse>, r#""task""#),
        (round::<SendMessageResponse>, "{}"),
        (round::<SendMessageResponse>, r#"{"task":{"id":"t","status":{}},"message":{"messageId":"m"}}"#),
        (round::<OAuthFlows>, "{}"),
        (round::<OAuthFlows>, r#"{"implicit":{},"password":{}}"#),
        (round::<OAuthFlows>, r#""implicit""#),
    ];
    for (round, text) in refused {
        assert!(round(text).is_err(), "{text}");
    }
    for text in [r#"{"text":""}"#, r#"{"raw":""}"#, r#"{"url":""}"#, r#"{"data":null}"#] {
        assert_eq!(round::<Part>(text).as_deref(), Ok(text));
    }
    assert_eq!(round::<Part>(r#"{"text":null,"data":1,"url":null}"#).as_deref(), Ok(r#"{"data":1}"#));
}

#[test]
fn w05_enums_are_read_as_words_and_as_the_numbers_of_the_proto() {
    for (number, state) in TaskState::ALL.into_iter().enumerate() {
        assert_eq!(serde_json::from_str::<TaskState>(&number.to_string()).unwrap(), state);
        assert_eq!(serde_json::from_str::<TaskState>(&format!("{:?}", state.word())).unwrap(), state);
        assert_eq!(TaskState::from_word(state.word()), Some(state));
        assert_eq!(state.to_string(), state.word());
        assert_eq!(serde_json::to_string(&state).unwrap(), format!("{:?}", state.word()));
    }
    for (number, role) in [Role::Unspecified, Role::User, Role::Agent].into_iter().enumerate() {
        assert_eq!(serde_json::from_str::<Role>(&number.to_string()).unwrap(), role);
        assert_eq!(serde_json::from_str::<Role>(&format!("{:?}", role.word())).unwrap(), role);
    }
    for text in [r#""""#, r#""working""#, r#""TASK_STATE_NEW""#, r#""1""#, "9", "-1", "1.5", "true", "[]", "{}", "1e99"]
    {
        assert!(serde_json::from_str::<TaskState>(text).is_err(), "{text}");
    }
    for text in [r#""user""#, r#""""#, "3", "-1", "{}"] {
        assert!(serde_json::from_str::<Role>(text).is_err(), "{text}");
    }
}

#[test]
fn w05_the_first_word_of_an_enum_says_nothing() {
    let none: ListTasksRequest = serde_json::from_str(r#"{"status":"TASK_STATE_UNSPECIFIED"}"#).unwrap();
    assert_eq!(none.status, None);
    assert!(serde_json::from_str::<ListTasksRequest>(r#"{"status":""}"#).is_err());
    let unsaid: TaskStatus = serde_json::from_str("{}").unwrap();
    assert_eq!(unsaid.state, TaskState::Unspecified);
}

#[test]
fn w05_integers_may_come_as_text_and_have_no_fraction() {
    let read = |text: &str| {
        let request = format!(r#"{{"id":"t","historyLength":{text}}}"#);
        serde_json::from_str::<GetTaskRequest>(&request).ok().map(|request| request.history_length)
    };
    for (text, number) in [
        ("0", 0),
        ("-0", 0),
        ("-1", -1),
        ("2.0", 2),
        ("1e3", 1000),
        ("2147483647", i32::MAX),
        ("-2147483648", i32::MIN),
        (r#""7""#, 7),
        (r#""-7""#, -7),
        (r#""2.0""#, 2),
        (r#""1e3""#, 1000),
    ] {
        assert_eq!(read(text), Some(Some(number)), "{text}");
    }
    assert_eq!(read("null"), Some(None));
    for text in [
        "1.5",
        "2147483648",
        "-2147483649",
        "4294967296",
        "18446744073709551616",
        "1e400",
        "1e99",
        "true",
        "[1]",
        "{}",
        r#""""#,
        r#"" 1""#,
        r#""1 ""#,
        r#""+1""#,
        r#""01""#,
        r#""1.5""#,
        r#""0x1""#,
        r#""one""#,
        r#""NaN""#,
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn w05_bytes_are_read_in_either_alphabet_padded_or_not() {
    for text in ["+/8=", "+/8", "-_8=", "-_8"] {
        let part: Part = serde_json::from_str(&format!(r#"{{"raw":"{text}"}}"#)).unwrap();
        assert_eq!(part.content, Content::Raw(vec![0xFB, 0xFF].into()), "{text}");
        assert_eq!(serde_json::to_string(&part).unwrap(), r#"{"raw":"+/8="}"#);
    }
    let escaped: Part = serde_json::from_str(r#"{"raw":"\u002b\/8="}"#).unwrap();
    assert_eq!(escaped.content, Content::Raw(vec![0xFB, 0xFF].into()));
    for text in ["@@", "A", "AA\\n==", "AAE==", "=", "A+_A", "é"] {
        assert!(serde_json::from_str::<Part>(&format!(r#"{{"raw":"{text}"}}"#)).is_err(), "{text}");
    }
}

#[test]
fn w05_client_data_comes_back_member_for_member_and_digit_for_digit() {
    for text in [
        "123456789012345678901234567890",
        "1.0",
        "1",
        "-0",
        "1e400",
        "1.10",
        "0.1e-7",
        r#"{"z":1,"a":2,"z":3}"#,
        r#"{"":null,"empty":[],"none":{}}"#,
        r#""\u00e9 \/ \ud83e\udd80""#,
        r#""{ [ , : \\\"""#,
    ] {
        let part = format!(r#"{{"data":{text}}}"#);
        assert_eq!(round::<Part>(&part).as_deref(), Ok(&*part));
        let message = format!(r#"{{"messageId":"m","role":"ROLE_USER","parts":[],"metadata":{{"k":{text}}}}}"#);
        assert_eq!(round::<Message>(&message).as_deref(), Ok(&*message));
    }
}

#[test]
fn w05_client_data_is_compacted_so_that_it_never_splits_a_frame() {
    let pretty = "{\r\n  \"a b\" : [ 1 ,\t2 ] ,\n \"c\":\"d\\n \\\\\" }";
    assert_eq!(Json::parse(pretty).unwrap().text(), r#"{"a b":[1,2],"c":"d\n \\"}"#);
    assert_eq!(Object::parse("\n{ }\n").unwrap().text(), "{}");
    let part: Part = serde_json::from_str("{\"data\" :\n[ 1,\n2 ]\n}").unwrap();
    assert_eq!(serde_json::to_string(&part).unwrap(), r#"{"data":[1,2]}"#);
}

#[test]
fn client_data_is_read_from_a_value_and_from_a_reader_too() {
    let text = r#"{"data":{"b":[1.5],"a":"\n"},"metadata":{"k":null}}"#;
    let part: Part = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::from_value::<Part>(serde_json::from_str(text).unwrap()).unwrap(), part);
    assert_eq!(serde_json::from_reader::<_, Part>(text.as_bytes()).unwrap(), part);
}

#[test]
fn client_data_that_is_no_text_or_too_deep_is_refused() {
    use protocol::json::{DEPTH, NotJson};
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(Json::parse(&nested(DEPTH)).unwrap().text(), nested(DEPTH));
    assert_eq!(Json::parse(&nested(DEPTH + 1)), Err(NotJson::Depth));
    assert_eq!(Json::parse(&nested(100_000)), Err(NotJson::Depth));
    for text in [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#"{"\uDFFF":1}"#, r#""\ud800\u0041""#] {
        assert_eq!(Json::parse(text), Err(NotJson::Surrogate), "{text}");
    }
    for text in ["", " ", "{", "1 2", "01", "\"\n\"", "nul", "NaN", "\u{feff}1", "'a'"] {
        assert_eq!(Json::parse(text), Err(NotJson::Syntax), "{text}");
    }
    for text in ["1", "[]", "null", "\"{\""] {
        assert_eq!(Object::parse(text), Err(NotJson::NotAnObject), "{text}");
    }
    assert_eq!(Json::of(&vec![1]).unwrap().text(), "[1]");
    assert_eq!(Json::parse("[1, 2]").unwrap().read::<Vec<u8>>().unwrap(), [1, 2]);
}

#[test]
fn every_depth_that_is_accepted_can_be_read_back_by_plain_readers() {
    let data = format!("{}{}", "[".repeat(protocol::json::DEPTH), "]".repeat(protocol::json::DEPTH));
    let task = format!(r#"{{"id":"t","status":{{}},"history":[{{"messageId":"m","parts":[{{"data":{data}}}]}}]}}"#);
    let page = format!(r#"{{"result":{{"tasks":[{}]}}}}"#, round::<Task>(&task).unwrap());
    serde_json::from_str::<Value>(&page).unwrap();
}

#[test]
fn timestamps_are_read_as_rfc_3339_and_written_in_utc_with_three_decimals() {
    for (text, written) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T05:30:00+05:30", "2026-01-01T00:00:00.000Z"),
        ("2025-12-31T19:00:00-05:00", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T00:00:00-00:00", "2026-01-01T00:00:00.000Z"),
        ("2026-10-06T09:00:00.25Z", "2026-10-06T09:00:00.250Z"),
        ("2026-10-06T09:00:00.1Z", "2026-10-06T09:00:00.100Z"),
        ("2026-10-06T09:00:00.123456789Z", "2026-10-06T09:00:00.123Z"),
        ("2026-10-06T09:00:00.9999999999999Z", "2026-10-06T09:00:00.999Z"),
        ("2026-10-06t09:00:00.250z", "2026-10-06T09:00:00.250Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.000Z"),
        ("2024-02-29T12:00:00Z", "2024-02-29T12:00:00.000Z"),
        ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999Z"),
    ] {
        let time: Timestamp = text.parse().unwrap_or_else(|_| panic!("{text}"));
        assert_eq!(time.to_string(), written, "{text}");
        assert_eq!(written.parse(), Ok(time));
        assert_eq!(serde_json::to_string(&time).unwrap(), format!("{written:?}"));
    }
}

#[test]
fn what_is_no_rfc_3339_timestamp_is_refused() {
    for text in [
        "",
        "yesterday",
        "2026-01-01",
        "2026-01-01T00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T23:60:00Z",
        "2026-01-01T23:59:61Z",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00,5Z",
        "2026-01-01T00:00:00+0530",
        "2026-01-01T00:00:00+05",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+05:60",
        "2026-01-01T00:00:00Z[UTC]",
        "2026-01-01T00:00:00+05:30:15",
        "2026-01-01T00:00:00ZZ",
        "+2026-01-01T00:00:00Z",
        "-2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00 Z",
        " 2026-01-01T00:00:00Z",
        "20260101T000000Z",
        "2026-01-01T00:00:0éZ",
        "２026-01-01T00:00:00Z",
    ] {
        assert!(text.parse::<Timestamp>().is_err(), "{text}");
    }
    for text in ["1767225600", "1767225600.5", "true", "[]", "{}"] {
        assert!(serde_json::from_str::<Timestamp>(text).is_err(), "{text}");
    }
    assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
    assert_eq!(Timestamp::from_millis(i64::MIN).to_string(), "0001-01-01T00:00:00.000Z");
    assert_eq!(Timestamp::from_millis(1_791_277_200_250).to_string(), "2026-10-06T09:00:00.250Z");
}

#[test]
fn a_security_scheme_that_nobody_knows_leaves_the_card_readable() {
    for scheme in [
        r#"{"dpopSecurityScheme":{"a":1.0}}"#,
        "{}",
        r#"{"httpAuthSecurityScheme":["Bearer"]}"#,
        r#"{"oauth2SecurityScheme":{"flows":{"tomorrow":{}}}}"#,
        r#"{"mtlsSecurityScheme":{},"apiKeySecurityScheme":{"location":"header","name":"n"}}"#,
    ] {
        let card = CARD
            .replace("[SKILL]", "[]")
            .replace(r#""securitySchemes":{"#, &format!(r#""securitySchemes":{{"new":{scheme},"#));
        let read: AgentCard = serde_json::from_str(&card).unwrap();
        assert_eq!(read.security_schemes["new"], SecurityScheme::Other(Object::parse(scheme).unwrap()));
        assert!(matches!(read.security_schemes["bearer"], SecurityScheme::HttpAuth(_)));
        assert_eq!(round::<SecurityScheme>(scheme).as_deref(), Ok(scheme));
    }
    assert!(round::<SecurityScheme>("[]").is_err());
}

#[test]
fn a_card_without_its_lists_is_read_as_one_with_empty_ones() {
    let card: AgentCard = serde_json::from_str(r#"{"name":"n","description":"d","version":"1"}"#).unwrap();
    let written = r#"{"name":"n","description":"d","supportedInterfaces":[],"version":"1","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#;
    assert_eq!(serde_json::to_string(&card).unwrap(), written);
}

#[test]
fn secrets_of_a_webhook_are_not_shown() {
    let config: TaskPushNotificationConfig = serde_json::from_str(
        r#"{"url":"http://h/","token":"secret-1","authentication":{"scheme":"Bearer","credentials":"secret-2"}}"#,
    )
    .unwrap();
    assert!(!format!("{config:?}").contains("secret"));
}

#[test]
fn o03_a_view_holds_the_last_messages_and_perhaps_the_artifacts() {
    let (_, _, full) = samples().into_iter().find(|(name, ..)| *name == "Task").unwrap();
    let mut task: Task = serde_json::from_str(&full).unwrap();
    let mut second = (*task.history[0]).clone();
    second.message_id = protocol::MessageId::new("m2").unwrap();
    task.history.push(second.into());
    let view = |length, artifacts| serde_json::to_value(task.view(length, artifacts)).unwrap();
    assert_eq!(view(None, true), serde_json::to_value(&task).unwrap());
    assert_eq!(view(Some(9), true), serde_json::to_value(&task).unwrap());
    assert_eq!(view(Some(1), true)["history"].as_array().unwrap().len(), 1);
    assert_eq!(view(Some(1), true)["history"][0]["messageId"], "m2");
    assert!(view(Some(0), true).get("history").is_none());
    assert!(view(None, false).get("artifacts").is_none());
    assert!(view(None, true).get("artifacts").is_some());
}

fn written_and_read<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(value).unwrap();
    prop_assert!(!text.contains('\n'));
    let read: T = serde_json::from_str(&text).unwrap();
    prop_assert_eq!(&read, value);
    prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_part_written_and_read_is_the_same(part in any::part()) {
        written_and_read(&part)?;
    }

    #[test]
    fn any_message_written_and_read_is_the_same(message in any::message()) {
        written_and_read(&message)?;
    }

    #[test]
    fn any_task_written_and_read_is_the_same(task in any::task()) {
        written_and_read(&task)?;
    }

    #[test]
    fn any_frame_written_and_read_is_the_same(response in any::stream_response()) {
        written_and_read(&response)?;
    }

    #[test]
    fn any_client_data_is_only_compacted((compact, pretty) in any::json()) {
        let json = Json::parse(&pretty).unwrap();
        prop_assert_eq!(json.text(), &*compact);
        let part: Part = serde_json::from_str(&format!("{{\"data\":{pretty}}}")).unwrap();
        prop_assert_eq!(serde_json::to_string(&part).unwrap(), format!("{{\"data\":{compact}}}"));
    }

    #[test]
    fn any_bytes_come_back_from_each_form_of_base64(bytes: Vec<u8>) {
        use base64::prelude::*;
        for text in [
            BASE64_STANDARD.encode(&bytes),
            BASE64_STANDARD_NO_PAD.encode(&bytes),
            BASE64_URL_SAFE.encode(&bytes),
            BASE64_URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            let part: Part = serde_json::from_str(&format!(r#"{{"raw":"{text}"}}"#)).unwrap();
            prop_assert_eq!(part.content, Content::Raw(bytes.clone().into()));
        }
    }

    #[test]
    fn any_text_is_a_timestamp_or_none_and_never_a_panic(text in any::text(), time in any::time()) {
        let _ = text.parse::<Timestamp>();
        prop_assert_eq!(time.to_string().parse::<Timestamp>(), Ok(time));
        prop_assert_eq!(time.to_string().len(), 24);
    }

    #[test]
    fn almost_a_timestamp_is_never_a_panic(text in "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{0,12})?(Z|[+-][0-9]{2}:[0-9]{2}|é)?") {
        if let Ok(time) = text.parse::<Timestamp>() {
            prop_assert_eq!(time.to_string().parse::<Timestamp>(), Ok(time));
        }
    }

    #[test]
    fn any_text_is_refused_or_read_by_the_data_model_without_a_panic(text in "[\\[\\]{}:,\"0-9a-z \\\\]{0,40}") {
        for (_, round, _) in samples() {
            let _ = round(&text);
        }
        let _ = Json::parse(&text);
    }
}
