//! The error table on this wire: a status with its details in `grpc-status-details-bin` (specification 10.6).

use protocol::Json;
use protocol::error::{BAD_REQUEST, DOMAIN, Detail, ERROR_INFO, Error, RemoteError};
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::{BadRequest, ErrorDetail, ErrorInfo, FieldViolation, StatusExt};

/// An error as a status. What has a name carries an ErrorInfo, what names fields a BadRequest, as on the other bindings.
pub fn of(error: &Error) -> Status {
    let code = Code::from_i32(error.kind().grpc_status().number());
    let message = error.kind().message();
    let details = error.details().into_iter().flatten().map(|detail| match detail {
        Detail::ErrorInfo { reason, metadata } => {
            let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), value.clone().into_owned()));
            ErrorInfo::new(reason, DOMAIN, metadata.collect::<std::collections::HashMap<_, _>>()).into()
        }
        Detail::BadRequest(violations) => {
            let violations = violations.iter();
            BadRequest::new(violations.map(|it| FieldViolation::new(&it.field, &it.description)).collect::<Vec<_>>())
                .into()
        }
    });
    let details: Vec<ErrorDetail> = details.collect();
    if details.is_empty() { Status::new(code, message) } else { Status::with_error_details_vec(code, message, details) }
}

/// A status as a client reads it. Its code is the number of the gRPC status, and its data what HTTP+JSON would have as
/// details.
pub fn remote(status: &Status) -> RemoteError {
    let details = status.get_error_details_vec();
    let details: Vec<Value> = details.iter().filter_map(shown).collect();
    let data = if details.is_empty() { None } else { Json::of(&details).ok() };
    RemoteError { code: i32::from(status.code()).into(), message: status.message().to_owned(), data }
}

fn shown(detail: &ErrorDetail) -> Option<Value> {
    match detail {
        ErrorDetail::ErrorInfo(ErrorInfo { reason, domain, metadata }) if metadata.is_empty() => {
            Some(json!({"@type": ERROR_INFO, "reason": reason, "domain": domain}))
        }
        ErrorDetail::ErrorInfo(ErrorInfo { reason, domain, metadata }) => {
            Some(json!({"@type": ERROR_INFO, "reason": reason, "domain": domain, "metadata": metadata}))
        }
        ErrorDetail::BadRequest(BadRequest { field_violations }) => {
            let violations = field_violations.iter();
            let violations: Vec<Value> =
                violations.map(|it| json!({"field": it.field, "description": it.description})).collect();
            Some(json!({"@type": BAD_REQUEST, "fieldViolations": violations}))
        }
        _ => None,
    }
}
