//! Push notification configs (specification 4.3).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{ConfigId, TaskId};
use crate::read;

/// Where a task's events are posted to, and with which credentials.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct TaskPushNotificationConfig {
    /// The tenant, where the agent has any.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Made by the server unless the client brings one; unique within the task.
    #[serde(default, deserialize_with = "read::id", skip_serializing_if = "Option::is_none")]
    pub id: Option<ConfigId>,
    /// The task. Absent only inside a send, where it is the task of the send.
    #[serde(default, deserialize_with = "read::id", skip_serializing_if = "Option::is_none", alias = "task_id")]
    pub task_id: Option<TaskId>,
    /// Where to post.
    #[serde(deserialize_with = "read::required")]
    pub url: String,
    /// Sent back with each post, so that the receiver can tell whose it is.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How the server shows who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationInfo>,
}
read::object!(TaskPushNotificationConfig);

/// How the server shows who it is to a webhook.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct AuthenticationInfo {
    /// The scheme of the `Authorization` header, such as `Bearer`.
    #[serde(deserialize_with = "read::required")]
    pub scheme: String,
    /// What follows the scheme.
    #[serde(default, deserialize_with = "read::text", skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}
read::object!(AuthenticationInfo);

/// Secrets stay out of logs: only that they are there is shown.
impl fmt::Debug for TaskPushNotificationConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPushNotificationConfig")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .field("url", &self.url)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("authentication", &self.authentication)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthenticationInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticationInfo").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
