//! The conversion both ways, and beside the JSON bindings: what one of them refuses, the other refuses with the same
//! words. The messages of these tests are made from JSON by prost-reflect, which knows nothing of this crate's code.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../protocol/tests/any/mod.rs"]
mod any;

use std::sync::Arc;

use bytes::Bytes;
use grpc::answer::{self, Answer};
use grpc::{call, status};
use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};
use protocol::call::{ListTaskPushNotificationConfigsResponse, ListTasksPage, ListTasksResponse, SendMessageResponse};
use protocol::error::{FieldViolation, HttpError};
use protocol::{AgentCard, Call, Error, ErrorKind, Json, Message, Method, StreamResponse, Task, TaskId, TaskState};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn service(method: Method) -> prost_reflect::MethodDescriptor {
    let pool = DescriptorPool::decode(grpc::DESCRIPTORS).unwrap();
    let service = pool.get_service_by_name(grpc::SERVICE).unwrap();
    service.methods().find(|known| known.name() == method.name()).unwrap()
}

/// JSON as a message, if protobuf can say it at all.
fn message(descriptor: MessageDescriptor, json: &Value) -> Option<Bytes> {
    let message = DynamicMessage::deserialize(descriptor, json).ok()?;
    Some(message.encode_to_vec().into())
}

/// A message as JSON, absent members left out.
fn shown(descriptor: MessageDescriptor, bytes: &Bytes) -> Value {
    let message = DynamicMessage::decode(descriptor, bytes.clone()).unwrap();
    message.serialize_with_options(serde_json::value::Serializer, &SerializeOptions::new()).unwrap()
}

fn over_json(method: Method, params: &Value) -> Result<Call, Error> {
    Call::read(method, Some(&RawValue::from_string(params.to_string()).unwrap()))
}

/// The call as this wire can carry it: numbers are doubles, members are sorted.
fn carried(call: &Call) -> Call {
    call::read(call.method(), call::write(call).unwrap()).unwrap()
}

/// A message as this wire can carry it.
fn carried_message(message: Message) -> Arc<Message> {
    let bytes = answer::event(&StreamResponse::Message(message.into())).unwrap();
    let Answer::Event(StreamResponse::Message(message)) = answer::read(Method::SubscribeToTask, bytes).unwrap() else {
        panic!()
    };
    message
}

/// Params that every operation takes.
fn fine(method: Method, message: Message) -> Value {
    match method {
        Method::SendMessage | Method::SendStreamingMessage => {
            let mut params = json!({"message": carried_message(message), "metadata": {"k": [1]}});
            params["configuration"] = json!({
                "acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": true,
                "taskPushNotificationConfig": {
                    "id": "c", "url": "https://h.example", "token": "t",
                    "authentication": {"scheme": "Bearer", "credentials": "s"}
                }
            });
            params["message"]["role"] = json!("ROLE_USER");
            params
        }
        Method::GetTask => json!({"id": "t", "historyLength": 0, "tenant": "x"}),
        Method::ListTasks => json!({
            "contextId": "c", "status": "TASK_STATE_WORKING", "pageSize": 7, "pageToken": "p", "historyLength": 1,
            "statusTimestampAfter": "2026-10-06T09:00:00.250Z", "includeArtifacts": false
        }),
        Method::CancelTask => json!({"id": "t", "metadata": {"why": ["b", 1.5]}}),
        Method::SubscribeToTask => json!({"id": "t"}),
        Method::CreateTaskPushNotificationConfig => {
            json!({"taskId": "t", "url": "https://h.example", "authentication": {"scheme": "Basic"}})
        }
        Method::GetTaskPushNotificationConfig | Method::DeleteTaskPushNotificationConfig => {
            json!({"taskId": "t", "id": "c"})
        }
        Method::ListTaskPushNotificationConfigs => json!({"taskId": "t", "pageSize": 5, "pageToken": "p"}),
        Method::GetExtendedAgentCard => json!({"tenant": "x"}),
    }
}

/// Does something to one place of the params, counted from the outside in. `null` takes it away.
fn spoil(value: &mut Value, place: &mut usize, with: &Value) {
    let children: Vec<&mut Value> = match value {
        Value::Object(members) => members.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => return,
    };
    for child in children {
        if *place == 0 {
            *child = with.clone();
        }
        let done = *place == 0;
        *place = place.wrapping_sub(1);
        if done {
            return;
        }
        spoil(child, place, with);
        if *place == usize::MAX {
            return;
        }
    }
}

