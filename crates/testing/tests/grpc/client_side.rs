//! Our own client over gRPC: every operation, and every way in which a call can fail.

use std::time::Duration;

use client::{Binding as Speaks, ClientError, Connection, Http, Limits, Reply, choose};
use protocol::call::{
    GetTaskRequest, ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, ListTasksRequest,
    SendMessageRequest, TaskPushNotificationConfigRequest,
};
use protocol::{Call, Dial, Message, MessageId, Part, Role, StreamResponse, TaskPushNotificationConfig, TaskState};
use serde_json::{Value, json};
use testing::{Served, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{echo, locked};

fn http() -> Http {
    Http::new(Dial::default(), Limits { connect: Duration::from_secs(2), ..Limits::default() }, None)
}

/// A connection to the interface that this client finds in the agent's card.
async fn connect(served: &Served, token: Option<&str>) -> Connection {
    let card = http().card("card", &served.url).await.unwrap();
    let (interface, binding) = choose(&card, &[Speaks::Grpc]).unwrap();
    assert_eq!(interface.url, served.grpc_address);
    Connection::new(http(), &interface.url, binding, token.map(str::to_owned))
}

fn says(text: &str) -> SendMessageRequest {
    let id = MessageId::new(format!("m-{text}")).unwrap();
    SendMessageRequest::new(Message::new(id, Role::User, vec![Part::text(text)]))
}

#[tokio::test]
async fn the_order_of_the_card_decides_and_grpc_is_one_of_the_bindings() {
    let served = serve(echo(), |_| {}).await;
    let mut card = http().card("card", &served.url).await.unwrap();
    assert_eq!(choose(&card, Speaks::SPOKEN).unwrap().1, Speaks::JsonRpc);
    card.supported_interfaces.reverse();
    assert_eq!(choose(&card, Speaks::SPOKEN).unwrap().1, Speaks::Grpc);
    assert_eq!(choose(&card, &[Speaks::HttpJson, Speaks::JsonRpc]).unwrap().1, Speaks::HttpJson);
}

#[tokio::test]
async fn every_operation_is_answered_as_on_the_other_bindings() {
    let mut agent = echo();
    agent.card.capabilities.extended_agent_card = Some(true);
    agent.extended = Some(agent.card.clone());
    let served = serve(agent, locked).await;
    let agent = connect(&served, Some("right")).await;

    let Reply::Task(done) = agent.send("send", says("hello")).await.unwrap() else { panic!() };
    assert_eq!((done.status.state, done.history.len()), (TaskState::Completed, 2));
    let read = agent.get("get", &done.id, Some(1)).await.unwrap();
    assert_eq!((&read.id, read.history.len()), (&done.id, 1));
    let page = agent
        .list(
            "list",
            ListTasksRequest {
                tenant: None,
                context_id: None,
                status: Some(TaskState::Completed),
                page_size: Some(1),
                page_token: None,
                history_length: None,
                status_timestamp_after: None,
                include_artifacts: None,
            },
        )
        .await
        .unwrap();
    assert_eq!((page.tasks.len(), page.page_size, page.total_size), (1, Some(1), Some(1)));

    let mut events = agent.stream("stream", says("again")).await.unwrap();
    let mut states = Vec::new();
    while let Some(frame) = events.next().await.unwrap() {
        assert_eq!(serde_json::from_str::<StreamResponse>(&frame.data).unwrap(), frame.response);
        states.push(match frame.response {
            StreamResponse::Task(task) => task.status.state,
            StreamResponse::StatusUpdate(update) => update.status.state,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(states, [TaskState::Submitted, TaskState::Working, TaskState::Completed]);

    let Reply::Task(asked) = agent.send("ask", says("ask")).await.unwrap() else { panic!() };
    let mut watch = agent.subscribe("subscribe", &asked.id).await.unwrap();
    assert!(matches!(watch.next().await.unwrap().unwrap().response, StreamResponse::Task(task) if task.id == asked.id));
    let config = TaskPushNotificationConfig {
        tenant: None,
        id: None,
        task_id: Some(asked.id.clone()),
        url: "https://hooks.example.com/x".into(),
        token: Some("t".into()),
        authentication: None,
    };
    let made: TaskPushNotificationConfig =
        agent.call("create", &Call::CreateTaskPushNotificationConfig(config.clone())).await.unwrap();
    assert_eq!(TaskPushNotificationConfig { id: None, ..made.clone() }, config);
    let one =
        TaskPushNotificationConfigRequest { tenant: None, task_id: asked.id.clone(), id: made.id.clone().unwrap() };
    let read: TaskPushNotificationConfig =
        agent.call("get", &Call::GetTaskPushNotificationConfig(one.clone())).await.unwrap();
    assert_eq!(read, made);
    let all = ListTaskPushNotificationConfigsRequest {
        tenant: None,
        task_id: asked.id.clone(),
        page_size: None,
        page_token: None,
    };
    let list = Call::ListTaskPushNotificationConfigs(all);
    let configs: ListTaskPushNotificationConfigsResponse = agent.call("list", &list).await.unwrap();
    assert_eq!(configs.configs, [made]);
    let nothing: Value = agent.call("delete", &Call::DeleteTaskPushNotificationConfig(one)).await.unwrap();
    assert_eq!(nothing, json!({}));
    let configs: ListTaskPushNotificationConfigsResponse = agent.call("list", &list).await.unwrap();
    assert!(configs.configs.is_empty());

    let canceled = agent.cancel("cancel", &asked.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let last = watch.next().await.unwrap().unwrap().response;
    assert!(matches!(last, StreamResponse::StatusUpdate(update) if update.status.state == TaskState::Canceled));
    assert!(watch.next().await.unwrap().is_none());
    assert_eq!(agent.extended_card("card").await.unwrap().name, "scripted");
}

#[tokio::test]
async fn what_the_agent_refuses_is_the_same_error_that_http_json_would_bring() {
    let served = serve(echo(), |_| {}).await;
    let here = connect(&served, None).await;
    let there = Connection::new(http(), format!("{}/a2a/rest", served.url), Speaks::HttpJson, None);
    let missing =
        Call::GetTask(GetTaskRequest { tenant: None, id: "none".try_into().unwrap(), history_length: Some(-1) });
    let unknown = Call::GetTask(GetTaskRequest { tenant: None, id: "none".try_into().unwrap(), history_length: None });
    for (call, code) in [(missing, 3), (unknown, 5)] {
        let Err(ClientError::Remote(ours)) = here.call::<Value>("get", &call).await else { panic!() };
        let Err(ClientError::Remote(theirs)) = there.call::<Value>("get", &call).await else { panic!() };
        let data = |error: &protocol::error::RemoteError| error.data.as_ref().unwrap().read::<Value>().unwrap();
        assert_eq!((&ours.message, ours.reason(), data(&ours)), (&theirs.message, theirs.reason(), data(&theirs)));
        assert_eq!(ours.code, code);
    }
    let Reply::Error(error) = here
        .send("send", SendMessageRequest::new(Message::new("m".try_into().unwrap(), Role::Agent, vec![])))
        .await
        .unwrap()
    else {
        panic!()
    };
    assert_eq!(error.code, 3);
    let refused = here.subscribe("subscribe", &"none".try_into().unwrap()).await.unwrap_err();
    assert!(matches!(refused, ClientError::Remote(error) if error.reason().unwrap() == "TASK_NOT_FOUND"));
    let locked = serve(echo(), locked).await;
    let refused = connect(&locked, Some("wrong")).await.send("send", says("x")).await.unwrap();
    assert!(matches!(refused, Reply::Error(error) if error.code == 16));
}

#[tokio::test]
async fn who_does_not_answer_or_speaks_something_else_is_told_apart() {
    let gone = {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        listener.local_addr().unwrap()
    };
    let to = |url: String| Connection::new(http(), url, Speaks::Grpc, None);
    let failed = async |url: String| to(url).send("send", says("x")).await.unwrap_err();
    assert!(matches!(failed(gone.to_string()).await, ClientError::Unreachable { .. }));
    assert!(matches!(failed("ftp://x".to_owned()).await, ClientError::Url(_)));
    assert!(matches!(failed("no port given or: so".to_owned()).await, ClientError::Url(_)));

    // HTTP/1.1 lives there.
    let served = serve(echo(), |_| {}).await;
    assert!(matches!(failed(served.url.clone()).await, ClientError::Broken { .. }));
    let quiet =
        Http::new(Dial::default(), Limits { answer: Some(Duration::from_millis(50)), ..Limits::default() }, None);
    let slow = Connection::new(quiet, &served.grpc_address, Speaks::Grpc, None);
    assert!(matches!(slow.send("send", says("wait")).await.unwrap_err(), ClientError::TooSlow { .. }));
}

#[tokio::test]
async fn a_stream_that_is_cut_is_no_end() {
    // A way to the agent that can be cut.
    let served = serve(echo(), |_| {}).await;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let way = listener.local_addr().unwrap().to_string();
    let (cut, mut cuts) = tokio::sync::oneshot::channel::<()>();
    let agent = served.grpc_address.clone();
    tokio::spawn(async move {
        let (mut here, _) = listener.accept().await.unwrap();
        let mut there = tokio::net::TcpStream::connect(agent).await.unwrap();
        let (mut up, mut down) = ([0; 4096], [0; 4096]);
        loop {
            tokio::select! {
                _ = &mut cuts => return,
                count = here.read(&mut up) => there.write_all(&up[..count.unwrap()]).await.unwrap(),
                count = there.read(&mut down) => here.write_all(&down[..count.unwrap()]).await.unwrap(),
            }
        }
    });
    let agent = Connection::new(http(), way, Speaks::Grpc, None);
    let mut events = agent.stream("stream", says("wait")).await.unwrap();
    events.next().await.unwrap().unwrap();
    events.next().await.unwrap().unwrap();
    cut.send(()).unwrap();
    let error = events.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Broken { .. } | ClientError::Cut { .. }), "{error:?}");
}
