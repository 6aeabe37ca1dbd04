//! Messages, parts, tasks, artifacts and what happens to them.

use std::sync::Arc;

use protocol::check::Wrong;
use protocol::task::TaskView;
use protocol::{
    Artifact, Content, Message, Part, Parts, Role, StreamResponse, Task, TaskArtifactUpdateEvent, TaskId, TaskState,
    TaskStatus, TaskStatusUpdateEvent,
};

use crate::data;
use crate::read::{At, Reading, optional, written};
use crate::wire::{self, part, stream_response};

/// Who wrote a message that is being read. A client's has more to obey.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum By {
    Client,
    Anybody,
}

impl Reading<'_> {
    pub(crate) fn message(&mut self, at: At<'_>, message: &wire::Message, by: By) -> Option<Message> {
        let message_id = self.required(at.field("messageId"), &message.message_id);
        let role = match (message.role, by) {
            (1, _) => Some(Role::User),
            (0, By::Client) => self.wrong(at.field("role"), Wrong::Required),
            (_, By::Client) => self.wrong(at.field("role"), Wrong::ROLE),
            (0, By::Anybody) => Some(Role::Unspecified),
            (2, By::Anybody) => Some(Role::Agent),
            (_, By::Anybody) => self.wrong(at.field("role"), Wrong::NotA("one of the ROLE_ words")),
        };
        if message.parts.is_empty() && by == By::Client {
            self.wrong::<()>(at.field("parts"), Wrong::Required);
        }
        let parts = self.parts(at, &message.parts);
        let metadata = self.object(at.field("metadata"), message.metadata.as_ref());
        let references = message.reference_task_ids.iter().enumerate();
        let references: Vec<Option<TaskId>> = references
            .map(|(place, id)| {
                let known = optional(id);
                known.or_else(|| self.wrong(at.entry("referenceTaskIds", place), Wrong::Empty))
            })
            .collect();
        Some(Message {
            message_id: message_id?,
            context_id: optional(&message.context_id),
            task_id: optional(&message.task_id),
            role: role?,
            parts: parts?,
            metadata: metadata?,
            extensions: message.extensions.clone(),
            reference_task_ids: references.into_iter().collect::<Option<_>>()?,
        })
    }

    fn parts(&mut self, at: At<'_>, parts: &[wire::Part]) -> Option<Vec<Part>> {
        let parts = parts.iter().enumerate().map(|(place, part)| self.part(at.entry("parts", place), part));
        // All of them are looked at before the first that is wrong ends it.
        parts.collect::<Vec<_>>().into_iter().collect()
    }

    fn part(&mut self, at: At<'_>, part: &wire::Part) -> Option<Part> {
        let content = match &part.content {
            Some(part::Content::Text(text)) => Some(Content::Text(text.as_str().into())),
            Some(part::Content::Raw(bytes)) => Some(Content::Raw(bytes.clone())),
            Some(part::Content::Url(url)) => Some(Content::Url(url.as_str().into())),
            Some(part::Content::Data(data)) => self.json(at.field("data"), data).map(Content::Data),
            None => None,
        };
        let metadata = self.object(at.field("metadata"), part.metadata.as_ref());
        if part.content.is_none() {
            self.wrong::<()>(at, Wrong::NotOneContent);
        }
        let (filename, media_type) = (optional(&part.filename), optional(&part.media_type));
        Some(Part { content: content?, metadata: metadata?, filename, media_type })
    }

    pub(crate) fn state(&mut self, at: At<'_>, state: i32) -> Option<TaskState> {
        let known = usize::try_from(state).ok().and_then(|at| TaskState::ALL.get(at));
        known.copied().or_else(|| self.wrong(at, Wrong::STATE))
    }

    fn status(&mut self, at: At<'_>, status: Option<&wire::TaskStatus>) -> Option<TaskStatus> {
        let status = self.there(at, status)?;
        let state = self.state(at.field("state"), status.state);
        let message = match &status.message {
            Some(message) => self.message(at.field("message"), message, By::Anybody).map(|it| Some(Arc::new(it))),
            None => Some(None),
        };
        let timestamp = self.time(at.field("timestamp"), status.timestamp.as_ref());
        Some(TaskStatus { state: state?, message: message?, timestamp: timestamp? })
    }

    fn artifact(&mut self, at: At<'_>, artifact: &wire::Artifact) -> Option<Artifact> {
        let artifact_id = self.required(at.field("artifactId"), &artifact.artifact_id);
        let parts = self.parts(at, &artifact.parts);
        let metadata = self.object(at.field("metadata"), artifact.metadata.as_ref());
        Some(Artifact {
            artifact_id: artifact_id?,
            name: optional(&artifact.name),
            description: optional(&artifact.description),
            parts: Parts::from(parts?),
            metadata: metadata?,
            extensions: artifact.extensions.clone(),
        })
    }

    pub(crate) fn task(&mut self, at: At<'_>, task: &wire::Task) -> Option<Task> {
        let id = self.required(at.field("id"), &task.id);
        let status = self.status(at.field("status"), task.status.as_ref());
        let history = task
            .history
            .iter()
            .enumerate()
            .map(|(place, message)| self.message(at.entry("history", place), message, By::Anybody).map(Arc::new));
        let history = history.collect::<Option<_>>();
        let artifacts = task.artifacts.iter().enumerate();
        let artifacts =
            artifacts.map(|(place, artifact)| self.artifact(at.entry("artifacts", place), artifact).map(Arc::new));
        let artifacts = artifacts.collect::<Option<_>>();
        let metadata = self.object(at.field("metadata"), task.metadata.as_ref());
        Some(Task {
            id: id?,
            context_id: optional(&task.context_id),
            status: status?,
            history: history?,
            artifacts: artifacts?,
            metadata: metadata?,
        })
    }

    pub(crate) fn event(&mut self, at: At<'_>, event: &wire::StreamResponse) -> Option<StreamResponse> {
        use stream_response::Payload;
        Some(match self.there(at.field("payload"), event.payload.as_ref())? {
            Payload::Task(task) => StreamResponse::Task(self.task(at.field("task"), task)?.into()),
            Payload::Message(message) => {
                StreamResponse::Message(self.message(at.field("message"), message, By::Anybody)?.into())
            }
            Payload::StatusUpdate(update) => {
                let at = at.field("statusUpdate");
                let task_id = self.required(at.field("taskId"), &update.task_id);
                let context_id = self.required(at.field("contextId"), &update.context_id);
                let status = self.status(at.field("status"), update.status.as_ref());
                let metadata = self.object(at.field("metadata"), update.metadata.as_ref());
                StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
                    task_id: task_id?,
                    context_id: context_id?,
                    status: status?,
                    metadata: metadata?,
                })
            }
            Payload::ArtifactUpdate(update) => {
                let at = at.field("artifactUpdate");
                let task_id = self.required(at.field("taskId"), &update.task_id);
                let context_id = self.required(at.field("contextId"), &update.context_id);
                let artifact = self.there(at.field("artifact"), update.artifact.as_ref());
                let artifact = artifact.and_then(|artifact| self.artifact(at.field("artifact"), artifact));
                let metadata = self.object(at.field("metadata"), update.metadata.as_ref());
                StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                    task_id: task_id?,
                    context_id: context_id?,
                    artifact: artifact?.into(),
                    append: update.append,
                    last_chunk: update.last_chunk,
                    metadata: metadata?,
                })
            }
        })
    }
}