fn spoilt() -> impl Strategy<Value = Vec<(usize, Value)>> {
    let with =
        [json!(null), json!(""), json!({}), json!([]), json!([{}]), json!([""]), json!(-1), json!(0), json!(101)];
    proptest::collection::vec((0..24usize, proptest::sample::select(with.to_vec())), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_wrong_is_named_alike_on_this_wire_and_in_json(
        sent in any::message(),
        method in proptest::sample::select(Method::ALL.map(|(method, _)| method).to_vec()),
        spoilt in spoilt(),
    ) {
        let mut params = fine(method, sent);
        for (mut place, with) in spoilt {
            spoil(&mut params, &mut place, &with);
        }
        if let Some(bytes) = message(service(method).input(), &params) {
            let (here, there) = (call::read(method, bytes), over_json(method, &params));
            prop_assert_eq!(here, there.map(|call| carried(&call)), "{}", params);
        }
    }

    #[test]
    fn what_happens_to_a_task_comes_over_as_it_was(event in any::stream_response()) {
        let bytes = answer::event(&event).unwrap();
        let Answer::Event(back) = answer::read(Method::SubscribeToTask, bytes.clone()).unwrap() else { panic!() };
        let again = answer::event(&back).unwrap();
        prop_assert_eq!(&bytes, &again, "the bytes are the same each time");
        let json = serde_json::to_value(&event).ok();
        if let Some(json) = json.filter(doubles) {
            // Members are compared whatever their order.
            prop_assert_eq!(numbers(json.clone()), numbers(serde_json::to_value(&back).unwrap()));
            let descriptor = service(Method::SubscribeToTask).output();
            let proto = message(descriptor.clone(), &json).unwrap();
            prop_assert_eq!(shown(descriptor.clone(), &proto), shown(descriptor, &bytes), "as ProtoJSON has it");
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        for (method, _) in Method::ALL {
            let _ = call::read(method, bytes.clone().into());
            let _ = answer::read(method, bytes.clone().into());
        }
    }
}

/// Whether doubles carry all numbers, and no object has two members of one name.
fn doubles(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() < 9e15),
        Value::Array(items) => items.iter().all(doubles),
        Value::Object(members) => members.values().all(doubles),
        _ => true,
    }
}

/// All numbers as doubles.
fn numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap() + 0.0),
        Value::Array(items) => items.into_iter().map(numbers).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, numbers(value))).collect(),
        other => other,
    }
}

fn data(json: &str) -> String {
    let part = protocol::Part::data(Json::parse(json).unwrap());
    let back = carried_message(Message::new("m".try_into().unwrap(), protocol::Role::Agent, vec![part]));
    let protocol::Content::Data(data) = &back.parts[0].content else { panic!() };
    data.text().to_owned()
}

