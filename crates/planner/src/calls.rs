//! One call to one agent, printed in words or as JSON.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use client::live::LiveIds;
use client::{Binding, ClientError, Connection, Events, Http, Reply, choose};
use protocol::call::{ListTasksRequest, SendMessageConfiguration, SendMessageRequest};
use protocol::{ContextId, Ids, Message, MessageId, Part, Role, StreamResponse, TaskId, TaskState, Timestamps, media};

use signature::Checked;

use crate::{out, read, words};

#[derive(clap::Subcommand)]
pub enum Call {
    /// Sends a message.
    Send {
        #[command(flatten)]
        to: To,
        /// What to say.
        text: String,
        /// A diff to send along; - reads standard input.
        #[arg(long, value_name = "FILE")]
        diff: Option<PathBuf>,
        /// Answer as soon as there is a task.
        #[arg(long)]
        return_immediately: bool,
        /// How many messages of history to show.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
        history: Option<i32>,
        /// The task that the message continues.
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// The context that the message belongs to.
        #[arg(long, value_name = "ID")]
        context: Option<String>,
        /// Follow what happens.
        #[arg(long)]
        stream: bool,
    },
    /// Reads an agent's card.
    Card {
        #[command(flatten)]
        to: To,
        /// The longer card that callers with a token see. It is not signed.
        #[arg(long, conflicts_with = "verify")]
        extended: bool,
        /// Say of each signature whether it holds. Exit code 1 when none does.
        #[arg(long)]
        verify: bool,
        /// Keys to trust, as a JSON Web Key Set: then only these count. Without it, the keys that the card's own origin
        /// publishes.
        #[arg(long, value_name = "FILE|URL", requires = "verify")]
        jwks: Option<String>,
    },
    /// Reads a task.
    Get {
        #[command(flatten)]
        to: To,
        /// The task.
        id: String,
        /// How many messages of history to show.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
        history: Option<i32>,
    },
    /// Lists tasks, newest first.
    List {
        #[command(flatten)]
        to: To,
    },
    /// Ends a task.
    Cancel {
        #[command(flatten)]
        to: To,
        /// The task.
        id: String,
    },
    /// Follows a task.
    Subscribe {
        #[command(flatten)]
        to: To,
        /// The task.
        id: String,
    },
}

/// Which agent, and how to print what it says.
#[derive(clap::Args)]
pub struct To {
    /// The agent's URL, or that of its card.
    url: String,
    /// The bearer token.
    #[arg(long, value_name = "T")]
    token: Option<String>,
    /// The binding to speak. Without it: the first of the card's that this planner speaks.
    #[arg(long, value_name = "WORD", value_parser = binding)]
    binding: Option<Binding>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn binding(word: &str) -> Result<Binding, String> {
    let spoken: Vec<&str> = Binding::SPOKEN.iter().map(|binding| binding.word()).collect();
    Binding::from_word(word).ok_or_else(|| format!("one of {} is expected", spoken.join(", ")))
}

impl To {
    async fn connect(&self, http: &Http) -> Result<Connection, String> {
        let card = http.card("read the agent card", &self.url).await.map_err(words_of)?;
        let wanted = self.binding.as_ref().map_or(Binding::SPOKEN, std::slice::from_ref);
        let (interface, binding) = choose(&card, wanted).map_err(|none| none.to_string())?;
        let connection = Connection::new(http.clone(), &interface.url, binding, self.token.clone());
        let timestamps = Timestamps::offered(&card).map(Timestamps::uri);
        Ok(connection.of_tenant(interface.tenant.clone()).activating(timestamps))
    }

    fn print(&self, json: &impl serde::Serialize, words: impl FnOnce() -> String) {
        if self.json {
            out(&serde_json::to_string_pretty(json).unwrap_or_default());
        } else {
            out(&words());
        }
    }
}

fn words_of(error: ClientError) -> String {
    error.to_string()
}

fn task_id(text: String) -> Result<TaskId, String> {
    TaskId::new(text).map_err(|empty| empty.to_string())
}

/// Makes the call. True when it did what it was asked for, false when the agent answered with an error.
pub async fn run(call: Call, http: Http) -> Result<bool, String> {
    match made(call, http).await {
        Ok(()) => Ok(true),
        Err(Failed::Error(error)) => {
            let _ = writeln!(std::io::stderr(), "{}", planner::shown::lines(&error));
            Ok(false)
        }
        Err(Failed::Cannot(why)) => Err(why),
    }
}

enum Failed {
    /// The agent's own answer.
    Error(String),
    /// No answer.
    Cannot(String),
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self::Cannot(why)
    }
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Remote(error) => Self::Error(error.to_string()),
            other => Self::Cannot(other.to_string()),
        }
    }
}

