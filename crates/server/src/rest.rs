//! The HTTP+JSON binding (specification 11): paths, verbs and query parameters in front of the same operations.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use http::{HeaderValue, Method as Verb, Request, Response, StatusCode, header};
use protocol::{Call, Error, ErrorKind, Method, media};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::host::{Envelope, Host, plain_error};
use crate::jsonrpc::{echo, other_type};

/// A path, understood.
#[derive(Debug, PartialEq)]
struct Route {
    method: Method,
    tenant: Option<String>,
    /// What the path says about the request: `id`, `taskId`.
    named: Named,
}

/// Members of the request by their names.
type Named = Vec<(&'static str, String)>;

/// Why a path leads nowhere.
#[derive(Debug, PartialEq)]
enum NoRoute {
    /// Nothing is here.
    NotFound,
    /// Something is here, for these verbs.
    Allow(&'static str),
}

/// Finds the operation of a verb and a path below the binding's own, slash first. A verb of the `:cancel` kind is only
/// taken from a literal end of the last segment; ids are percent-decoded once, so an id may hold any character.
fn route(verb: &Verb, path: &str) -> Result<Route, NoRoute> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut segments: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    let known = |first: &str| matches!(first, "message:send" | "message:stream" | "tasks" | "extendedAgentCard");
    let mut tenant = None;
    if segments.len() > 1 && !known(segments[0]) && known(segments[1]) {
        tenant = Some(decoded(segments.remove(0)).ok_or(NoRoute::NotFound)?);
    }
    let id = |text: &str| decoded(text).filter(|id| !id.is_empty()).ok_or(NoRoute::NotFound);
    let (methods, named): (&[(Verb, Method)], Named) = match segments.as_slice() {
        ["message:send"] => (&[(Verb::POST, Method::SendMessage)], vec![]),
        ["message:stream"] => (&[(Verb::POST, Method::SendStreamingMessage)], vec![]),
        ["extendedAgentCard"] => (&[(Verb::GET, Method::GetExtendedAgentCard)], vec![]),
        ["tasks"] => (&[(Verb::GET, Method::ListTasks)], vec![]),
        ["tasks", last] => match last.rsplit_once(':') {
            Some((task, "cancel")) => (&[(Verb::POST, Method::CancelTask)], vec![("id", id(task)?)]),
            Some((task, "subscribe")) => (
                &[(Verb::POST, Method::SubscribeToTask), (Verb::GET, Method::SubscribeToTask)],
                vec![("id", id(task)?)],
            ),
            _ => (&[(Verb::GET, Method::GetTask)], vec![("id", id(last)?)]),
        },
        ["tasks", task, "pushNotificationConfigs"] => (
            &[
                (Verb::GET, Method::ListTaskPushNotificationConfigs),
                (Verb::POST, Method::CreateTaskPushNotificationConfig),
            ],
            vec![("taskId", id(task)?)],
        ),
        ["tasks", task, "pushNotificationConfigs", config] => (
            &[
                (Verb::GET, Method::GetTaskPushNotificationConfig),
                (Verb::DELETE, Method::DeleteTaskPushNotificationConfig),
            ],
            vec![("taskId", id(task)?), ("id", id(config)?)],
        ),
        _ => return Err(NoRoute::NotFound),
    };
    let found = methods.iter().find(|(taken, _)| taken == verb || (taken == Verb::GET && verb == Verb::HEAD));
    match found {
        Some((_, method)) => Ok(Route { method: *method, tenant, named }),
        None => Err(NoRoute::Allow(match methods {
            [(first, _), (second, _)] if first == Verb::POST && second == Verb::GET => "GET, POST",
            [_, (second, _)] if second == Verb::POST => "GET, POST",
            [_, (second, _)] if second == Verb::DELETE => "GET, DELETE",
            [(first, _)] if first == Verb::POST => "POST",
            _ => "GET",
        })),
    }
}

fn decoded(segment: &str) -> Option<String> {
    percent_encoding::percent_decode_str(segment).decode_utf8().ok().map(Cow::into_owned)
}

/// Answers one request.
pub(crate) async fn serve(host: Arc<Host>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(mut caller) = host.door.admit(&parts.headers) else { return host.unauthenticated() };
    // Whoever sends plain JSON gets plain JSON back (DECISIONS W3).
    let plain = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let plain = host.plain_json || plain.is_some_and(|stated| media::is(stated, media::JSON));
    let envelope = Envelope::Bare(if plain { media::JSON } else { media::A2A_JSON });
    let path = parts.uri.path().strip_prefix(host.rest_path.as_str()).unwrap_or_default();
    let route = match route(&parts.method, path) {
        Ok(route) => route,
        Err(NoRoute::NotFound) => return envelope.error(&ErrorKind::MethodNotFound.into()),
        Err(NoRoute::Allow(verbs)) => {
            let words = "This path takes other verbs";
            let mut response = plain_error(StatusCode::METHOD_NOT_ALLOWED, "UNIMPLEMENTED", words);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(verbs));
            return response;
        }
    };
    let body = match host.read(body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    if other_type(&parts.headers, &[media::A2A_JSON, media::JSON]).is_some() {
        let words = "Send application/a2a+json or application/json";
        return plain_error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "INVALID_ARGUMENT", words);
    }
    if let Err(error) = host.door.check_version(&parts.headers, parts.uri.query()) {
        return envelope.error(&error);
    }
    let activated = match host.door.check_extensions(&parts.headers) {
        Ok(activated) => activated,
        Err(error) => return envelope.error(&error),
    };
    caller.timestamps = activated.timestamps;
    let call = params(&route, parts.uri.query(), &body).and_then(|Params { json, differs }| {
        let rules = |field: &str, text: &str| match differs.contains(&field) {
            true => Some(format!("{field} is not that of the path")),
            false => host.wrong(field, text),
        };
        Call::read_by(route.method, Some(&json), &rules)
    });
    let mut response = match call {
        Ok(call) => host.answer(caller, call, &parts.headers, envelope).await,
        Err(error) => envelope.error(&error),
    };
    echo(&mut response, activated);
    response
}

