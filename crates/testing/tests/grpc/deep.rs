//! Data that is nested deeper than gRPC carries: what each side gets.

use client::{Binding as Speaks, ClientError, Connection, Http, Limits, Reply};
use protocol::call::SendMessageRequest;
use protocol::{Dial, Json, Message, Part, Role};
use serde_json::{Value, json};
use testing::{Answer, Binding, chunk, message, scripted, send, serve};

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("x"), |inner, _| json!({"a": inner}))
}

fn data(levels: usize) -> Value {
    let mut message = message("x");
    message["parts"] = json!([{"text": "x"}, {"data": nested(levels)}]);
    json!({"message": message})
}

/// The code of a refusal, its reason and the field in its metadata.
fn told(refused: &Answer) -> (i64, &str, &str) {
    let error = refused.error().unwrap_or_else(|| panic!("{}", refused.body));
    let field = error["details"][0]["metadata"]["field"].as_str().unwrap();
    (error["code"].as_i64().unwrap(), refused.reason(), field)
}

#[tokio::test]
async fn a_client_that_sends_it_is_told_which_field_and_nothing_is_stored() {
    let served = serve(crate::echo(), |_| {}).await;
    // As deep as another client can make it; what is deeper than any reader follows is tried in the crate `grpc`.
    for levels in [32, 33] {
        for method in ["SendMessage", "SendStreamingMessage"] {
            let refused = served.call(Binding::Grpc, method, data(levels)).await;
            assert_eq!(refused.error().unwrap()["code"], 3);
            assert_eq!(refused.fields(), ["message.parts[1].data"], "{levels}");
        }
    }
    let fine = served.call(Binding::Grpc, "SendMessage", data(31)).await;
    assert_eq!(fine.result()["task"]["status"]["message"]["parts"][1]["data"], nested(31), "and back");
    assert_eq!(served.call(Binding::Grpc, "ListTasks", json!({})).await.result()["totalSize"], 1);
    // Our own client does not even send it.
    let http = Http::new(Dial::default(), Limits::default(), None);
    let agent = Connection::new(http, &served.grpc_address, Speaks::Grpc, None);
    let part = Part::data(Json::of(&nested(60)).unwrap());
    let request = SendMessageRequest::new(Message::new("m".try_into().unwrap(), Role::User, vec![part]));
    let Err(ClientError::Request(why)) = agent.send("send", request).await else { panic!() };
    assert_eq!(why, "message.parts[0].data is nested deeper than gRPC carries");
}

#[tokio::test]
async fn an_answer_that_holds_it_is_an_error_of_the_table_and_the_other_bindings_carry_it() {
    let agent = scripted(|job, say| async move {
        let deep = || Part::data(Json::of(&nested(60)).unwrap());
        match job.message.text().as_str() {
            "reply" => say.reply(vec![deep()]).await?,
            _ => {
                say.working("at it").await?;
                say.artifact(chunk("fine", "x", false, true)).await?;
                let mut artifact = chunk("deep", "x", false, true);
                artifact.artifact.parts = vec![Part::text("x"), deep()].into();
                say.artifact(artifact).await?;
                say.done("done").await?;
            }
        }
        Ok(())
    });
    let served = serve(agent, |_| {}).await;
    let (internal, reason) = (13, "INVALID_AGENT_RESPONSE");
    let reply = served.call(Binding::Grpc, "SendMessage", send("reply")).await;
    assert_eq!(told(&reply), (internal, reason, "message.parts[0].data"));
    let sent = served.call(Binding::Grpc, "SendMessage", send("go")).await;
    assert_eq!(told(&sent), (internal, reason, "task.artifacts[1].parts[1].data"));

    // A stream shows what it can and ends with the error; the work goes on.
    let mut frames = served.stream(Binding::Grpc, "SendStreamingMessage", send("go")).await.rest().await;
    let last = frames.pop().unwrap();
    assert_eq!(frames.last().unwrap()["artifactUpdate"]["artifact"]["artifactId"], "fine");
    let metadata = &last["error"]["details"][0]["metadata"];
    assert_eq!(
        (&last["error"]["code"], &metadata["field"]),
        (&json!(13), &json!("artifactUpdate.artifact.parts[1].data"))
    );
    let id = frames[0]["task"]["id"].as_str().unwrap();
    let task = served.until(id, "TASK_STATE_COMPLETED").await;
    assert_eq!(task["artifacts"][1]["parts"][1]["data"], nested(60), "over JSON-RPC all of it is there");

    assert_eq!(told(&served.call(Binding::Grpc, "GetTask", json!({"id": id})).await).2, "artifacts[1].parts[1].data");
    let list = served.call(Binding::Grpc, "ListTasks", json!({"includeArtifacts": true})).await;
    assert_eq!(told(&list).2, "tasks[0].artifacts[1].parts[1].data");
    let without = served.call(Binding::Grpc, "ListTasks", json!({})).await;
    assert_eq!(without.result()["totalSize"], 2, "the connection goes on, and what is not deep is shown");

    let http = Http::new(Dial::default(), Limits::default(), None);
    let ours = Connection::new(http, &served.grpc_address, Speaks::Grpc, None);
    let request = SendMessageRequest::new(Message::new("m".try_into().unwrap(), Role::User, vec![Part::text("go")]));
    let Reply::Error(error) = ours.send("send", request).await.unwrap() else { panic!() };
    assert_eq!(error.reason().unwrap(), reason);
}
