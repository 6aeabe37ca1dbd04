//! Two test-runners that share a PostgreSQL, behind a proxy, and what becomes of tasks when either of them is killed.
//!
//! The proxy takes the next process in turn for each connection, and the other one where that does not answer. It is a
//! few lines here, so that nothing but PostgreSQL has to be installed, and it knows nothing of HTTP: streams go through
//! as they are.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol::call::ListTasksResponse;
use protocol::{Task, TaskId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::hammer::follow::{Follower, agrees_so_far};
use crate::hammer::wire::{Next, Open, Target};
use crate::talk::{Binding, send};
use crate::{Postgres, Program};

/// How long it may take until a task whose process was killed has ended, or goes on.
const LIMIT: Duration = Duration::from_secs(10);

/// Sends each connection to the next of several processes.
struct Proxy {
    url: String,
    backends: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Proxy {
    async fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (backends, next) = (Arc::<Mutex<Vec<SocketAddr>>>::default(), Arc::new(AtomicUsize::new(0)));
        let known = backends.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut order = known.lock().unwrap().clone();
                let first = next.fetch_add(1, Ordering::Relaxed) % order.len().max(1);
                order.rotate_left(first);
                tokio::spawn(async move {
                    for backend in order {
                        if let Ok(mut far) = TcpStream::connect(backend).await {
                            let _ = (near.set_nodelay(true), far.set_nodelay(true));
                            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { url, backends }
    }
}

/// Two processes, the database that they share and the proxy before them.
pub struct Replicas {
    store: String,
    pace: String,
    programs: [Program; 2],
    proxy: Proxy,
    random: StdRng,
    _postgres: Postgres,
}

const NAMES: [&str; 2] = ["A", "B"];

impl Replicas {
    /// Starts all of it. An agent pauses for so many milliseconds before each event. None, said aloud, where PostgreSQL is
    /// missing.
    pub async fn start(pace: u64, seed: u64) -> Option<Self> {
        let postgres = Postgres::start()?;
        let (store, pace) = (postgres.url(&postgres.database()), pace.to_string());
        let programs = [Self::program(&store, &pace), Self::program(&store, &pace)];
        let (proxy, random) = (Proxy::new().await, StdRng::seed_from_u64(seed));
        let replicas = Self { store, pace, programs, proxy, random, _postgres: postgres };
        replicas.show_to_the_proxy();
        Some(replicas)
    }

    fn program(store: &str, pace: &str) -> Program {
        Program::start_with("test-runner", &["--store", store, "--pace", pace])
    }

    fn show_to_the_proxy(&self) {
        let address = |program: &Program| program.url.replace("http://localhost", "127.0.0.1").parse().unwrap();
        *self.proxy.backends.lock().unwrap() = self.programs.iter().map(address).collect();
    }

    /// Where everything is, for a person.
    pub fn tell(&self) -> String {
        format!(
            "A      {}\nB      {}\nproxy  {}\nstore  {}",
            self.programs[0].url, self.programs[1].url, self.proxy.url, self.store
        )
    }

    fn target(&self, place: usize) -> Target {
        Target::new(&self.programs[place].url.replace("localhost", "127.0.0.1"))
    }

    /// A task that runs in one process, read, listed, followed and canceled in the other. Gives what was seen.
    pub async fn show(&self) -> Result<Vec<String>, String> {
        let (first, second) = (self.target(0), self.target(1));
        let (open, begun, id) = begin(&first).await?;
        let mut said = vec![format!("task {id} runs in A")];
        let read = get(&second, &id).await?;
        said.push(format!("B reads it: {}", read.status.state));
        let list = second.call::<ListTasksResponse>(Binding::Rpc, "ListTasks", &json!({})).await;
        let list = list.map_err(|wrong| wrong.0)?.map_err(|error| error.to_string())?;
        said.push(format!("B lists {:?} task", list.total_size));
        let mut stream = subscribe(&second, &id, None).await?.ok_or("it has ended already")?;
        let mut follower = Follower::new();
        while let Next::Frame(frame) = stream.next().await.map_err(|wrong| wrong.0)? {
            follower.take(frame)?;
            if follower.task.as_ref().is_some_and(|task| !task.artifacts.is_empty()) {
                break;
            }
        }
        said.push("B follows it and has heard a piece of its artifact".to_owned());
        let canceled = second.call::<Task>(Binding::Rest, "CancelTask", &json!({"id": id})).await;
        let canceled = canceled.map_err(|wrong| wrong.0)?.map_err(|error| error.to_string())?;
        said.push(format!("B cancels it: {}", canceled.status.state));
        let proxy = Target::new(&self.proxy.url);
        let (told, _) = follow(open, proxy, id, begun, 0).await?;
        said.push(format!("who asked A hears: {}", told.status.state));
        if told != canceled {
            return Err(format!("{told:?} is not {canceled:?}"));
        }
        Ok(said)
    }

    /// Begins a task in one process, follows it in both, kills one of them in the middle, and holds what was told against
    /// what is there. Then starts the killed one again. Gives what was seen.
    pub async fn round(&mut self, number: usize) -> Result<String, String> {
        let (owner, victim) = (number % 2, self.random.random_range(0..2));
        let proxy = Target::new(&self.proxy.url);
        let (open, begun, id) = begin(&self.target(owner)).await?;
        let other = subscribe(&self.target(1 - owner), &id, None).await?.ok_or("it has ended already")?;
        let seed = self.random.random();
        let sender = tokio::spawn(follow(open, proxy.clone(), id.clone(), begun, seed));
        let follower = tokio::spawn(follow(other, proxy.clone(), id.clone(), Follower::new(), seed));
        let after = Duration::from_millis(self.random.random_range(20..600));
        tokio::time::sleep(after).await;
        let since = Instant::now();
        self.programs[victim].child.kill().map_err(|cause| cause.to_string())?;
        let limit = 2 * LIMIT;
        let both = async { (sender.await, follower.await) };
        let (sender, follower) = tokio::time::timeout(limit, both).await.map_err(|_| format!("no end in {limit:?}"))?;
        let took = since.elapsed();
        let (first, sender_came_back) = sender.map_err(|cause| cause.to_string())??;
        let (second, follower_came_back) = follower.map_err(|cause| cause.to_string())??;
        let task = get(&proxy, &id).await?;
        if first != task || second != task {
            return Err(format!("task {id}: {first:?}, {second:?} and {task:?}"));
        }
        if owner == victim && took > LIMIT {
            return Err(format!("task {id} ended only after {took:?}"));
        }
        self.programs[victim] = Self::program(&self.store, &self.pace);
        self.show_to_the_proxy();
        let times = |came_back: usize| match came_back {
            0 => "heard all of it".to_owned(),
            1 => "came back once".to_owned(),
            times => format!("came back {times} times"),
        };
        Ok(format!(
            "the turn in {}, {} killed after {:>3} ms: {:<20} after {:>4.1} s; who asked {} {}, who followed {} {}",
            NAMES[owner],
            NAMES[victim],
            after.as_millis(),
            task.status.state.to_string(),
            took.as_secs_f64(),
            NAMES[owner],
            times(sender_came_back),
            NAMES[1 - owner],
            times(follower_came_back),
        ))
    }

    /// Whether all tasks have ended.
    pub async fn nothing_is_left(&self) -> Result<String, String> {
        let proxy = Target::new(&self.proxy.url);
        for state in ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"] {
            let params = json!({"status": state});
            let list = proxy.call::<ListTasksResponse>(Binding::Rest, "ListTasks", &params).await;
            let list = list.map_err(|wrong| wrong.0)?.map_err(|error| error.to_string())?;
            if list.total_size != Some(0) {
                return Err(format!("{:?} tasks are left in {state}", list.total_size));
            }
        }
        Ok("no task is left running".to_owned())
    }
}

/// Starts a run of the tests. Gives its stream after the first frame, what that told, and its task.
async fn begin(target: &Target) -> Result<(Open, Follower, TaskId), String> {
    let opened = target.open(Binding::Rpc, "SendStreamingMessage", &send("Run the tests on main"), None).await;
    let mut open = opened.map_err(|wrong| wrong.0)?.map_err(|error| error.to_string())?;
    let mut follower = Follower::new();
    if let Next::Frame(frame) = open.next().await.map_err(|wrong| wrong.0)? {
        follower.take(frame)?;
    }
    let id = follower.task.as_ref().map(|task| task.id.clone()).ok_or("the first frame is no task")?;
    Ok((open, follower, id))
}

async fn get(target: &Target, id: &TaskId) -> Result<Task, String> {
    let answer = target.call::<Task>(Binding::Rest, "GetTask", &json!({"id": id})).await;
    answer.map_err(|wrong| wrong.0)?.map_err(|error| format!("GetTask of {id}: {error}"))
}

/// None when the task has ended.
async fn subscribe(target: &Target, id: &TaskId, last_id: Option<u64>) -> Result<Option<Open>, String> {
    let params = json!({"id": id});
    match target.open(Binding::Rpc, "SubscribeToTask", &params, last_id).await.map_err(|wrong| wrong.0)? {
        Ok(open) => Ok(Some(open)),
        Err(error) if error.reason().as_deref() == Some("UNSUPPORTED_OPERATION") => Ok(None),
        Err(error) => Err(format!("SubscribeToTask of {id}: {error}")),
    }
}

/// Follows a task to its end, through the proxy when its stream breaks. Gives the task as it ended, which holds all that
/// was told before, and how often it came back.
async fn follow(
    mut open: Open,
    proxy: Target,
    id: TaskId,
    mut follower: Follower,
    seed: u64,
) -> Result<(Task, usize), String> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut came_back = 0;
    loop {
        let broke = loop {
            match open.next().await {
                Ok(Next::Frame(frame)) => follower.take(frame)?,
                Ok(Next::End) => break !follower.state().is_some_and(protocol::TaskState::is_terminal),
                // It broke, or was broken off.
                Ok(Next::Refused(_)) | Err(_) => break true,
            }
        };
        if broke {
            came_back += 1;
            let last_id = follower.last_id.filter(|_| random.random_bool(0.5));
            let since = Instant::now();
            let again = loop {
                match subscribe(&proxy, &id, last_id).await {
                    Ok(again) => break again,
                    Err(wrong) if since.elapsed() > LIMIT => return Err(wrong),
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            };
            if let Some(again) = again {
                follower.comes_back(last_id.is_some());
                open = again;
                continue;
            }
        }
        let task = get(&proxy, &id).await?;
        if !task.status.state.is_terminal() {
            return Err(format!("the stream of task {id} ended, but it is {}", task.status.state));
        }
        if let Some(before) = &follower.task {
            agrees_so_far(before, &task)?;
        }
        return Ok((task, came_back));
    }
}
