//! A foreign client of gRPC: it knows the service by its descriptors alone, and makes messages of JSON and JSON of
//! messages as ProtoJSON says, with none of the workspace's own code.

use grpc::Raw;
use http::HeaderMap;
use prost_reflect::prost::Message;
use prost_reflect::prost::bytes::Bytes;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::{Value, json};
use tonic::codec::Streaming;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Status};

use crate::agent::Served;
use crate::talk::Answer;

/// The messages of a stream.
pub(crate) struct Messages {
    messages: Streaming<Bytes>,
    descriptor: MessageDescriptor,
}

impl Messages {
    /// The next message; an error shows as the last one.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        match self.messages.message().await {
            Ok(message) => message.map(|message| shown(self.descriptor.clone(), &message)),
            Err(status) => Some(json!({"error": shown_status(&status)})),
        }
    }
}

fn descriptor(method: &str) -> MethodDescriptor {
    let pool = DescriptorPool::decode(grpc::DESCRIPTORS).unwrap();
    let service = pool.get_service_by_name("lf.a2a.v1.A2AService").unwrap();
    let known = service.methods().find(|known| known.name() == method);
    known.unwrap_or_else(|| panic!("no such method: {method}"))
}

fn shown(descriptor: MessageDescriptor, bytes: &[u8]) -> Value {
    let message = DynamicMessage::decode(descriptor.clone(), bytes).unwrap();
    let mut shown = serde_json::to_value(&message).unwrap();
    three_decimals(&mut shown);
    // These have to be there in JSON, and cannot be there in protobuf when they are empty.
    if descriptor.name() == "ListTasksResponse" {
        for (name, empty) in
            [("tasks", json!([])), ("nextPageToken", json!("")), ("pageSize", json!(0)), ("totalSize", json!(0))]
        {
            shown.as_object_mut().unwrap().entry(name).or_insert(empty);
        }
    }
    shown
}

/// ProtoJSON leaves the decimals of a moment out when all are zero.
fn three_decimals(shown: &mut Value) {
    match shown {
        Value::Array(items) => items.iter_mut().for_each(three_decimals),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name == "timestamp" && text.len() == "2026-10-06T09:00:00Z".len() => {
                        *text = text.replace('Z', ".000Z");
                    }
                    value => three_decimals(value),
                }
            }
        }
        _ => {}
    }
}

/// A status as HTTP+JSON would show it, with its own code.
fn shown_status(status: &Status) -> Value {
    let pool = DescriptorPool::decode(tonic_types::pb::FILE_DESCRIPTOR_SET).unwrap();
    let details = pool.get_message_by_name("google.rpc.Status").unwrap();
    let details = serde_json::to_value(DynamicMessage::decode(details, status.details()).unwrap()).unwrap();
    let mut error = json!({"code": i32::from(status.code()), "message": status.message()});
    if let Some(details) = details.get("details") {
        error["details"] = details.clone();
    }
    error
}

fn request(message: Bytes, headers: &[(&str, &str)]) -> Request<Bytes> {
    let mut metadata = HeaderMap::new();
    let version = ("a2a-version", "1.0");
    let usual = if headers.iter().any(|(name, _)| *name == version.0) { None } else { Some(&version) };
    for (name, value) in usual.into_iter().chain(headers).filter(|(_, value)| !value.is_empty()) {
        metadata.append(http::HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    Request::from_parts(MetadataMap::from_headers(metadata), Default::default(), message)
}

fn message(method: &MethodDescriptor, params: &Value) -> Bytes {
    // What protobuf does not know is left out, as a client of another version would.
    let generous = DeserializeOptions::new().deny_unknown_fields(false);
    let message = DynamicMessage::deserialize_with_options(method.input(), params, &generous);
    let message = message.unwrap_or_else(|cause| panic!("protobuf cannot say {params}: {cause}"));
    message.encode_to_vec().into()
}

async fn open(served: &Served, path: &str, request: Request<Bytes>) -> Result<(HeaderMap, Streaming<Bytes>), Status> {
    let mut client = tonic::client::Grpc::new(served.grpc.clone()).max_decoding_message_size(usize::MAX);
    client.ready().await.map_err(|cause| Status::from_error(cause.into()))?;
    let path = path.parse().unwrap();
    let (metadata, messages, _) = client.server_streaming(request, path, Raw).await?.into_parts();
    Ok((metadata.into_headers(), messages))
}

fn refused(status: Status) -> Answer {
    let body = json!({"error": shown_status(&status)});
    Answer { status: 200, headers: status.metadata().clone().into_headers(), body }
}

fn path(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// Sends any bytes as the message of any method. The answer is there when it is an error.
pub(crate) async fn raw(served: &Served, path: &str, message: Bytes) -> Option<Answer> {
    let answered = async {
        let (_, mut messages) = open(served, path, request(message, &[])).await?;
        while messages.message().await?.is_some() {}
        Ok(())
    };
    answered.await.err().map(refused)
}

/// Makes a call and reads the whole answer.
pub(crate) async fn call(served: &Served, method: &str, params: &Value, headers: &[(&str, &str)]) -> Answer {
    let method = descriptor(method);
    let answered = async {
        let (headers, mut messages) = open(served, &path(&method), request(message(&method, params), headers)).await?;
        let message = messages.message().await?.ok_or(Status::new(Code::Unknown, "no message came"))?;
        assert!(method.is_server_streaming() || messages.message().await?.is_none(), "one message and no more");
        Ok((headers, message))
    };
    match answered.await {
        Ok((headers, message)) => Answer { status: 200, headers, body: shown(method.output(), &message) },
        Err(status) => refused(status),
    }
}

/// Makes a call whose answer is a stream. The other answer is given back as an error.
pub(crate) async fn stream(
    served: &Served,
    method: &str,
    params: &Value,
    headers: &[(&str, &str)],
) -> Result<Messages, Answer> {
    let method = descriptor(method);
    let request = request(message(&method, params), headers);
    let (_, messages) = open(served, &path(&method), request).await.map_err(refused)?;
    Ok(Messages { messages, descriptor: method.output() })
}