impl From<&Message> for wire::Message {
    fn from(message: &Message) -> Self {
        Self {
            message_id: message.message_id.to_string(),
            context_id: written(message.context_id.as_ref()),
            task_id: written(message.task_id.as_ref()),
            role: message.role as i32,
            parts: message.parts.iter().map(Into::into).collect(),
            metadata: data::fields(&message.metadata),
            extensions: message.extensions.clone(),
            reference_task_ids: message.reference_task_ids.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<&Part> for wire::Part {
    fn from(part: &Part) -> Self {
        let content = match &part.content {
            Content::Text(text) => part::Content::Text(text.to_string()),
            Content::Raw(bytes) => part::Content::Raw(bytes.clone()),
            Content::Url(url) => part::Content::Url(url.to_string()),
            Content::Data(data) => part::Content::Data(data::value(data)),
        };
        Self {
            content: Some(content),
            metadata: data::fields(&part.metadata),
            filename: written(part.filename.as_ref()),
            media_type: written(part.media_type.as_ref()),
        }
    }
}

impl From<&TaskStatus> for wire::TaskStatus {
    fn from(status: &TaskStatus) -> Self {
        Self {
            state: status.state as i32,
            message: status.message.as_deref().map(Into::into),
            timestamp: status.timestamp.map(data::time),
        }
    }
}

impl From<&Artifact> for wire::Artifact {
    fn from(artifact: &Artifact) -> Self {
        Self {
            artifact_id: artifact.artifact_id.to_string(),
            name: written(artifact.name.as_ref()),
            description: written(artifact.description.as_ref()),
            parts: artifact.parts.iter().map(Into::into).collect(),
            metadata: data::fields(&artifact.metadata),
            extensions: artifact.extensions.clone(),
        }
    }
}

impl From<&TaskView<'_>> for wire::Task {
    fn from(view: &TaskView<'_>) -> Self {
        let task = view.task();
        Self {
            id: task.id.to_string(),
            context_id: written(task.context_id.as_ref()),
            status: Some((&task.status).into()),
            artifacts: view.artifacts().iter().map(|artifact| (&**artifact).into()).collect(),
            history: view.history().iter().map(|message| (&**message).into()).collect(),
            metadata: data::fields(&task.metadata),
        }
    }
}

impl From<&StreamResponse> for wire::StreamResponse {
    fn from(event: &StreamResponse) -> Self {
        use stream_response::Payload;
        Self {
            payload: Some(match event {
                StreamResponse::Task(task) => Payload::Task((&task.view(None, true)).into()),
                StreamResponse::Message(message) => Payload::Message((&**message).into()),
                StreamResponse::StatusUpdate(update) => Payload::StatusUpdate(wire::TaskStatusUpdateEvent {
                    task_id: update.task_id.to_string(),
                    context_id: update.context_id.to_string(),
                    status: Some((&update.status).into()),
                    metadata: data::fields(&update.metadata),
                }),
                StreamResponse::ArtifactUpdate(update) => Payload::ArtifactUpdate(wire::TaskArtifactUpdateEvent {
                    task_id: update.task_id.to_string(),
                    context_id: update.context_id.to_string(),
                    artifact: Some((&*update.artifact).into()),
                    append: update.append,
                    last_chunk: update.last_chunk,
                    metadata: data::fields(&update.metadata),
                }),
            }),
        }
    }
}