/// The request as the operation's own JSON.
struct Params {
    json: Box<RawValue>,
    /// Members of which the body or the query says something else than the path.
    differs: Vec<&'static str>,
}

/// Body, query and path in one object.
fn params(route: &Route, query: Option<&str>, body: &[u8]) -> Result<Params, Error> {
    let reads_body = matches!(
        route.method,
        Method::SendMessage
            | Method::SendStreamingMessage
            | Method::CancelTask
            | Method::SubscribeToTask
            | Method::CreateTaskPushNotificationConfig
    );
    let mut members = Members::default();
    if reads_body && !body.iter().all(u8::is_ascii_whitespace) {
        if protocol::rpc::deeper_than(body, protocol::json::DEPTH) {
            return Err(ErrorKind::Parse.into());
        }
        let json: Box<RawValue> = serde_json::from_slice(body).map_err(|_| ErrorKind::Parse)?;
        if route.named.is_empty() && route.tenant.is_none() {
            return Ok(Params { json, differs: Vec::new() });
        }
        let read = serde_json::from_str(json.get());
        members = read.map_err(|_| Error::invalid("body", "the body must be an object"))?;
    }
    if !reads_body {
        for (key, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if key.eq_ignore_ascii_case(media::VERSION_HEADER) {
                continue;
            }
            let value = match &*value {
                word @ ("true" | "false") if matches!(&*key, "includeArtifacts" | "include_artifacts") => {
                    RawValue::from_string(word.to_owned())
                }
                text => to_raw_value(text),
            };
            members.0.push((key.into_owned(), value.map_err(|_| ErrorKind::Parse)?));
        }
    }
    let mut differs = Vec::new();
    let tenant = route.tenant.as_ref().map(|tenant| ("tenant", tenant));
    for (name, value) in route.named.iter().map(|(name, value)| (*name, value)).chain(tenant) {
        let proto = if name == "taskId" { "task_id" } else { name };
        let stated = members.0.extract_if(.., |(known, _)| *known == name || *known == proto);
        let value = to_raw_value(value).map_err(|_| ErrorKind::Parse)?;
        if stated.into_iter().any(|(_, stated)| !matches!(stated.get(), "\"\"" | "null") && stated.get() != value.get())
        {
            differs.push(name);
        }
        members.0.push((name.to_owned(), value));
    }
    let json = to_raw_value(&members).map_err(|_| ErrorKind::Parse)?;
    Ok(Params { json, differs })
}

/// The members of an object, each as it stood in the body.
#[derive(Default)]
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some(member) = map.next_entry()? {
                    members.0.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(verb: Verb, path: &str) -> Option<(Method, Vec<(&'static str, String)>)> {
        route(&verb, path).ok().map(|route| (route.method, route.named))
    }

    #[test]
    fn a_verb_is_only_taken_from_a_literal_end_of_the_last_segment() {
        let id = |id: &str| vec![("id", id.to_owned())];
        assert_eq!(found(Verb::POST, "/tasks/abc:cancel"), Some((Method::CancelTask, id("abc"))));
        assert_eq!(found(Verb::POST, "/tasks/a%3Ab:cancel"), Some((Method::CancelTask, id("a:b"))));
        assert_eq!(found(Verb::GET, "/tasks/abc%3Acancel"), Some((Method::GetTask, id("abc:cancel"))));
        assert_eq!(found(Verb::GET, "/tasks/a%2Fb/"), Some((Method::GetTask, id("a/b"))));
        assert_eq!(route(&Verb::POST, "/tasks/:cancel"), Err(NoRoute::NotFound));
        assert_eq!(route(&Verb::POST, "/v2/v1/message:send"), Err(NoRoute::NotFound));
        assert_eq!(route(&Verb::PUT, "/tasks/abc"), Err(NoRoute::Allow("GET")));
        assert_eq!(route(&Verb::PUT, "/tasks/abc:subscribe"), Err(NoRoute::Allow("GET, POST")));
    }

    #[test]
    fn w11_both_verbs_subscribe() {
        for verb in [Verb::GET, Verb::POST] {
            assert_eq!(found(verb, "/tasks/x:subscribe").map(|found| found.0), Some(Method::SubscribeToTask));
        }
    }
}
