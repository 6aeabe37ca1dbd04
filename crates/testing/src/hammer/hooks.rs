//! Receivers of webhooks that take them, fail, refuse or hang, and rebuild each task from what they are told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::{StreamResponse, Task, TaskState};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::follow::Follower;
use super::wire::LIMIT;
use crate::webhooks::read_request;

/// What a receiver does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Takes everything.
    Takes,
    /// Answers 503 to its first so many.
    FailsAtFirst(u32),
    /// Takes so long for each.
    TakesItsTime(Duration),
    /// Always answers 500.
    IsDown,
    /// Answers 404 once, which is final.
    Refuses,
    /// Never answers.
    Hangs,
}

impl Manner {
    /// Whether it gets everything in the end.
    pub fn gets_all(self) -> bool {
        matches!(self, Self::Takes | Self::FailsAtFirst(_) | Self::TakesItsTime(_))
    }
}

/// One webhook of one task.
struct Inbox {
    manner: Manner,
    task: Follower,
    /// The body that was not taken, which must come again.
    missed: Option<Vec<u8>>,
    came: u32,
    wrong: Option<String>,
    state: watch::Sender<Option<TaskState>>,
}

/// All receivers, behind one listener.
pub struct Hooks {
    base: String,
    inboxes: Mutex<HashMap<u64, Inbox>>,
}

/// One webhook, to be looked at later.
pub struct Hook {
    hooks: Arc<Hooks>,
    number: u64,
    /// What the receiver does.
    pub manner: Manner,
    state: watch::Receiver<Option<TaskState>>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.hooks.inboxes.lock().unwrap().remove(&self.number);
    }
}

impl Hooks {
    /// Listens on a free port.
    pub async fn new() -> Arc<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let hooks = Arc::new(Self { base, inboxes: Mutex::default() });
        let served = hooks.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        hooks
    }

    /// A new receiver.
    pub fn open(self: &Arc<Self>, number: u64, manner: Manner) -> Hook {
        let (tell, state) = watch::channel(None);
        let inbox = Inbox { manner, task: Follower::default(), missed: None, came: 0, wrong: None, state: tell };
        self.inboxes.lock().unwrap().insert(number, inbox);
        Hook { hooks: self.clone(), number, manner, state }
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        while let Some(request) = read_request(&mut stream).await {
            let number = request.path.trim_start_matches('/').parse().unwrap_or_default();
            let (status, pause) = self.take(number, request.body);
            match pause {
                None => std::future::pending().await,
                Some(Duration::ZERO) => {}
                Some(pause) => tokio::time::sleep(pause).await,
            }
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// Takes a webhook. Gives the status to answer with, and the pause before that.
    fn take(&self, number: u64, body: Vec<u8>) -> (u16, Option<Duration>) {
        let mut inboxes = self.inboxes.lock().unwrap();
        // Nobody looks at it any more.
        let Some(inbox) = inboxes.get_mut(&number) else { return (200, Some(Duration::ZERO)) };
        inbox.came += 1;
        let again = match inbox.missed.take() {
            Some(missed) if missed != body => {
                inbox.wrong.get_or_insert("an event that was not taken never came again".to_owned());
                false
            }
            missed => missed.is_some(),
        };
        if !again {
            let told = serde_json::from_slice::<StreamResponse>(&body).map_err(|cause| cause.to_string());
            if let Err(wrong) = told.and_then(|told| inbox.task.take_hook(told)) {
                inbox.wrong.get_or_insert(wrong);
            }
        }
        let (status, pause) = match inbox.manner {
            Manner::FailsAtFirst(count) if inbox.came <= count => (503, Some(Duration::ZERO)),
            Manner::Takes | Manner::FailsAtFirst(_) => (200, Some(Duration::ZERO)),
            Manner::TakesItsTime(pause) => (200, Some(pause)),
            Manner::IsDown => (500, Some(Duration::ZERO)),
            Manner::Refuses => (404, Some(Duration::ZERO)),
            Manner::Hangs => (200, None),
        };
        if status != 200 || pause.is_none() {
            inbox.missed = Some(body);
        } else {
            inbox.state.send_replace(inbox.task.state());
        }
        if inbox.manner == Manner::Refuses && inbox.came > 1 {
            inbox.wrong.get_or_insert("a receiver that refused was asked again".to_owned());
        }
        (status, pause)
    }
}

impl Hook {
    /// Where it listens.
    pub fn url(&self) -> String {
        format!("{}/{}", self.hooks.base, self.number)
    }

    /// Waits until it has got the end of the task, if it gets everything; then holds what it got against the task.
    pub async fn agrees(mut self, task: &Task) -> Result<(), String> {
        if self.manner.gets_all() {
            let ended = self.state.wait_for(|state| state.is_some_and(TaskState::is_terminal));
            let came = tokio::time::timeout(LIMIT, ended).await;
            if came.is_err() {
                return Err(format!("the webhook ({:?}) did not get the end within {LIMIT:?}", self.manner));
            }
        }
        let inboxes = self.hooks.inboxes.lock().unwrap();
        let Some(inbox) = inboxes.get(&self.number) else { return Ok(()) };
        if let Some(wrong) = &inbox.wrong {
            return Err(format!("the webhook ({:?}): {wrong}", self.manner));
        }
        if self.manner.gets_all() {
            inbox.task.agrees(task).map_err(|wrong| format!("the webhook ({:?}): {wrong}", self.manner))?;
        }
        Ok(())
    }
}