async fn made(call: Call, http: Http) -> Result<(), Failed> {
    match call {
        Call::Send { to, text, diff, return_immediately, history, task, context, stream } => {
            let agent = to.connect(&http).await?;
            let mut parts = vec![Part::text(text)];
            if let Some(file) = diff {
                let name = file.file_name().map_or_else(|| "change.diff".into(), |name| name.to_string_lossy());
                parts.push(Part::raw(read(&file)?, name, media::DIFF));
            }
            let id = MessageId::new(LiveIds.next()).map_err(|empty| empty.to_string())?;
            let mut message = Message::new(id, Role::User, parts);
            message.task_id = task.map(task_id).transpose()?;
            message.context_id = context.map(ContextId::new).transpose().map_err(|empty| empty.to_string())?;
            let mut request = SendMessageRequest::new(message);
            if return_immediately || history.is_some() {
                let configuration =
                    SendMessageConfiguration { return_immediately, history_length: history, ..Default::default() };
                request.configuration = Some(configuration);
            }
            if stream {
                return print_events(&to, agent.stream("SendStreamingMessage", request).await?).await;
            }
            match agent.send("SendMessage", request).await? {
                Reply::Error(error) => return Err(Failed::Error(error.to_string())),
                Reply::Message(message) => to.print(&message, || words::message(&message)),
                Reply::Task(task) => to.print(&task, || words::task(&task)),
            }
        }
        Call::Card { to, verify: true, jwks, .. } => verify(&to, &http, jwks.as_deref()).await?,
        Call::Card { to, extended, .. } => {
            let card = if extended {
                to.connect(&http).await?.extended_card("GetExtendedAgentCard").await?
            } else {
                http.card("read the agent card", &to.url).await?
            };
            to.print(&card, || words::card(&card));
        }
        Call::Get { to, id, history } => {
            let task = to.connect(&http).await?.get("GetTask", &task_id(id)?, history).await?;
            to.print(&task, || words::task(&task));
        }
        Call::List { to } => list(&to, &to.connect(&http).await?).await?,
        Call::Cancel { to, id } => {
            let task = to.connect(&http).await?.cancel("CancelTask", &task_id(id)?).await?;
            to.print(&task, || words::status(&task));
        }
        Call::Subscribe { to, id } => {
            let events = to.connect(&http).await?.subscribe("SubscribeToTask", &task_id(id)?).await?;
            print_events(&to, events).await?;
        }
    }
    Ok(())
}

/// Prints a card with what its signatures are worth.
async fn verify(to: &To, http: &Http, jwks: Option<&str>) -> Result<(), Failed> {
    let trusted = match jwks {
        None => None,
        Some(place) => Some(crate::keys(http, "--jwks", place).await?),
    };
    let fetched = http.fetch_card("read the agent card", &to.url).await?;
    let seals = http.verify(&fetched, trusted.as_deref()).await?;
    let shown = seals.iter().map(|seal| {
        let Checked { algorithm, key_id, jku, result } = &seal.checked;
        serde_json::json!({
            "algorithm": algorithm, "keyId": key_id, "jku": jku, "holds": result.is_ok(), "words": words::seal(seal),
        })
    });
    let json = serde_json::json!({"card": fetched.card, "signatures": shown.collect::<Vec<_>>()});
    to.print(&json, || {
        let seals = seals.iter().enumerate().map(|(at, seal)| {
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "?".to_owned());
            let (algorithm, key) = (name(&seal.checked.algorithm), name(&seal.checked.key_id));
            format!("\n  signature {}, {algorithm} with the key {key}: {}", at + 1, words::seal(seal))
        });
        words::card(&fetched.card) + &seals.collect::<String>()
    });
    match seals.iter().any(|seal| seal.checked.result.is_ok()) {
        true => Ok(()),
        false if seals.is_empty() => Err(Failed::Error("the card is not signed".to_owned())),
        false => Err(Failed::Error("no signature of the card holds".to_owned())),
    }
}

/// Prints all pages.
async fn list(to: &To, agent: &Connection) -> Result<(), Failed> {
    let mut tasks: Vec<Arc<protocol::Task>> = Vec::new();
    let mut page_token = None;
    loop {
        let request = ListTasksRequest {
            tenant: None,
            context_id: None,
            status: None,
            page_size: None,
            page_token: page_token.take(),
            history_length: Some(0),
            status_timestamp_after: None,
            include_artifacts: None,
        };
        let page = agent.list("ListTasks", request).await?;
        // A server that gives the same page for ever is not followed for ever.
        let new = page.tasks.iter().any(|task| !tasks.iter().any(|known| known.id == task.id));
        tasks.extend(page.tasks);
        if page.next_page_token.is_empty() || !new {
            break;
        }
        page_token = Some(page.next_page_token);
    }
    to.print(&tasks, || match tasks.as_slice() {
        [] => "no tasks".to_owned(),
        tasks => tasks.iter().map(|task| words::status(task)).collect::<Vec<_>>().join("\n"),
    });
    Ok(())
}

/// Prints what happens until the task ends. A stream that ends before its task does is no success, unless the task waits
/// for somebody.
async fn print_events(to: &To, mut events: Events) -> Result<(), Failed> {
    let mut state = None;
    while let Some(frame) = events.next().await? {
        if to.json {
            out(&frame.data);
        } else {
            out(&words::event(&frame.response));
        }
        match &frame.response {
            StreamResponse::Message(_) => return Ok(()),
            StreamResponse::Task(task) => state = Some(task.status.state),
            StreamResponse::StatusUpdate(update) => state = Some(update.status.state),
            StreamResponse::ArtifactUpdate(_) => {}
        }
        // Some agents keep the stream open for ever.
        if state.is_some_and(TaskState::is_terminal) {
            return Ok(());
        }
    }
    match state {
        Some(state) if state.phase().settles() => Ok(()),
        Some(state) => Err(Failed::Error(format!("the stream ended while the task is {state}"))),
        None => Err(Failed::Error("the stream ended without a word on the task's state".to_owned())),
    }
}
