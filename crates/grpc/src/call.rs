//! Requests: a [`Call`] out of a message, and a message out of a [`Call`].

use bytes::Bytes;
use prost::{DecodeError, Message};
use protocol::call::{
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfigRequest,
};
use protocol::check::{Rules, no_rules};
use protocol::{Call, Error, ErrorKind, Method, TaskState};

use crate::data;
use crate::depth::{self, TooDeep};
use crate::read::{At, Reading, optional, written};
use crate::task::By;
use crate::wire;

/// Reads the request of an operation. The error names every field that is wrong (DECISIONS W7), or says that these
/// bytes are no such message.
pub fn read(method: Method, message: Bytes) -> Result<Call, Error> {
    read_by(method, message, &no_rules)
}

/// Reads the request of an operation for a server with rules of its own. The error names what they find too.
pub fn read_by(method: Method, message: Bytes, rules: &Rules<'_>) -> Result<Call, Error> {
    let mut reading = Reading::by(rules);
    let call = reading.call(method, message.clone()).or_else(|_| {
        reading.found = depth::found(method, message);
        if reading.found.is_empty() { Err(ErrorKind::Parse) } else { Ok(None) }
    })?;
    call.filter(|_| reading.found.is_empty()).ok_or_else(|| Error::violations(reading.found.into()))
}

const WHOLE: At<'_> = At::Whole;

impl Reading<'_> {
    fn call(&mut self, method: Method, message: Bytes) -> Result<Option<Call>, DecodeError> {
        Ok(match method {
            Method::SendMessage => self.send(&Message::decode(message)?).map(Call::SendMessage),
            Method::SendStreamingMessage => self.send(&Message::decode(message)?).map(Call::SendStreamingMessage),
            Method::GetTask => self.get(&Message::decode(message)?).map(Call::GetTask),
            Method::ListTasks => self.list(&Message::decode(message)?).map(Call::ListTasks),
            Method::CancelTask => self.cancel(&Message::decode(message)?).map(Call::CancelTask),
            Method::SubscribeToTask => {
                let wire::SubscribeToTaskRequest { tenant, id } = Message::decode(message)?;
                let tenant = self.tenant(&tenant);
                let id = self.required(WHOLE.field("id"), &id);
                id.map(|id| Call::SubscribeToTask(SubscribeToTaskRequest { tenant, id }))
            }
            Method::CreateTaskPushNotificationConfig => {
                let config = self.config(WHOLE, &Message::decode(message)?, true);
                config.map(Call::CreateTaskPushNotificationConfig)
            }
            Method::GetTaskPushNotificationConfig => {
                let wire::GetTaskPushNotificationConfigRequest { tenant, task_id, id } = Message::decode(message)?;
                self.one_config(&tenant, &task_id, &id).map(Call::GetTaskPushNotificationConfig)
            }
            Method::DeleteTaskPushNotificationConfig => {
                let wire::DeleteTaskPushNotificationConfigRequest { tenant, task_id, id } = Message::decode(message)?;
                self.one_config(&tenant, &task_id, &id).map(Call::DeleteTaskPushNotificationConfig)
            }
            Method::ListTaskPushNotificationConfigs => {
                self.list_configs(&Message::decode(message)?).map(Call::ListTaskPushNotificationConfigs)
            }
            Method::GetExtendedAgentCard => {
                let wire::GetExtendedAgentCardRequest { tenant } = Message::decode(message)?;
                Some(Call::GetExtendedAgentCard(GetExtendedAgentCardRequest { tenant: self.tenant(&tenant) }))
            }
        })
    }

    fn send(&mut self, request: &wire::SendMessageRequest) -> Option<SendMessageRequest> {
        let tenant = self.tenant(&request.tenant);
        let message = self.there(WHOLE.field("message"), request.message.as_ref());
        let message = message.and_then(|message| self.message(WHOLE.field("message"), message, By::Client));
        let configuration = match &request.configuration {
            Some(configuration) => self.configuration(WHOLE.field("configuration"), configuration).map(Some),
            None => Some(None),
        };
        let metadata = self.object(WHOLE.field("metadata"), request.metadata.as_ref());
        Some(SendMessageRequest { tenant, message: message?, configuration: configuration?, metadata: metadata? })
    }

    fn configuration(
        &mut self,
        at: At<'_>,
        configuration: &wire::SendMessageConfiguration,
    ) -> Option<SendMessageConfiguration> {
        let history_length = self.not_negative(at.field("historyLength"), configuration.history_length);
        let webhook = match &configuration.task_push_notification_config {
            Some(config) => self.config(at.field("taskPushNotificationConfig"), config, false).map(Some),
            None => Some(None),
        };
        Some(SendMessageConfiguration {
            accepted_output_modes: configuration.accepted_output_modes.clone(),
            history_length,
            return_immediately: configuration.return_immediately,
            task_push_notification_config: webhook?,
        })
    }

    fn get(&mut self, request: &wire::GetTaskRequest) -> Option<GetTaskRequest> {
        let tenant = self.tenant(&request.tenant);
        let id = self.required(WHOLE.field("id"), &request.id);
        let history_length = self.not_negative(WHOLE.field("historyLength"), request.history_length);
        Some(GetTaskRequest { tenant, id: id?, history_length })
    }

    fn list(&mut self, request: &wire::ListTasksRequest) -> Option<ListTasksRequest> {
        let tenant = self.tenant(&request.tenant);
        let status = self.state(WHOLE.field("status"), request.status);
        let page_size = self.within(WHOLE.field("pageSize"), request.page_size, 1, 100);
        let page_token = self.text(WHOLE.field("pageToken"), &request.page_token);
        let history_length = self.not_negative(WHOLE.field("historyLength"), request.history_length);
        let after = self.time(WHOLE.field("statusTimestampAfter"), request.status_timestamp_after.as_ref());
        Some(ListTasksRequest {
            tenant,
            context_id: optional(&request.context_id),
            status: Some(status?).filter(|status| *status != TaskState::Unspecified),
            page_size,
            page_token,
            history_length,
            status_timestamp_after: after?,
            include_artifacts: request.include_artifacts,
        })
    }

    fn cancel(&mut self, request: &wire::CancelTaskRequest) -> Option<CancelTaskRequest> {
        let tenant = self.tenant(&request.tenant);
        let id = self.required(WHOLE.field("id"), &request.id);
        let metadata = self.object(WHOLE.field("metadata"), request.metadata.as_ref());
        Some(CancelTaskRequest { tenant, id: id?, metadata: metadata? })
    }

    fn one_config(&mut self, tenant: &str, task_id: &str, id: &str) -> Option<TaskPushNotificationConfigRequest> {
        let tenant = self.tenant(tenant);
        let task_id = self.required(WHOLE.field("taskId"), task_id);
        let id = self.required(WHOLE.field("id"), id);
        Some(TaskPushNotificationConfigRequest { tenant, task_id: task_id?, id: id? })
    }

    fn list_configs(
        &mut self,
        request: &wire::ListTaskPushNotificationConfigsRequest,
    ) -> Option<ListTaskPushNotificationConfigsRequest> {
        let tenant = self.tenant(&request.tenant);
        let task_id = self.required(WHOLE.field("taskId"), &request.task_id);
        let stated = Some(request.page_size).filter(|size| *size != 0);
        let page_size = self.not_negative(WHOLE.field("pageSize"), stated);
        let page_token = self.text(WHOLE.field("pageToken"), &request.page_token);
        Some(ListTaskPushNotificationConfigsRequest { tenant, task_id: task_id?, page_size, page_token })
    }
}

