//! The errors of the protocol: one table for all bindings (specification 5.4, DECISIONS W7).

use std::borrow::Cow;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::id::TaskId;
use crate::json::Json;
use crate::read;
use crate::task::TaskState;

/// What went wrong, in the protocol's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The body is no JSON.
    Parse,
    /// The body is JSON, but no request.
    InvalidRequest,
    /// No such operation.
    MethodNotFound,
    /// The operation's parameters are wrong; the violations say which.
    InvalidParams,
    /// The server failed. The cause is in its log, never in the answer.
    Internal,
    /// No such task, or none that this caller may see.
    TaskNotFound,
    /// The task has ended.
    TaskNotCancelable,
    /// The agent does not send push notifications.
    PushNotificationNotSupported,
    /// The agent does not do this, or not in this state of the task.
    UnsupportedOperation,
    /// A part has a media type that the agent does not take.
    ContentTypeNotSupported,
    /// The agent's own answer made no sense.
    InvalidAgentResponse,
    /// The card promises an extended card that is not set.
    ExtendedAgentCardNotConfigured,
    /// The agent requires an extension that the client did not name.
    ExtensionSupportRequired,
    /// The agent does not speak the version asked for.
    VersionNotSupported,
}

/// One row of the table.
struct Row {
    code: i32,
    http_status: u16,
    grpc_status: GrpcStatus,
    /// Empty for the errors of JSON-RPC itself, which carry no `ErrorInfo`.
    reason: &'static str,
    message: &'static str,
}

/// The gRPC status codes that the table uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrpcStatus {
    /// Code 3.
    InvalidArgument,
    /// Code 5.
    NotFound,
    /// Code 9.
    FailedPrecondition,
    /// Code 12.
    Unimplemented,
    /// Code 13.
    Internal,
}

impl GrpcStatus {
    /// The number on the gRPC wire.
    pub fn number(self) -> i32 {
        match self {
            Self::InvalidArgument => 3,
            Self::NotFound => 5,
            Self::FailedPrecondition => 9,
            Self::Unimplemented => 12,
            Self::Internal => 13,
        }
    }

    /// The word in an HTTP+JSON error body.
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NotFound => "NOT_FOUND",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
        }
    }
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
    ];

    fn row(self) -> Row {
        use GrpcStatus::{FailedPrecondition, Internal, InvalidArgument, NotFound, Unimplemented};
        let (code, http_status, grpc_status, reason, message) = match self {
            Self::Parse => (-32700, 400, InvalidArgument, "", "Invalid JSON payload"),
            Self::InvalidRequest => (-32600, 400, InvalidArgument, "", "Request payload validation error"),
            Self::MethodNotFound => (-32601, 404, Unimplemented, "", "Method not found"),
            Self::InvalidParams => (-32602, 400, InvalidArgument, "", "Invalid parameters"),
            Self::Internal => (-32603, 500, Internal, "", "Internal error"),
            Self::TaskNotFound => (-32001, 404, NotFound, "TASK_NOT_FOUND", "Task not found"),
            Self::TaskNotCancelable => {
                (-32002, 400, FailedPrecondition, "TASK_NOT_CANCELABLE", "Task cannot be canceled")
            }
            Self::PushNotificationNotSupported => (
                -32003,
                400,
                FailedPrecondition,
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
                "Push notifications are not supported",
            ),
            Self::UnsupportedOperation => {
                (-32004, 400, FailedPrecondition, "UNSUPPORTED_OPERATION", "This operation is not supported")
            }
            Self::ContentTypeNotSupported => {
                (-32005, 400, InvalidArgument, "CONTENT_TYPE_NOT_SUPPORTED", "Content type not supported")
            }
            Self::InvalidAgentResponse => (-32006, 500, Internal, "INVALID_AGENT_RESPONSE", "Invalid agent response"),
            Self::ExtendedAgentCardNotConfigured => (
                -32007,
                400,
                FailedPrecondition,
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
                "Extended agent card is not configured",
            ),
            Self::ExtensionSupportRequired => {
                (-32008, 400, FailedPrecondition, "EXTENSION_SUPPORT_REQUIRED", "Extension support is required")
            }
            Self::VersionNotSupported => {
                (-32009, 400, FailedPrecondition, "VERSION_NOT_SUPPORTED", "Protocol version not supported")
            }
        };
        Row { code, http_status, grpc_status, reason, message }
    }

    /// The JSON-RPC error code.
    pub fn code(self) -> i32 {
        self.row().code
    }

    /// The kind of a JSON-RPC error code, if it is one of the table's.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The HTTP status on HTTP+JSON.
    pub fn http_status(self) -> u16 {
        self.row().http_status
    }

    /// The gRPC status; its word also stands in HTTP+JSON error bodies.
    pub fn grpc_status(self) -> GrpcStatus {
        self.row().grpc_status
    }

    /// The word that HTTP+JSON writes: that of the HTTP status, so an unknown method is NOT_FOUND there.
    pub fn http_word(self) -> &'static str {
        match self {
            Self::MethodNotFound => GrpcStatus::NotFound.word(),
            other => other.grpc_status().word(),
        }
    }

    /// The `reason` of the ErrorInfo; `None` for the errors of JSON-RPC itself.
    pub fn reason(self) -> Option<&'static str> {
        Some(self.row().reason).filter(|reason| !reason.is_empty())
    }

    /// The message text.
    pub fn message(self) -> &'static str {
        self.row().message
    }
}

/// A field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct FieldViolation {
    /// Its path, such as `message.parts[1].raw`.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}
read::object!(FieldViolation);

/// An error as every binding can write it. Boxed, because answers are small and errors are rare.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{} {}", .0.kind.code(), .0.kind.message())]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    kind: ErrorKind,
    metadata: Vec<(&'static str, Cow<'static, str>)>,
    violations: Vec<FieldViolation>,
}

