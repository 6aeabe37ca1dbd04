//! The fold that rebuilds a task from what happened to it, and the tables of its states.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod any;

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use protocol::task::{Applied, Refused};
use protocol::{
    Artifact, ArtifactId, Change, ContextId, Message, MessageId, Part, Phase, Role, Task, TaskArtifactUpdateEvent,
    TaskId, TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp,
};

#[test]
fn the_two_tables_of_the_states() {
    use Phase::*;
    use TaskState::*;
    #[rustfmt::skip]
    let table = [
        // state          phase        a blocking call returns   a message may come
        (Unspecified,     Running,     false,                    true),
        (Submitted,       Running,     false,                    true),
        (Working,         Running,     false,                    true),
        (Completed,       Terminal,    true,                     false),
        (Failed,          Terminal,    true,                     false),
        (Canceled,        Terminal,    true,                     false),
        (InputRequired,   Interrupted, true,                     true),
        (Rejected,        Terminal,    true,                     false),
        (AuthRequired,    Interrupted, true,                     true),
    ];
    assert_eq!(table.map(|row| row.0), TaskState::ALL);
    for (state, phase, settles, takes_messages) in table {
        assert_eq!(state.phase(), phase, "{state}");
        assert_eq!(state.phase().settles(), settles, "{state}");
        assert_eq!(state.phase().takes_messages(), takes_messages, "{state}");
        assert_eq!(state.is_terminal(), phase == Terminal, "{state}");
    }
}

fn task_id() -> TaskId {
    TaskId::new("t").unwrap()
}

fn context_id() -> ContextId {
    ContextId::new("c").unwrap()
}

fn message(id: &str) -> Arc<Message> {
    let text = vec![Part::text(id)];
    Arc::new(Message { task_id: Some(task_id()), ..Message::new(MessageId::new(id).unwrap(), Role::Agent, text) })
}

fn submitted() -> Task {
    Task::submitted(task_id(), context_id(), message("first"), Timestamp::from_millis(0))
}

fn status(state: TaskState, says: Option<&str>) -> Change {
    let status = TaskStatus { state, message: says.map(message), timestamp: None };
    Change::Status(TaskStatusUpdateEvent { task_id: task_id(), context_id: context_id(), status, metadata: None })
}

fn artifact(id: &str, texts: &[&str], append: bool) -> Change {
    let parts: Vec<Part> = texts.iter().map(|text| Part::text(*text)).collect();
    let artifact = Arc::new(Artifact::new(ArtifactId::new(id).unwrap(), parts));
    let (task_id, context_id) = (task_id(), context_id());
    Change::Artifact(TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact,
        append,
        last_chunk: false,
        metadata: None,
    })
}

fn texts(task: &Task, artifact: usize) -> Vec<&str> {
    task.artifacts[artifact].parts.iter().filter_map(Part::as_text).collect()
}

fn history(task: &Task) -> Vec<&str> {
    task.history.iter().map(|message| message.message_id.as_str()).collect()
}

#[test]
fn o04_a_status_message_enters_history_when_the_next_status_comes_or_the_client_answers() {
    let mut task = submitted();
    task.apply(&status(TaskState::Working, Some("w"))).unwrap();
    assert_eq!(history(&task), ["first"]);
    task.apply(&status(TaskState::InputRequired, Some("question"))).unwrap();
    assert_eq!(history(&task), ["first", "w"]);
    task.apply(&Change::Message(message("answer"))).unwrap();
    assert_eq!(history(&task), ["first", "w", "question", "answer"]);
    assert_eq!(task.status.message, None);
    assert_eq!(task.status.state, TaskState::InputRequired);
    task.apply(&status(TaskState::Working, None)).unwrap();
    task.apply(&status(TaskState::Completed, Some("end"))).unwrap();
    assert_eq!(history(&task), ["first", "w", "question", "answer"]);
    assert_eq!(task.status.message, Some(message("end")));
}

#[test]
fn artifacts_are_appended_to_and_replaced() {
    let mut task = submitted();
    assert_eq!(task.apply(&artifact("a", &["1"], false)), Ok(Applied::AsAsked));
    assert_eq!(task.apply(&artifact("b", &["x"], false)), Ok(Applied::AsAsked));
    assert_eq!(task.apply(&artifact("a", &["2", "3"], true)), Ok(Applied::AsAsked));
    assert_eq!(texts(&task, 0), ["1", "2", "3"]);
    assert_eq!(task.apply(&artifact("a", &["new"], false)), Ok(Applied::AsAsked));
    assert_eq!((texts(&task, 0), texts(&task, 1)), (vec!["new"], vec!["x"]));
}

#[test]
fn o16_append_to_an_unknown_artifact_begins_it() {
    let mut task = submitted();
    assert_eq!(task.apply(&artifact("a", &["1"], true)), Ok(Applied::BegunInstead));
    assert_eq!(task.apply(&artifact("a", &["2"], true)), Ok(Applied::AsAsked));
    assert_eq!(texts(&task, 0), ["1", "2"]);
}