/// Writes the request of a call. The error is that it holds what no other side would read.
pub fn write(call: &Call) -> Result<Bytes, TooDeep> {
    depth::call(call)?;
    let bytes = match call {
        Call::SendMessage(request) | Call::SendStreamingMessage(request) => send(request).encode_to_vec(),
        Call::GetTask(request) => wire::GetTaskRequest {
            tenant: written(request.tenant.as_ref()),
            id: request.id.to_string(),
            history_length: request.history_length,
        }
        .encode_to_vec(),
        Call::ListTasks(request) => wire::ListTasksRequest {
            tenant: written(request.tenant.as_ref()),
            context_id: written(request.context_id.as_ref()),
            status: request.status.unwrap_or_default() as i32,
            page_size: request.page_size,
            page_token: written(request.page_token.as_ref()),
            history_length: request.history_length,
            status_timestamp_after: request.status_timestamp_after.map(data::time),
            include_artifacts: request.include_artifacts,
        }
        .encode_to_vec(),
        Call::CancelTask(request) => wire::CancelTaskRequest {
            tenant: written(request.tenant.as_ref()),
            id: request.id.to_string(),
            metadata: data::fields(&request.metadata),
        }
        .encode_to_vec(),
        Call::SubscribeToTask(request) => {
            wire::SubscribeToTaskRequest { tenant: written(request.tenant.as_ref()), id: request.id.to_string() }
                .encode_to_vec()
        }
        Call::CreateTaskPushNotificationConfig(config) => {
            wire::TaskPushNotificationConfig::from(config).encode_to_vec()
        }
        // The two requests have the same fields with the same numbers.
        Call::GetTaskPushNotificationConfig(request) | Call::DeleteTaskPushNotificationConfig(request) => {
            wire::GetTaskPushNotificationConfigRequest {
                tenant: written(request.tenant.as_ref()),
                task_id: request.task_id.to_string(),
                id: request.id.to_string(),
            }
            .encode_to_vec()
        }
        Call::ListTaskPushNotificationConfigs(request) => wire::ListTaskPushNotificationConfigsRequest {
            tenant: written(request.tenant.as_ref()),
            task_id: request.task_id.to_string(),
            page_size: request.page_size.unwrap_or_default(),
            page_token: written(request.page_token.as_ref()),
        }
        .encode_to_vec(),
        Call::GetExtendedAgentCard(request) => {
            wire::GetExtendedAgentCardRequest { tenant: written(request.tenant.as_ref()) }.encode_to_vec()
        }
    };
    Ok(bytes.into())
}

fn send(request: &SendMessageRequest) -> wire::SendMessageRequest {
    let configuration = request.configuration.as_ref();
    wire::SendMessageRequest {
        tenant: written(request.tenant.as_ref()),
        message: Some((&request.message).into()),
        configuration: configuration.map(|configuration| wire::SendMessageConfiguration {
            accepted_output_modes: configuration.accepted_output_modes.clone(),
            task_push_notification_config: configuration.task_push_notification_config.as_ref().map(Into::into),
            history_length: configuration.history_length,
            return_immediately: configuration.return_immediately,
        }),
        metadata: data::fields(&request.metadata),
    }
}
