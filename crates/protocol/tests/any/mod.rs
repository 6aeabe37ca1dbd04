//! Any value of the data model, for property tests.
#![allow(dead_code, reason = "each test binary uses its own part of it")]

use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::{
    Artifact, ArtifactId, Content, ContextId, Json, Message, MessageId, Object, Part, Role, StreamResponse, Task,
    TaskArtifactUpdateEvent, TaskId, TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp,
};

pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,8}",
        vec(any::<char>(), 0..12).prop_map(String::from_iter),
        Just("žluťoučký 🦀 你好\u{2028}\0\"\\\r\n".to_owned()),
    ]
}

fn some_text() -> impl Strategy<Value = String> {
    text().prop_filter("not empty", |text| !text.is_empty())
}

const NUMBERS: &[&str] =
    &["0", "-0", "1", "1.0", "1e400", "-1.50E+10", "9007199254740993", "123456789012345678901234567890"];

/// A JSON text twice: compact, and with white space between its tokens.
pub fn json() -> impl Strategy<Value = (String, String)> {
    let same = |text: String| (text.clone(), text);
    let leaf = prop_oneof![
        proptest::sample::select(&["null", "true", "false"][..]).prop_map(str::to_owned),
        proptest::sample::select(NUMBERS).prop_map(str::to_owned),
        text().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\u00e9\ud83e\udd80 { [ , :""#.to_owned()),
    ];
    leaf.prop_map(same).prop_recursive(4, 24, 4, |inner| {
        let space = proptest::sample::select(&["", " ", "\n", "\t\r\n  "][..]);
        let member = (text(), inner.clone()).prop_map(|(name, (compact, pretty))| {
            let name = serde_json::to_string(&name).unwrap();
            (format!("{name}:{compact}"), format!("{name} :\n{pretty}"))
        });
        prop_oneof![
            (vec(inner, 0..4), space.clone()).prop_map(|(items, space)| enclosed('[', items, space, ']')),
            (vec(member, 0..4), space).prop_map(|(members, space)| enclosed('{', members, space, '}')),
        ]
    })
}

fn enclosed(open: char, items: Vec<(String, String)>, space: &str, close: char) -> (String, String) {
    let (compact, pretty): (Vec<_>, Vec<_>) = items.into_iter().unzip();
    let between = format!("{space},{space}");
    (
        format!("{open}{}{close}", compact.join(",")),
        format!("{space}{open}{space}{}{space}{close}{space}", pretty.join(&between)),
    )
}

pub fn data() -> impl Strategy<Value = Json> {
    json().prop_map(|(_, pretty)| Json::parse(&pretty).unwrap())
}

fn object() -> impl Strategy<Value = Option<Object>> {
    option::of(data().prop_map(|data| Object::parse(&format!("{{\"k\": {}}}", data.text())).unwrap()))
}

fn optional() -> impl Strategy<Value = Option<Arc<str>>> {
    option::of(some_text().prop_map(Arc::from))
}

pub fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        text().prop_map(|text| Content::Text(text.into())),
        vec(any::<u8>(), 0..12).prop_map(|bytes| Content::Raw(bytes.into())),
        text().prop_map(|url| Content::Url(url.into())),
        data().prop_map(Content::Data),
    ];
    (content, object(), optional(), optional()).prop_map(|(content, metadata, filename, media_type)| Part {
        content,
        metadata,
        filename,
        media_type,
    })
}

pub fn message() -> impl Strategy<Value = Message> {
    let ids = (some_text(), option::of(some_text()), option::of(some_text()), vec(some_text(), 0..3));
    let role = proptest::sample::select(vec![Role::User, Role::Agent, Role::Unspecified]);
    (ids, role, vec(part(), 0..4), object(), vec(text(), 0..3)).prop_map(|(ids, role, parts, metadata, extensions)| {
        let (message_id, context_id, task_id, references) = ids;
        Message {
            message_id: MessageId::new(message_id).unwrap(),
            context_id: context_id.map(|id| ContextId::new(id).unwrap()),
            task_id: task_id.map(|id| TaskId::new(id).unwrap()),
            role,
            parts,
            metadata,
            extensions,
            reference_task_ids: references.into_iter().map(|id| TaskId::new(id).unwrap()).collect(),
        }
    })
}

pub fn time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![any::<i64>(), 0..4_000_000_000_000i64].prop_map(Timestamp::from_millis)
}

pub fn state() -> impl Strategy<Value = TaskState> {
    proptest::sample::select(&TaskState::ALL[..])
}

pub fn status() -> impl Strategy<Value = TaskStatus> {
    (state(), option::of(message().prop_map(Arc::new)), option::of(time()))
        .prop_map(|(state, message, timestamp)| TaskStatus { state, message, timestamp })
}

pub fn artifact() -> impl Strategy<Value = Artifact> {
    (some_text(), optional(), optional(), vec(part(), 0..4), object(), vec(text(), 0..3)).prop_map(
        |(id, name, description, parts, metadata, extensions)| Artifact {
            artifact_id: ArtifactId::new(id).unwrap(),
            name,
            description,
            parts: parts.into(),
            metadata,
            extensions,
        },
    )
}

pub fn task() -> impl Strategy<Value = Task> {
    let context_id = option::of(some_text());
    let history = vec(message().prop_map(Arc::new), 0..3);
    (some_text(), context_id, status(), history, vec(artifact().prop_map(Arc::new), 0..3), object()).prop_map(
        |(id, context_id, status, history, artifacts, metadata)| Task {
            id: TaskId::new(id).unwrap(),
            context_id: context_id.map(|id| ContextId::new(id).unwrap()),
            status,
            history,
            artifacts,
            metadata,
        },
    )
}

pub fn stream_response() -> impl Strategy<Value = StreamResponse> {
    let ids = || (some_text(), some_text()).prop_map(|(t, c)| (TaskId::new(t).unwrap(), ContextId::new(c).unwrap()));
    let status_update = (ids(), status(), object()).prop_map(|((task_id, context_id), status, metadata)| {
        StreamResponse::StatusUpdate(TaskStatusUpdateEvent { task_id, context_id, status, metadata })
    });
    let artifact_update = (ids(), artifact(), any::<bool>(), any::<bool>(), object()).prop_map(
        |((task_id, context_id), artifact, append, last_chunk, metadata)| {
            let artifact = Arc::new(artifact);
            let update = TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk, metadata };
            StreamResponse::ArtifactUpdate(update)
        },
    );
    prop_oneof![
        task().prop_map(|task| StreamResponse::Task(task.into())),
        message().prop_map(|message| StreamResponse::Message(message.into())),
        status_update,
        artifact_update,
    ]
}
