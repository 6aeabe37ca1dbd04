//! What was asked for and who has approved: it is kept with the task, in the metadata of each status message.

use std::sync::Arc;

use protocol::{Json, Object, Part, Task};
use serde::{Deserialize, Serialize};
use server::Fault;

use super::audit::Told;
use super::place::Build;

/// The member of a status message's metadata that holds the order.
const ORDER: &str = "deploy";

/// What was asked for, and who has allowed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Back to a build that was live before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
    pub environment: String,
    #[serde(flatten)]
    pub build: Build,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    pub approvals: u8,
    #[serde(default)]
    pub approved_by: Vec<String>,
}

impl Order {
    /// The order that a task's last status carries.
    pub fn of(task: &Task) -> Option<Self> {
        let message = task.status.message.as_ref()?;
        message.parts.iter().find_map(|part| part.metadata.as_ref()?.member(ORDER)?.read().ok())
    }

    pub fn is_approved(&self) -> bool {
        self.approved_by.len() >= usize::from(self.approvals)
    }

    /// Words with the order beside them.
    pub fn says(&self, words: impl Into<Arc<str>>) -> Result<Vec<Part>, Fault> {
        let metadata = Object::parse("{}")?.with(ORDER, &Json::of(self)?)?;
        Ok(vec![Part { metadata: Some(metadata), ..Part::text(words) }])
    }

    /// "deploy" or "rollback".
    pub fn action(&self) -> &'static str {
        if self.back { "rollback" } else { "deploy" }
    }

    /// An entry of the audit log about it.
    pub fn told(&self, event: &str, task: &str, by: Option<&str>, words: Option<String>) -> Told {
        Told {
            event: event.to_owned(),
            task: Some(task.to_owned()),
            environment: Some(self.environment.clone()),
            build: Some(self.build.name.clone()),
            sha256: Some(self.build.sha256.clone()),
            by: by.map(str::to_owned),
            words,
        }
    }
}
