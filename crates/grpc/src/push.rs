//! Webhooks.

use protocol::TaskPushNotificationConfig;
use protocol::push::AuthenticationInfo;

use crate::read::{At, Reading, optional, written};
use crate::wire;

impl Reading<'_> {
    /// A webhook. Its task has to be named, unless it is that of the send it came with.
    pub(crate) fn config(
        &mut self,
        at: At<'_>,
        config: &wire::TaskPushNotificationConfig,
        names_task: bool,
    ) -> Option<TaskPushNotificationConfig> {
        let tenant = self.text(at.field("tenant"), &config.tenant);
        let task_id = match names_task {
            true => self.required(at.field("taskId"), &config.task_id).map(Some),
            false => Some(optional(&config.task_id)),
        };
        let url: Option<String> = self.required(at.field("url"), &config.url);
        if url.is_some() {
            self.ask(at.field("url"), &config.url);
        }
        let authentication = match &config.authentication {
            Some(wire::AuthenticationInfo { scheme, credentials }) => {
                let scheme = self.required(at.field("authentication").field("scheme"), scheme);
                scheme.map(|scheme| Some(AuthenticationInfo { scheme, credentials: optional(credentials) }))
            }
            None => Some(None),
        };
        Some(TaskPushNotificationConfig {
            tenant,
            id: optional(&config.id),
            task_id: task_id?,
            url: url?,
            token: optional(&config.token),
            authentication: authentication?,
        })
    }
}

impl From<&TaskPushNotificationConfig> for wire::TaskPushNotificationConfig {
    fn from(config: &TaskPushNotificationConfig) -> Self {
        let authentication = config.authentication.as_ref();
        Self {
            tenant: written(config.tenant.as_ref()),
            id: written(config.id.as_ref()),
            task_id: written(config.task_id.as_ref()),
            url: config.url.clone(),
            token: written(config.token.as_ref()),
            authentication: authentication.map(|shown| wire::AuthenticationInfo {
                scheme: shown.scheme.clone(),
                credentials: written(shown.credentials.as_ref()),
            }),
        }
    }
}
