//! Calls about a task's webhooks.

use std::sync::Arc;

use protocol::{ConfigId, Error, ErrorKind, TaskId, TaskPushNotificationConfig};

use super::{Caller, Engine, to_the_end};

impl Engine {
    pub fn check_config(&self, config: &TaskPushNotificationConfig, field: &str) -> Result<(), Error> {
        if !self.promises.push {
            return Err(ErrorKind::PushNotificationNotSupported.into());
        }
        self.pusher.check(config, field)
    }

    pub fn push_is_supported(&self) -> Result<(), Error> {
        if self.promises.push { Ok(()) } else { Err(ErrorKind::PushNotificationNotSupported.into()) }
    }

    pub async fn create_config(
        self: &Arc<Self>,
        caller: &Caller,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, Error> {
        self.push_is_supported()?;
        let Some(id) = config.task_id.clone() else { return Err(Error::invalid("taskId", "taskId is required")) };
        let slot = self.slot(caller, &id).await?;
        self.check_config(&config, "")?;
        let engine = self.clone();
        let kept = to_the_end(async move {
            let mut state = slot.lock().await;
            slot.add_config(&engine, &mut state, config).await
        });
        kept.await.unwrap_or_else(|| Err(ErrorKind::Internal.into()))
    }

    pub async fn get_config(
        &self,
        caller: &Caller,
        task: &TaskId,
        id: &ConfigId,
    ) -> Result<TaskPushNotificationConfig, Error> {
        let configs = self.list_configs(caller, task).await?;
        let found = configs.into_iter().find(|config| config.id.as_ref() == Some(id));
        found.ok_or_else(|| Error::task_not_found(task))
    }

    pub async fn list_configs(&self, caller: &Caller, task: &TaskId) -> Result<Vec<TaskPushNotificationConfig>, Error> {
        self.push_is_supported()?;
        self.get(caller, task).await?;
        self.store.configs(task).await.map_err(|cause| self.internal(&cause))
    }

    pub async fn delete_config(&self, caller: &Caller, task: &TaskId, id: &ConfigId) -> Result<(), Error> {
        self.push_is_supported()?;
        let slot = self.slot(caller, task).await?;
        slot.drop_config(self, id).await.map_err(|cause| self.internal(&cause))
    }
}