#[test]
fn w05_data_comes_back_with_numbers_as_doubles_and_members_in_order_of_their_names() {
    for (sent, back) in [
        ("null", "null"),
        (r#"{"b":1,"a":[true,false,null,"\u00e9"],"b":2}"#, r#"{"a":[true,false,null,"é"],"b":2}"#),
        ("[1,1.0,-1.5e1,9007199254740992]", "[1,1,-15,9007199254740992]"),
        ("[0.1,1e21,1e-7]", "[0.1,1e+21,1e-7]"),
        ("12345678901234567890123", "1.2345678901234568e+22"),
        ("[1e400,-1e400]", "[1.7976931348623157e+308,-1.7976931348623157e+308]"),
        ("{}", "{}"),
    ] {
        assert_eq!(data(sent), back);
    }
}

fn violations(error: &Error) -> Vec<(&str, &str)> {
    error.field_violations().iter().map(|FieldViolation { field, description }| (&**field, &**description)).collect()
}

#[test]
fn what_only_protobuf_can_say_is_refused_by_name() {
    use prost_types::value::Kind;
    let pool = DescriptorPool::decode(grpc::DESCRIPTORS).unwrap();
    let part = |data: prost_types::Value| {
        // field 4 of a Part: `data`.
        let mut bytes = vec![0x22, data.encoded_len() as u8];
        bytes.extend(data.encode_to_vec());
        DynamicMessage::decode(pool.get_message_by_name("lf.a2a.v1.Part").unwrap(), &*bytes).unwrap()
    };
    let nan = prost_types::Value { kind: Some(Kind::NumberValue(f64::NAN)) };
    let parts = [nan, prost_types::Value { kind: None }].map(|data| prost_reflect::Value::Message(part(data)));
    let send = service(Method::SendMessage).input();
    let mut message = DynamicMessage::new(pool.get_message_by_name("lf.a2a.v1.Message").unwrap());
    message.set_field_by_name("message_id", prost_reflect::Value::String("m".into()));
    message.set_field_by_name("role", prost_reflect::Value::EnumNumber(1));
    message.set_field_by_name("parts", prost_reflect::Value::List(parts.into()));
    let mut request = DynamicMessage::new(send);
    request.set_field_by_name("message", prost_reflect::Value::Message(message));
    let error = call::read(Method::SendMessage, request.encode_to_vec().into()).unwrap_err();
    let words = "data must be JSON, in which each value has a kind and each number is finite";
    assert_eq!(violations(&error), [("message.parts[0].data", words), ("message.parts[1].data", words)]);

    let garbage = call::read(Method::GetTask, Bytes::from_static(&[0xff, 0xff])).unwrap_err();
    assert_eq!(garbage.kind(), ErrorKind::Parse);
    let bad_utf8 = call::read(Method::GetTask, Bytes::from_static(&[0x12, 1, 0xff])).unwrap_err();
    assert_eq!(bad_utf8.kind(), ErrorKind::Parse);
    let deep = by_hand::field(3, &by_hand::object(&json!({"": nested(0, 200)})));
    let deep = call::read(Method::CancelTask, deep.into()).unwrap_err();
    assert_eq!(violations(&deep), [("metadata", format!("metadata {DEPTH}").as_str())]);
}

const DEPTH: &str = "must be nested no deeper than gRPC carries, which is 31 objects or 47 lists";

/// So many objects, or lists, in one another.
fn nested(objects: usize, lists: usize) -> Value {
    let inner = (0..lists).fold(json!(7), |inner, _| json!([inner]));
    (0..objects).fold(inner, |inner, _| json!({"a[{": inner}))
}

/// Messages by hand, as deep as JSON is: whoever makes them of JSON stops where a reader does.
mod by_hand {
    use serde_json::Value;

    pub fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut whole = vec![number << 3 | 2];
        prost_reflect::prost::encoding::encode_varint(bytes.len() as u64, &mut whole);
        whole.extend(bytes);
        whole
    }

    /// A `Value` of objects, lists and numbers.
    pub fn value(json: &Value) -> Vec<u8> {
        match json {
            Value::Object(_) => field(5, &object(json)),
            Value::Array(items) => field(6, &items.iter().flat_map(|item| field(1, &value(item))).collect::<Vec<_>>()),
            other => [&[2 << 3 | 1], other.as_f64().unwrap().to_le_bytes().as_slice()].concat(),
        }
    }

    /// A `Struct`.
    pub fn object(json: &Value) -> Vec<u8> {
        let members = json.as_object().unwrap().iter();
        members
            .flat_map(|(name, inner)| field(1, &[field(1, name.as_bytes()), field(2, &value(inner))].concat()))
            .collect()
    }

    /// A request that sends a text and a part with data.
    pub fn send(data: &Value, of_part: &Value, of_message: &Value, metadata: &Value) -> Vec<u8> {
        let part = [field(4, &value(data)), field(5, &object(of_part))].concat();
        let message = [
            field(1, b"m"),
            vec![4 << 3, 1],
            field(5, &field(1, b"x")),
            field(5, &part),
            field(6, &object(of_message)),
        ];
        [field(2, &message.concat()), field(4, &object(metadata))].concat()
    }
}

