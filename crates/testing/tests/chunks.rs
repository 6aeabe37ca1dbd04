//! Streams of ten thousand chunks: what a slow reader gets, and what a chunk costs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol::sse;
use serde_json::{Value, json};
use testing::{Binding, Scripted, Served, chunk, frame_state, rebuilt, scripted, send, serve, texts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

const CHUNKS: usize = 10_000;

/// Says ten thousand chunks, 10 MB in all, five hundred for each permit, and is done with one permit more.
fn talkative(gate: &Arc<Semaphore>) -> Scripted {
    let gate = gate.clone();
    scripted(move |_, say| {
        let gate = gate.clone();
        async move {
            let long = "x".repeat(1_000);
            for number in 0..CHUNKS {
                if number % 500 == 0 {
                    gate.acquire().await?.forget();
                }
                say.artifact(chunk("log", format!("{number} {long}"), number > 0, false)).await?;
            }
            gate.acquire().await?.forget();
            Ok(say.done(()).await?)
        }
    })
}

/// Subscribes with a socket that buffers next to nothing, so that who does not read holds the server's writes up.
async fn subscribe_slowly(served: &Served, binding: Binding, task: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let address = served.url.strip_prefix("http://").unwrap();
    let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
    let rpc = json!({"jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask", "params": {"id": task}}).to_string();
    let (path, kind, body) = match binding {
        Binding::Rpc => ("/a2a/jsonrpc".to_owned(), "application/json", rpc),
        Binding::Rest => (format!("/a2a/rest/tasks/{task}:subscribe"), "application/a2a+json", String::new()),
        Binding::Grpc => panic!("HTTP/1.0 cannot carry it"),
    };
    // Of HTTP/1.0, so that the body comes as it is.
    let head = format!("POST {path} HTTP/1.0\r\nHost: {address}\r\nA2A-Version: 1.0\r\nContent-Type: {kind}");
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The frames of a whole answer.
fn frames(answer: &[u8]) -> Vec<Value> {
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let mut reader = sse::Reader::default();
    reader.push(&answer[head + 4..]).unwrap();
    let events = std::iter::from_fn(|| reader.next());
    let frames = events.map(|event| serde_json::from_str::<Value>(&event.data).unwrap());
    frames.map(|frame| frame.get("result").cloned().unwrap_or(frame)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_chunks_a_slow_and_a_fast_reader_make_the_same_artifact() {
    let gate = Arc::new(Semaphore::new(0));
    let served = serve(talkative(&gate), |_| {}).await;
    for binding in Binding::BOTH {
        let task = served.started("go").await;
        let params = json!({"id": task});
        let mut slow = subscribe_slowly(&served, binding, &task).await;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n\n") {
            slow.read_buf(&mut answer).await.unwrap();
        }
        let mut fast = served.stream(binding, "SubscribeToTask", params.clone()).await;
        let mut fast_frames = Vec::new();
        // The fast one reads whatever comes; the slow one reads nothing meanwhile.
        while fast_frames.len() < CHUNKS + 1 {
            if fast_frames.len() % 500 == 1 {
                gate.add_permits(1);
            }
            fast_frames.push(fast.next().await.unwrap());
        }
        // It reads on, finds that it was cut off, and comes back.
        slow.read_to_end(&mut answer).await.unwrap();
        let mut slow_frames = frames(&answer);
        let last = slow_frames.pop().unwrap();
        let code = if binding == Binding::Rpc { -32603 } else { 500 };
        assert_eq!(last["error"]["code"], code, "the last frame says that events are missing");
        let missed = CHUNKS - rebuilt(&slow_frames)[0].len();
        assert!(missed > 1_000, "it was far behind, not {missed} chunks");
        let mut again = served.stream(binding, "SubscribeToTask", params.clone()).await;
        slow_frames.push(again.next().await.unwrap());
        assert!(slow_frames.last().unwrap().get("task").is_some(), "it begins with a snapshot");
        gate.add_permits(1);
        slow_frames.extend(again.rest().await);
        fast_frames.extend(fast.rest().await);
        let whole = texts(&served.task(&task).await["artifacts"][0]);
        assert_eq!(whole.len(), CHUNKS);
        for followed in [&slow_frames, &fast_frames] {
            assert_eq!(frame_state(followed.last().unwrap()), "COMPLETED");
            assert!(rebuilt(followed) == [&whole[..]], "the same artifact as GetTask gives");
        }
    }
}

/// The middle one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::test]
async fn a_chunk_costs_no_more_after_ten_thousand_than_after_a_hundred() {
    // What saying alone takes, by the agent's own clock.
    let said = Arc::<Mutex<Vec<Duration>>>::default();
    let saying = said.clone();
    let served = serve(
        scripted(move |job, say| {
            let saying = saying.clone();
            async move {
                let since = Instant::now();
                for number in 0..job.message.text().parse()? {
                    say.artifact(chunk("log", "a line of a log", number > 0, false)).await?;
                }
                saying.lock().unwrap().push(since.elapsed());
                Ok(say.done(()).await?)
            }
        }),
        |_| {},
    )
    .await;
    let (mut by_saying, mut by_streaming) = (Vec::new(), Vec::new());
    // Both lengths in each round, so that what else the machine does falls on both.
    for round in 0..6 {
        let mut costs = Vec::new();
        for length in [100, CHUNKS] {
            let text = length.to_string();
            for _ in 0..CHUNKS / length {
                served.call(Binding::Rpc, "SendMessage", send(&text)).await.result();
            }
            let saying: Duration = std::mem::take(&mut *said.lock().unwrap()).iter().sum();
            let since = Instant::now();
            for _ in 0..CHUNKS / length {
                let stream = served.stream(Binding::Rpc, "SendStreamingMessage", send(&text)).await;
                assert_eq!(stream.rest().await.len(), length + 2);
            }
            costs.push((saying.as_secs_f64(), since.elapsed().as_secs_f64()));
            said.lock().unwrap().clear();
        }
        // The first round warms up.
        if let ([hundred, thousands], 1..) = (&costs[..], round) {
            by_saying.push(thousands.0 / hundred.0);
            by_streaming.push(thousands.1 / hundred.1);
        }
    }
    let (saying, streaming) = (median(by_saying), median(by_streaming));
    println!("a chunk of 10,000 costs {saying:.2} of one of 100 to say, {streaming:.2} to say and stream");
    assert!(saying <= 2.0 && streaming <= 2.0, "{saying:.2} and {streaming:.2}");
}