/// The `@type` of an ErrorInfo.
pub const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// The `@type` of a BadRequest.
pub const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
/// The domain of every ErrorInfo.
pub const DOMAIN: &str = "a2a-protocol.org";

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, metadata: Vec::new(), violations: Vec::new() }))
    }
}

impl Error {
    /// The same error with one more thing said about it.
    pub fn with(mut self, key: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.0.metadata.push((key, value.into()));
        self
    }

    /// No such task.
    pub fn task_not_found(id: &TaskId) -> Self {
        Self::from(ErrorKind::TaskNotFound).with("taskId", id.to_string())
    }

    /// The task has ended, so it takes no cancel.
    pub fn not_cancelable(id: &TaskId, state: TaskState) -> Self {
        Self::from(ErrorKind::TaskNotCancelable).with("taskId", id.to_string()).with("state", state.word())
    }

    /// The task's state does not allow this.
    pub fn unsupported_in(id: &TaskId, state: TaskState) -> Self {
        Self::from(ErrorKind::UnsupportedOperation).with("taskId", id.to_string()).with("state", state.word())
    }

    /// A part's media type is not taken.
    pub fn content_type(media_type: &str) -> Self {
        Self::from(ErrorKind::ContentTypeNotSupported).with("mediaType", media_type.to_owned())
    }

    /// One field is wrong.
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::violations(vec![FieldViolation { field: field.into(), description: description.into() }])
    }

    /// Several fields are wrong.
    pub fn violations(violations: Vec<FieldViolation>) -> Self {
        Self(Box::new(Inner { kind: ErrorKind::InvalidParams, metadata: Vec::new(), violations }))
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is said about it.
    pub fn metadata(&self) -> &[(&'static str, Cow<'static, str>)] {
        &self.0.metadata
    }

    /// The fields that are wrong.
    pub fn field_violations(&self) -> &[FieldViolation] {
        &self.0.violations
    }

    /// The `data` of JSON-RPC and the `details` of HTTP+JSON: one element, or none.
    pub fn details(&self) -> Option<[Detail<'_>; 1]> {
        if !self.0.violations.is_empty() {
            return Some([Detail::BadRequest(&self.0.violations)]);
        }
        let reason = self.0.kind.reason()?;
        Some([Detail::ErrorInfo { reason, metadata: &self.0.metadata }])
    }
}

/// One typed detail of an error.
#[derive(Debug, Clone, Copy)]
pub enum Detail<'a> {
    /// `google.rpc.ErrorInfo`.
    ErrorInfo {
        /// The error's name in capitals.
        reason: &'static str,
        /// What is said about it.
        metadata: &'a [(&'static str, Cow<'static, str>)],
    },
    /// `google.rpc.BadRequest`.
    BadRequest(&'a [FieldViolation]),
}

impl Serialize for Detail<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut detail = serializer.serialize_struct("Detail", 4)?;
        match self {
            Self::ErrorInfo { reason, metadata } => {
                detail.serialize_field("@type", ERROR_INFO)?;
                detail.serialize_field("reason", reason)?;
                detail.serialize_field("domain", DOMAIN)?;
                if !metadata.is_empty() {
                    detail.serialize_field("metadata", &Pairs(metadata))?;
                }
            }
            Self::BadRequest(violations) => {
                detail.serialize_field("@type", BAD_REQUEST)?;
                detail.serialize_field("fieldViolations", violations)?;
            }
        }
        detail.end()
    }
}

struct Pairs<'a>(&'a [(&'static str, Cow<'static, str>)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// The JSON-RPC form: `code, message, [data]`.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut error = serializer.serialize_struct("Error", 3)?;
        error.serialize_field("code", &self.0.kind.code())?;
        error.serialize_field("message", self.0.kind.message())?;
        if let Some(details) = self.details() {
            error.serialize_field("data", &details)?;
        }
        error.end()
    }
}

/// The HTTP+JSON form: `{"error": {code, status, message, [details]}}` (specification 11.6).
#[derive(Debug, Clone, Copy)]
pub struct HttpError<'a>(pub &'a Error);

impl Serialize for HttpError<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Status<'a>(&'a Error);

        impl Serialize for Status<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let kind = self.0.kind();
                let mut status = serializer.serialize_struct("Status", 4)?;
                status.serialize_field("code", &kind.http_status())?;
                status.serialize_field("status", kind.http_word())?;
                status.serialize_field("message", kind.message())?;
                if let Some(details) = self.0.details() {
                    status.serialize_field("details", &details)?;
                }
                status.end()
            }
        }

        let mut body = serializer.serialize_struct("HttpError", 1)?;
        body.serialize_field("error", &Status(self.0))?;
        body.end()
    }
}

/// An error as a client reads it off the wire, from any server: nothing but the code and the message is certain.
#[derive(Debug, Clone, PartialEq, Deserialize, thiserror::Error)]
#[error("error {code}: {message}")]
#[serde(remote = "Self")]
pub struct RemoteError {
    /// The JSON-RPC code, the HTTP status on HTTP+JSON, or the number of the status on gRPC.
    pub code: i64,
    /// The server's words.
    #[serde(default, deserialize_with = "read::or_default")]
    pub message: String,
    /// Whatever else it sent.
    #[serde(default, alias = "details")]
    pub data: Option<Json>,
}
read::object!(read RemoteError);

impl RemoteError {
    /// The `reason` of the first ErrorInfo among the details, if there is one.
    pub fn reason(&self) -> Option<String> {
        let details: Vec<serde_json::Value> = self.data.as_ref()?.read().ok()?;
        let reason = details.iter().find_map(|detail| detail.get("reason")?.as_str())?;
        Some(reason.to_owned())
    }
}