#[test]
fn what_is_nested_deeper_than_a_reader_follows_is_neither_taken_nor_sent_and_named() {
    // As deep as can be, taken and given back from the deepest place.
    for (objects, lists) in [(31, 1), (0, 47), (30, 2), (1, 46)] {
        let all = nested(objects, lists);
        let metadata = if objects == 0 { json!({}) } else { all.clone() };
        let bytes = by_hand::send(&all, &metadata, &metadata, &metadata);
        let call = call::read(Method::SendMessage, bytes.into()).unwrap();
        let Call::SendMessage(request) = &call else { panic!("{call:?}") };
        assert_eq!(request.message.parts[1].content, protocol::Content::Data(Json::of(&all).unwrap()));
        assert_eq!(call::read(Method::SendMessage, call::write(&call).unwrap()).unwrap(), call);
        let mut task: Task = serde_json::from_value(json!({"id": "t", "contextId": "c", "status": {}})).unwrap();
        task.status.message = Some(Arc::new(request.message.clone()));
        task.history.push(Arc::new(request.message.clone()));
        let frame = answer::first(&task.view(None, true)).unwrap();
        assert!(answer::read(Method::SubscribeToTask, frame).is_ok());
        let page =
            ListTasksPage { tasks: vec![task.view(None, true)], next_page_token: "", page_size: 1, total_size: 1 };
        assert!(answer::read(Method::ListTasks, answer::tasks(&page).unwrap()).is_ok());
    }
    // One more, and so many that a reader stops: the same words.
    for (objects, lists) in [(32, 0), (31, 2), (0, 48), (33, 0), (34, 0), (0, 60), (90, 0), (100, 100)] {
        let (deep, fine) = (nested(objects, lists), json!({"a": 1}));
        let metadata = json!({"b": deep});
        let places = ["message.parts[1].data", "message.parts[1].metadata", "message.metadata", "metadata"];
        for (at, field) in places.into_iter().enumerate() {
            let mut all = [&fine; 4];
            all[at] = if at == 0 { &deep } else { &metadata };
            let bytes = Bytes::from(by_hand::send(all[0], all[1], all[2], all[3]));
            for method in [Method::SendMessage, Method::SendStreamingMessage] {
                let error = call::read(method, bytes.clone()).unwrap_err();
                let words = format!("{} {DEPTH}", field.rsplit('.').next().unwrap());
                assert_eq!(violations(&error), [(field, words.as_str())], "{objects} {lists}");
            }
            let message = json!({
                "messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}, {"data": all[0], "metadata": all[1]}],
                "metadata": all[2]
            });
            if let Ok(call) = over_json(Method::SendMessage, &json!({"message": message, "metadata": all[3]})) {
                let refused = call::write(&call).unwrap_err().to_string();
                assert_eq!(refused, format!("{field} is nested deeper than gRPC carries"));
            }
        }
        // A reader that stops has found nothing else.
        if objects >= 34 || lists >= 60 {
            let bytes = by_hand::send(&deep, &metadata, &metadata, &metadata);
            let error = call::read(Method::SendMessage, bytes.into()).unwrap_err();
            assert_eq!(violations(&error).iter().map(|(field, _)| *field).collect::<Vec<_>>(), places);
        }
    }
}

#[test]
fn an_answer_that_no_reader_would_follow_names_the_field() {
    let part = json!([{"data": nested(40, 0)}]);
    let said = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": part});
    let task = |member: &str, value: Value| {
        let mut task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
        *task.pointer_mut("/status").unwrap() = if member == "status" { value.clone() } else { task["status"].clone() };
        if member != "status" {
            task[member] = value;
        }
        serde_json::from_value::<Task>(task).unwrap()
    };
    for (member, value, field) in [
        ("status", json!({"state": "TASK_STATE_WORKING", "message": said}), "status.message.parts[0].data"),
        ("artifacts", json!([{"artifactId": "a", "parts": part}]), "artifacts[0].parts[0].data"),
        ("history", json!([said]), "history[0].parts[0].data"),
        ("metadata", nested(40, 0), "metadata"),
    ] {
        let task = task(member, value);
        let view = task.view(None, true);
        let page = ListTasksPage { tasks: vec![view], next_page_token: "", page_size: 1, total_size: 1 };
        for (refused, place) in [
            (answer::task(&view), field.to_owned()),
            (answer::first(&view), format!("task.{field}")),
            (answer::sent_task(&view), format!("task.{field}")),
            (answer::tasks(&page), format!("tasks[0].{field}")),
        ] {
            let error = Error::from(refused.unwrap_err());
            let told = serde_json::to_value(&error).unwrap()["data"][0].clone();
            assert_eq!((error.kind(), &told["metadata"]["field"]), (ErrorKind::InvalidAgentResponse, &json!(place)));
        }
    }
    for (event, field) in [
        (json!({"message": said}), "message.parts[0].data"),
        (
            json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"message": said}}}),
            "statusUpdate.status.message.parts[0].data",
        ),
        (
            json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {}, "metadata": nested(40, 0)}}),
            "statusUpdate.metadata",
        ),
        (
            json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": part}}}),
            "artifactUpdate.artifact.parts[0].data",
        ),
    ] {
        let event: StreamResponse = serde_json::from_value(event).unwrap();
        let refused = answer::event(&event).unwrap_err().to_string();
        assert_eq!(refused, format!("{field} is nested deeper than gRPC carries"));
    }
}