#[test]
fn nothing_leaves_a_terminal_state_or_goes_back_to_submitted_or_comes_from_another_task() {
    for state in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
        let mut task = submitted();
        task.apply(&status(state, Some("end"))).unwrap();
        let sealed = task.clone();
        for change in [status(TaskState::Working, None), artifact("a", &[], false), Change::Message(message("late"))] {
            assert_eq!(task.apply(&change), Err(Refused::Ended(state)));
            assert_eq!(task, sealed);
        }
    }
    let mut task = submitted();
    task.apply(&status(TaskState::Submitted, None)).unwrap();
    task.apply(&status(TaskState::Working, Some("w"))).unwrap();
    let before = task.clone();
    assert_eq!(task.apply(&status(TaskState::Submitted, None)), Err(Refused::BackToSubmitted));
    let mut other = (*message("m")).clone();
    other.task_id = Some(TaskId::new("other").unwrap());
    assert_eq!(task.apply(&Change::Message(other.clone().into())), Err(Refused::OtherTask));
    assert_eq!(task, before);
    other.task_id = None;
    assert_eq!(task.apply(&Change::Message(other.into())), Ok(Applied::AsAsked));
}

/// Changes of one task, with messages that are numbered later.
fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => (any::state(), any::<bool>()).prop_map(|(state, says)| {
            // Endings are rare, so that something happens before them.
            status(state, says.then_some("m"))
        }),
        4 => Just(TaskState::Working).prop_map(|state| status(state, Some("m"))),
        2 => Just(()).prop_map(|()| Change::Message(message("m"))),
        9 => (0..3usize, vec("[a-z]", 0..4), any::<bool>()).prop_map(|(id, texts, append)| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            artifact(["a", "b", "c"][id], &texts, append)
        }),
    ];
    vec(change, 0..40).prop_map(|mut changes| {
        for (number, change) in changes.iter_mut().enumerate() {
            let name = format!("m{number}");
            match change {
                Change::Message(said) => *said = message(&name),
                Change::Status(update) => {
                    update.status.message = update.status.message.as_ref().map(|_| message(&name))
                }
                Change::Artifact(_) => {}
            }
        }
        changes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_a_task_the_rules_of_the_fold_hold(changes in changes()) {
        let mut task = submitted();
        let mut status = task.status.clone();
        let mut said = vec!["first".to_owned()];
        let mut artifacts: Vec<(String, Vec<String>)> = Vec::new();
        for change in &changes {
            let before = task.clone();
            match task.apply(change) {
                Err(Refused::Ended(state)) => {
                    prop_assert!(state.is_terminal() && state == before.status.state);
                    prop_assert_eq!(&task, &before);
                }
                Err(_) => {
                    prop_assert_eq!(&task, &before);
                    prop_assert!(matches!(change, Change::Status(update) if update.status.state == TaskState::Submitted));
                }
                Ok(_) => {
                    prop_assert!(!before.status.state.is_terminal());
                    match change {
                        Change::Message(message) => {
                            status.message = None;
                            said.push(message.message_id.to_string());
                        }
                        Change::Status(update) => {
                            status = update.status.clone();
                            said.extend(status.message.iter().map(|message| message.message_id.to_string()));
                        }
                        Change::Artifact(update) => {
                            let id = update.artifact.artifact_id.to_string();
                            let texts = update.artifact.parts.iter().filter_map(Part::as_text).map(str::to_owned);
                            match artifacts.iter_mut().find(|(known, _)| *known == id) {
                                Some((_, known)) if update.append => known.extend(texts),
                                Some((_, known)) => *known = texts.collect(),
                                None => artifacts.push((id, texts.collect())),
                            }
                        }
                    }
                }
            }
        }
        prop_assert_eq!(&task.status, &status);
        // Each message stands there once, in the order in which it was said, the last one perhaps in the status.
        let all: Vec<String> = task.history.iter().chain(&task.status.message).map(|m| m.message_id.to_string()).collect();
        prop_assert_eq!(all, said);
        let folded: Vec<(String, Vec<String>)> = task.artifacts.iter().map(|artifact| {
            let texts = artifact.parts.iter().filter_map(Part::as_text).map(str::to_owned);
            (artifact.artifact_id.to_string(), texts.collect())
        }).collect();
        prop_assert_eq!(folded, artifacts);
        // The same changes written and read make the same task.
        let text = serde_json::to_string(&task).unwrap();
        prop_assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task);
    }

    #[test]
    fn an_artifact_in_chunks_equals_the_whole_at_once(parts in vec(any::part(), 0..60), cuts in vec(0usize..60, 0..8)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(parts.len())).chain([0, parts.len()]).collect();
        cuts.sort_unstable();
        let change = |parts: &[Part], append| {
            let artifact = Arc::new(Artifact::new(ArtifactId::new("a").unwrap(), parts.to_vec()));
            let (task_id, context_id) = (task_id(), context_id());
            Change::Artifact(TaskArtifactUpdateEvent { task_id, context_id, artifact, append, last_chunk: false, metadata: None })
        };
        let (mut chunked, mut whole) = (submitted(), submitted());
        for (at, ends) in cuts.windows(2).enumerate() {
            chunked.apply(&change(&parts[ends[0]..ends[1]], at > 0)).unwrap();
        }
        whole.apply(&change(&parts, false)).unwrap();
        prop_assert_eq!(&chunked, &whole);
        prop_assert_eq!(chunked.artifacts[0].parts.len(), parts.len());
        prop_assert_eq!(serde_json::to_string(&chunked).unwrap(), serde_json::to_string(&whole).unwrap());
    }
}