#[test]
fn a_moment_is_read_between_the_years_1_and_9999_to_the_millisecond() {
    let after = |seconds: i64, nanos: i32| {
        let moment = prost_types::Timestamp { seconds, nanos }.encode_to_vec();
        let mut bytes = vec![0x3a, moment.len() as u8];
        bytes.extend(moment);
        match call::read(Method::ListTasks, bytes.into()) {
            Ok(Call::ListTasks(list)) => Ok(list.status_timestamp_after.unwrap().to_string()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(violations(&error).into_iter().map(|(field, _)| field.to_owned()).collect::<Vec<_>>()),
        }
    };
    assert_eq!(after(0, 999_999_999).unwrap(), "1970-01-01T00:00:00.999Z");
    assert_eq!(after(-1, 1_000_000).unwrap(), "1969-12-31T23:59:59.001Z");
    assert_eq!(after(-62_135_596_800, 0).unwrap(), "0001-01-01T00:00:00.000Z");
    assert_eq!(after(253_402_300_799, 999_000_000).unwrap(), "9999-12-31T23:59:59.999Z");
    for (seconds, nanos) in
        [(0, -1), (0, 1_000_000_000), (-62_135_596_801, 0), (253_402_300_800, 0), (i64::MAX, 0), (i64::MIN, 0)]
    {
        assert_eq!(after(seconds, nanos).unwrap_err(), ["statusTimestampAfter"], "{seconds} {nanos}");
    }
}

fn whole_card() -> Value {
    json!({
        "name": "n", "description": "d",
        "supportedInterfaces": [
            {"url": "localhost:1", "protocolBinding": "GRPC", "tenant": "t", "protocolVersion": "1.0"}
        ],
        "provider": {"url": "https://p.example", "organization": "o"},
        "version": "1", "documentationUrl": "https://d.example",
        "capabilities": {
            "streaming": true, "pushNotifications": false,
            "extensions": [{"uri": "urn:x", "description": "x", "required": true, "params": {"a": [1]}}],
            "extendedAgentCard": true
        },
        "securitySchemes": {
            "a": {"apiKeySecurityScheme": {"description": "k", "location": "header", "name": "X-Key"}},
            "b": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
            "c": {"oauth2SecurityScheme": {"oauth2MetadataUrl": "https://m.example", "flows": {"authorizationCode": {
                "authorizationUrl": "https://a.example", "tokenUrl": "https://t.example",
                "refreshUrl": "https://r.example", "scopes": {"s": "all"}, "pkceRequired": true
            }}}},
            "d": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://c.example"}},
            "e": {"mtlsSecurityScheme": {"description": "m"}},
            "f": {"oauth2SecurityScheme": {"flows": {"clientCredentials": {
                "tokenUrl": "https://t.example", "scopes": {"s": "all"}
            }}}},
            "g": {"oauth2SecurityScheme": {"flows": {"deviceCode": {
                "deviceAuthorizationUrl": "https://d.example", "tokenUrl": "https://t.example", "scopes": {"s": "all"}
            }}}},
            "h": {"oauth2SecurityScheme": {"flows": {"implicit": {
                "authorizationUrl": "https://a.example", "scopes": {"s": "all"}
            }}}},
            "i": {"oauth2SecurityScheme": {"flows": {"password": {
                "tokenUrl": "https://t.example", "scopes": {"s": "all"}
            }}}}
        },
        "securityRequirements": [{"schemes": {"b": {"list": ["s"]}, "a": {"list": []}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": "s", "name": "S", "description": "does", "tags": ["t"], "examples": ["e"], "inputModes": ["i/i"],
            "outputModes": ["o/o"], "securityRequirements": [{"schemes": {"b": {"list": []}}}]
        }],
        "signatures": [{"protected": "p", "signature": "s", "header": {"kid": "k"}}],
        "iconUrl": "https://i.example"
    })
}

#[test]
fn a_card_with_everything_comes_over_as_it_was() {
    let sent = whole_card();
    let card: AgentCard = serde_json::from_value(sent.clone()).unwrap();
    let bytes = answer::card(&card);
    let Answer::Card(back) = answer::read(Method::GetExtendedAgentCard, bytes.clone()).unwrap() else { panic!() };
    assert_eq!(*back, card);
    let descriptor = service(Method::GetExtendedAgentCard).output();
    let proto = message(descriptor.clone(), &sent).unwrap();
    assert_eq!(shown(descriptor.clone(), &bytes), shown(descriptor, &proto), "as ProtoJSON has it");
}

#[test]
fn a_scheme_that_the_proto_does_not_know_keeps_its_name() {
    let mut card: AgentCard = serde_json::from_value(whole_card()).unwrap();
    let other = serde_json::from_value(json!({"mysterySecurityScheme": {"riddle": 1}})).unwrap();
    card.security_schemes.insert("z".to_owned(), other);
    let Answer::Card(back) = answer::read(Method::GetExtendedAgentCard, answer::card(&card)).unwrap() else { panic!() };
    assert_eq!(serde_json::to_value(&back.security_schemes["z"]).unwrap(), json!({}));
}

#[test]
fn answers_serialize_as_http_json_writes_them() {
    let task: Task = serde_json::from_value(json!({
        "id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-10-06T09:00:00.250Z"},
        "history": [{"messageId": "a", "role": "ROLE_USER", "parts": []}, {"messageId": "b", "role": "ROLE_AGENT",
        "parts": []}], "artifacts": [{"artifactId": "x", "parts": [{"raw": "AAEC"}]}]
    }))
    .unwrap();
    let read = |method, bytes| serde_json::to_value(answer::read(method, bytes).unwrap()).unwrap();
    let view = task.view(Some(1), false);
    let trimmed = serde_json::to_value(view).unwrap();
    assert_eq!(read(Method::GetTask, answer::task(&view).unwrap()), trimmed);
    assert_eq!(read(Method::SendMessage, answer::sent_task(&view).unwrap()), json!({"task": trimmed}));
    assert_eq!(read(Method::SubscribeToTask, answer::first(&view).unwrap()), json!({"task": trimmed}));
    let message = task.history[0].clone();
    let sent = serde_json::to_value(SendMessageResponse::Message(message.clone())).unwrap();
    assert_eq!(read(Method::SendMessage, answer::sent_message(&message).unwrap()), sent);
    let page = ListTasksPage { tasks: vec![view], next_page_token: "n", page_size: 50, total_size: 7 };
    let bytes = answer::tasks(&page).unwrap();
    assert_eq!(read(Method::ListTasks, bytes), serde_json::to_value(&page).unwrap());
    let config: protocol::TaskPushNotificationConfig = serde_json::from_value(json!({
        "id": "i", "taskId": "t", "url": "u", "token": "k", "authentication": {"scheme": "Bearer", "credentials": "s"}
    }))
    .unwrap();
    let json = serde_json::to_value(&config).unwrap();
    assert_eq!(read(Method::GetTaskPushNotificationConfig, answer::config(&config)), json);
    let all = ListTaskPushNotificationConfigsResponse { configs: vec![config], next_page_token: None };
    assert_eq!(read(Method::ListTaskPushNotificationConfigs, answer::configs(&all)), json!({"configs": [json]}));
    assert_eq!(read(Method::DeleteTaskPushNotificationConfig, answer::deleted()), json!({}));
}

#[test]
fn an_answer_that_nothing_can_be_made_of_says_where_it_is_wrong() {
    let page = json!({"tasks": [{"id": "t", "status": {}}, {"id": "", "status": {"state": 99}}]});
    let bytes = message(service(Method::ListTasks).output(), &page).unwrap();
    let why = answer::read(Method::ListTasks, bytes).unwrap_err().to_string();
    assert_eq!(why, "tasks[1].id: id is required; tasks[1].status.state: state must be one of the TASK_STATE_ words");
    let empty = answer::read(Method::SendMessage, Bytes::new()).unwrap_err().to_string();
    assert_eq!(empty, "payload: payload is required");
    // A task without a word about its state is one all the same, as in JSON.
    let bytes = message(service(Method::GetTask).output(), &json!({"id": "t", "status": {}})).unwrap();
    let Answer::Task(task) = answer::read(Method::GetTask, bytes).unwrap() else { panic!() };
    assert_eq!((task.id.as_str(), task.status.state), ("t", TaskState::Unspecified));
    let Answer::Tasks(ListTasksResponse { tasks, .. }) = answer::read(Method::ListTasks, Bytes::new()).unwrap() else {
        panic!()
    };
    assert_eq!(tasks, Vec::<Arc<Task>>::new());
}

#[test]
fn w07_an_error_comes_over_with_what_http_json_says_about_it() {
    let id: TaskId = "t".try_into().unwrap();
    let errors = ErrorKind::ALL.map(Error::from).into_iter().chain([
        Error::not_cancelable(&id, TaskState::Completed),
        Error::violations(vec![
            FieldViolation { field: "a".into(), description: "b".into() },
            FieldViolation { field: "c[1].d".into(), description: "é".into() },
        ]),
    ]);
    for error in errors {
        let status = status::of(&error);
        assert_eq!(i32::from(status.code()), error.kind().grpc_status().number());
        let remote = status::remote(&status);
        let http = serde_json::to_value(HttpError(&error)).unwrap();
        assert_eq!(json!(remote.message), http["error"]["message"]);
        let data = remote.data.as_ref().map_or(Value::Null, |data| data.read().unwrap());
        assert_eq!(&data, http["error"].get("details").unwrap_or(&Value::Null));
        assert_eq!(remote.reason().as_deref(), error.kind().reason());
    }
}

#[test]
fn the_names_and_numbers_are_those_of_the_specification_v1_0_1() {
    let pool = DescriptorPool::decode(grpc::DESCRIPTORS).unwrap();
    let ours = |name: &str| name.starts_with("lf.a2a.v1.");
    let messages = pool.all_messages().filter(|it| ours(it.full_name()) && !it.is_map_entry()).map(|it| {
        let mut fields: Vec<_> = it.fields().map(|field| (field.number(), field.name().to_owned())).collect();
        fields.sort();
        (it.name().to_owned(), fields)
    });
    let enums = pool.all_enums().filter(|it| ours(it.full_name())).map(|it| {
        let values = it.values().map(|value| (value.number() as u32, value.name().to_owned()));
        (it.name().to_owned(), values.collect::<Vec<_>>())
    });
    let ours: std::collections::BTreeMap<_, _> = messages.chain(enums).collect();
    let lines = include_str!("numbers.txt").lines().map(|line| {
        let (name, fields) = line.split_once(':').unwrap();
        let numbered = fields.split_whitespace().map(|field| {
            let (name, number) = field.split_once('=').unwrap();
            (number.parse().unwrap(), name.to_owned())
        });
        let mut fields: Vec<_> = numbered.collect();
        fields.sort();
        (name.to_owned(), fields)
    });
    assert_eq!(ours, lines.collect());
}

#[test]
fn the_service_is_the_specifications() {
    let pool = DescriptorPool::decode(grpc::DESCRIPTORS).unwrap();
    let service = pool.get_service_by_name("lf.a2a.v1.A2AService").unwrap();
    assert_eq!(service.methods().len(), Method::ALL.len());
    for (method, name) in Method::ALL {
        let known = service.methods().find(|known| known.name() == name).unwrap();
        assert_eq!((known.is_server_streaming(), known.is_client_streaming()), (method.streams(), false), "{name}");
        assert_eq!(grpc::path(method), format!("/lf.a2a.v1.A2AService/{name}"));
    }
}
