//! What a client does on one visit.

use std::sync::Arc;

use futures_util::future::{join_all, try_join_all};
use protocol::call::ListTasksResponse;
use protocol::{StreamResponse, Task, TaskId, TaskState};
use rand::RngExt;
use serde_json::json;

use super::Wrong;
use super::client::{Client, read_to_the_end, read_until, reason, sleep};
use super::follow::Follower;
use super::plan::{Plan, Step};
use crate::talk::Binding;

/// The kinds of visits, each with how often it is drawn in a hundred.
const KINDS: [(&str, u8); 11] = [
    ("blocking", 18),
    ("streaming", 10),
    ("streams dropped", 14),
    ("watched", 8),
    ("canceled", 16),
    ("asked", 14),
    ("approved", 5),
    ("direct", 4),
    ("resent", 3),
    ("walked", 2),
    ("looked back", 6),
];

impl Client {
    /// A kind of visit: at random, but for each client's first.
    fn kind(&mut self, place: usize) -> &'static str {
        if self.drawn == 0 {
            return KINDS[place % KINDS.len()].0;
        }
        let mut left = self.random.random_range(0..100);
        for (kind, weight) in KINDS {
            if left < weight {
                return kind;
            }
            left -= weight;
        }
        "looked back"
    }

    /// One visit. The error says what was wrong, and on what kind of visit.
    pub async fn visit(&mut self, place: usize) -> Result<(), String> {
        let kind = self.kind(place);
        self.drawn += 1;
        self.tally.count(kind);
        let visited = match kind {
            "blocking" => self.blocking().await,
            "streaming" => self.streaming().await,
            "streams dropped" => self.streams_dropped().await,
            "watched" => self.watched().await,
            "canceled" => self.canceled().await,
            "asked" => self.asked().await,
            "approved" => self.approved().await,
            "direct" => self.direct().await,
            "resent" => self.resent().await,
            "walked" => self.walked().await,
            _ => self.looks_back().await,
        };
        visited.map_err(|Wrong(wrong)| format!("{kind}: {wrong}"))
    }

    fn plan_that_ends(&mut self) -> Plan {
        let end = Plan::an_end(&mut self.random);
        self.plan(&[end])
    }

    /// A blocking reply is the task as it is read right after.
    async fn blocking(&mut self) -> Result<(), Wrong> {
        let plan = self.plan_that_ends();
        let mut letter = self.letter(&plan, None);
        let hook = self.maybe_hooked(&mut letter);
        let reply = self.task_of(&letter.params).await?;
        let read = self.the_end(&reply.id).await?;
        if reply != read {
            return Err(format!("the reply was {reply:?}, GetTask gives {read:?}").into());
        }
        if let Some(hook) = hook {
            hook.agrees(&read).await?;
        }
        Ok(())
    }

    /// What a stream tells adds up to the task.
    async fn streaming(&mut self) -> Result<(), Wrong> {
        let plan = self.plan_that_ends();
        let mut letter = self.letter(&plan, None);
        let hook = self.maybe_hooked(&mut letter);
        let open = self.stream_of(&letter.params).await?;
        let follower = read_to_the_end(open).await?;
        let task = self.ends_as_followed(&follower).await?;
        if let Some(hook) = hook {
            hook.agrees(&task).await?;
        }
        Ok(())
    }

    async fn ends_as_followed(&mut self, follower: &Follower) -> Result<Task, Wrong> {
        let id = follower.task.as_ref().map(|task| task.id.clone()).ok_or_else(|| "no task came".to_owned())?;
        let task = self.the_end(&id).await?;
        follower.agrees_in_words(&task).map_err(|wrong| format!("task {id}: {wrong}"))?;
        Ok(task)
    }

    /// A client that goes away and comes back, with or without the number of its last frame, misses nothing.
    async fn streams_dropped(&mut self) -> Result<(), Wrong> {
        let plan = self.plan_that_ends();
        let letter = self.letter(&plan, None);
        let mut follower = Follower::new();
        let mut open = self.stream_of(&letter.params).await?;
        loop {
            let mut patience = self.random.random_range(1..30u32);
            let enough = |_: &Follower| {
                patience -= 1;
                patience == 0
            };
            let ended = read_until(&mut open, &mut follower, enough).await?;
            drop(open);
            if ended || follower.state().is_some_and(TaskState::is_terminal) {
                break;
            }
            self.tally.count("streams that came back");
            if self.random.random_bool(0.5) {
                sleep(self.random.random_range(0..2000)).await;
            }
            let id = follower.task.as_ref().map(|task| task.id.clone()).ok_or_else(|| "no task came".to_owned())?;
            let resumes = self.random.random_bool(0.6);
            let last_id = follower.last_id.filter(|_| resumes);
            match self.subscribe(&id, last_id).await? {
                Some(again) => open = again,
                // It ended meanwhile.
                None => return self.the_end(&id).await.map(drop),
            }
            follower.comes_back(last_id.is_some());
        }
        self.ends_as_followed(&follower).await.map(drop)
    }

    /// A task that was begun without waiting, followed by several.
    async fn watched(&mut self) -> Result<(), Wrong> {
        let plan = self.plan_that_ends();
        let mut letter = self.letter(&plan, None);
        let hook = self.maybe_hooked(&mut letter);
        let configuration = &mut letter.params["configuration"];
        configuration["returnImmediately"] = json!(true);
        let begun = self.task_of(&letter.params).await?;
        if begun.status.state != TaskState::Submitted {
            return Err(format!("an immediate reply to a new task is {}", begun.status.state).into());
        }
        let mut watchers = Vec::new();
        for _ in 0..self.random.random_range(1..4) {
            watchers.extend(self.subscribe(&begun.id, None).await?);
        }
        let followers = try_join_all(watchers.into_iter().map(read_to_the_end)).await?;
        let task = self.comes_to_its_end(&begun.id).await?;
        for follower in followers {
            follower.agrees_in_words(&task).map_err(|wrong| format!("task {}: {wrong}", task.id))?;
        }
        if let Some(hook) = hook {
            hook.agrees(&task).await?;
        }
        Ok(())
    }

    /// Asks until the task, which ends by itself, has ended.
    async fn comes_to_its_end(&mut self, id: &TaskId) -> Result<Task, Wrong> {
        let since = tokio::time::Instant::now();
        while !self.get(id).await?.status.state.is_terminal() {
            if since.elapsed() > super::wire::LIMIT {
                return Err(format!("task {id} does not end").into());
            }
            sleep(2000).await;
        }
        self.the_end(id).await
    }

    /// Cancels that race each other and the end agree on one end.
    async fn canceled(&mut self) -> Result<(), Wrong> {
        let end = match self.random.random_range(0..50u8) {
            0 => Step::Ignore,
            1..12 => Step::Heed,
            12..18 => Step::Ask,
            18..22 => Step::Approval,
            _ => Plan::an_end(&mut self.random),
        };
        let pause = Step::Pause(self.random.random_range(0..4000));
        let plan = self.plan(&[pause, end]);
        let mut letter = self.letter(&plan, None);
        let hook = self.maybe_hooked(&mut letter);
        let id = if self.random.random_bool(0.5) {
            let configuration = &mut letter.params["configuration"];
            configuration["returnImmediately"] = json!(true);
            self.task_of(&letter.params).await?.id
        } else {
            // Its stream is dropped at once.
            let (mut open, mut follower) = (self.stream_of(&letter.params).await?, Follower::new());
            read_until(&mut open, &mut follower, |_| true).await?;
            follower.task.map(|task| task.id).ok_or_else(|| "no task came".to_owned())?
        };
        let watcher = if self.random.random_bool(0.5) { self.subscribe(&id, None).await? } else { None };
        let cancels = (0..self.random.random_range(1..5)).map(|_| {
            let (pause, binding) = (self.random.random_range(0..4000), self.binding());
            let (target, params) = (self.target.clone(), json!({"id": id}));
            async move {
                sleep(pause).await;
                target.call::<Task>(binding, "CancelTask", &params).await
            }
        });
        let cancels = join_all(cancels.collect::<Vec<_>>());
        let (cancels, followed) = tokio::join!(cancels, async {
            match watcher {
                Some(open) => read_to_the_end(open).await.map(Some),
                None => Ok(None),
            }
        });
        let task = self.the_end(&id).await?;
        if let Some(follower) = followed? {
            follower.agrees_in_words(&task).map_err(|wrong| format!("task {id}: {wrong}"))?;
        }
        let mut canceled = false;
        for cancel in cancels {
            let cancel = cancel?;
            self.tally.refused("CancelTask", &cancel)?;
            match cancel {
                Ok(reply) if reply == task => canceled = true,
                Ok(reply) => return Err(format!("a cancel gave {reply:?}, GetTask gives {task:?}").into()),
                Err(error) if reason(&error) == "TASK_NOT_CANCELABLE" => {}
                Err(error) => return Err(format!("CancelTask of {id}: {error}").into()),
            }
        }
        if canceled != (task.status.state == TaskState::Canceled) {
            return Err(format!("some cancel was told that it canceled: {canceled}; {}", task.status.state).into());
        }
        if let Some(hook) = hook {
            hook.agrees(&task).await?;
        }
        Ok(())
    }

    /// A task that asks, several answers at once, perhaps a cancel between them; none is lost and none is twice.
    async fn asked(&mut self) -> Result<(), Wrong> {
        let plan = self.plan(&[Step::Ask]);
        let mut letter = self.letter(&plan, None);
        let hook = self.maybe_hooked(&mut letter);
        let asked = self.task_of(&letter.params).await?;
        let id = asked.id.clone();
        if asked.status.state != TaskState::InputRequired {
            return Err(format!("task {id} was to ask, but is {}", asked.status.state).into());
        }
        if self.get(&id).await? != asked {
            return Err(format!("task {id} asks, and is not what the reply said").into());
        }
        let mut watchers = Vec::new();
        for _ in 0..self.random.random_range(0..3) {
            watchers.extend(self.subscribe(&id, None).await?);
        }
        let watchers = try_join_all(watchers.into_iter().map(read_to_the_end));
        let answers = self.answers(&id);
        let (followers, told) = tokio::try_join!(watchers, answers)?;
        let task = self.the_end(&id).await?;
        for follower in followers {
            follower.agrees_in_words(&task).map_err(|wrong| format!("task {id}: {wrong}"))?;
        }
        let came = |message: &String| task.history.iter().any(|own| own.message_id.as_str() == message);
        for (message, must) in told {
            if must.is_some_and(|must| must != came(&message)) {
                return Err(format!(
                    "message {message} to task {id} is there: {}; to be there: {must:?}",
                    came(&message)
                )
                .into());
            }
        }
        if let Some(hook) = hook {
            hook.agrees(&task).await?;
        }
        Ok(())
    }

    /// Answers a question several times at once, then until the task ends. Gives the messages that were sent, and
    /// whether each must be in the history.
    async fn answers(&mut self, id: &TaskId) -> Result<Vec<(String, Option<bool>)>, Wrong> {
        let mut letters = Vec::new();
        for _ in 0..self.random.random_range(1..5) {
            let end = if self.random.random_bool(0.7) { Step::Ask } else { Plan::an_end(&mut self.random) };
            let plan = self.plan(&[end]);
            let pause = self.random.random_range(0..3000);
            letters.push((self.letter(&plan, Some(id)), self.random.random_range(0..3u8), self.binding(), pause));
        }
        let target = self.target.clone();
        let sends = letters.into_iter().map(|(letter, mode, binding, pause)| {
            let target = target.clone();
            async move {
                sleep(pause).await;
                let must = answer(&target, binding, mode, letter.params, &letter.id).await?;
                Ok::<_, Wrong>((letter.id, must))
            }
        });
        let cancel = self.random.random_bool(0.2).then(|| self.random.random_range(0..4000));
        let (binding, params) = (self.binding(), json!({"id": id}));
        let (told, canceled) = tokio::join!(try_join_all(sends.collect::<Vec<_>>()), async {
            match cancel {
                None => Ok(()),
                Some(pause) => {
                    sleep(pause).await;
                    match target.call::<Task>(binding, "CancelTask", &params).await? {
                        Ok(task) if task.status.state == TaskState::Canceled => Ok(()),
                        Err(error) if reason(&error) == "TASK_NOT_CANCELABLE" => Ok(()),
                        other => Err(Wrong(format!("CancelTask of {id}: {other:?}"))),
                    }
                }
            }
        });
        canceled?;
        let mut told = told?;
        for _ in 0..20 {
            if self.get(id).await?.status.state.is_terminal() {
                return Ok(told);
            }
            let plan = self.plan(&[Step::Done]);
            let letter = self.letter(&plan, Some(id));
            match self.send(&letter.params).await? {
                Ok(_) => told.push((letter.id, Some(true))),
                Err(error) if reason(&error) == "UNSUPPORTED_OPERATION" => told.push((letter.id, Some(false))),
                Err(error) => return Err(format!("an answer to {id}: {error}").into()),
            }
        }
        Err(format!("task {id} does not end, however often it is answered").into())
    }

    /// Of approvals that come at once one counts, none after the end, and a send stream stays open until it is given.
    async fn approved(&mut self) -> Result<(), Wrong> {
        let end = Plan::an_end(&mut self.random);
        let plan = self.plan(&[Step::Approval, Step::Working, Step::New(7), end]);
        let letter = self.letter(&plan, None);
        let (mut open, mut follower) = (self.stream_of(&letter.params).await?, Follower::new());
        let asked = |follower: &Follower| follower.state() == Some(TaskState::AuthRequired);
        read_until(&mut open, &mut follower, asked).await?;
        let id = follower.task.as_ref().map(|task| task.id.clone()).ok_or_else(|| "no task came".to_owned())?;
        let cancels = self.random.random_bool(0.2);
        let params = json!({"id": id});
        let cancel = async {
            match cancels {
                true => {
                    let canceled = self.target.call::<Task>(Binding::Rpc, "CancelTask", &params).await;
                    canceled.map(|canceled| canceled.is_ok())
                }
                false => Ok(false),
            }
        };
        let approvals = (0..self.random.random_range(1..=3)).map(|_| self.target.approve(id.as_str()));
        let approvals = futures_util::future::try_join_all(approvals);
        let (approved, canceled, rest) =
            tokio::join!(approvals, cancel, read_until(&mut open, &mut follower, |_| false));
        if !rest? {
            return Err("a stream did not end".to_owned().into());
        }
        let (approved, canceled) = (approved?, canceled?);
        let counted = approved.iter().filter(|counted| **counted).count();
        if counted > 1 {
            return Err(format!("{counted} approvals of task {id} counted").into());
        }
        if counted == 0 && !canceled {
            return Err(format!("the approval of task {id} did not count").into());
        }
        if self.target.approve(id.as_str()).await? {
            return Err(format!("an approval of task {id} counted after its end").into());
        }
        let task = self.ends_as_followed(&follower).await?;
        if canceled != (task.status.state == TaskState::Canceled) {
            return Err(format!("task {id} was canceled: {canceled}; it is {}", task.status.state).into());
        }
        Ok(())
    }

    /// A direct reply is one message and nothing else.
    async fn direct(&mut self) -> Result<(), Wrong> {
        let plan = Plan { name: self.fresh(), steps: vec![Step::Reply] };
        let letter = self.letter(&plan, None);
        let words = format!("{} says hello", plan.name);
        let message = if self.random.random_bool(0.5) {
            match self.send(&letter.params).await? {
                Ok(StreamResponse::Message(message)) => (*message).clone(),
                other => return Err(format!("a message was to come, but not {other:?}").into()),
            }
        } else {
            let (mut open, mut follower) = (self.stream_of(&letter.params).await?, Follower::new());
            read_until(&mut open, &mut follower, |_| false).await?;
            follower.message.ok_or_else(|| "a message was to come, but none did".to_owned())?
        };
        if message.text() != words || message.task_id.is_some() || message.context_id.is_none() {
            return Err(format!("a strange message: {message:?}").into());
        }
        Ok(())
    }

    /// A message whose reply nobody waited for is sent again.
    async fn resent(&mut self) -> Result<(), Wrong> {
        let plan = self.plan_that_ends();
        let letter = self.letter(&plan, None);
        let patience = std::time::Duration::from_micros(self.random.random_range(100..4000));
        let binding = self.binding();
        self.target.drop_after(binding, "SendMessage", &letter.params, patience).await;
        let reply = self.task_of(&letter.params).await?;
        let read = self.the_end(&reply.id).await?;
        if reply != read {
            return Err(format!("the reply was {reply:?}, GetTask gives {read:?}").into());
        }
        if !read.history.iter().any(|message| message.message_id.as_str() == letter.id) {
            return Err(format!("message {} is not in the task that answered it", letter.id).into());
        }
        Ok(())
    }

    /// A walk over a context's pages finds each task once.
    async fn walked(&mut self) -> Result<(), Wrong> {
        let next = self.fresh();
        let (context, known) = std::mem::replace(&mut self.context, (next, Vec::new()));
        let size = self.random.random_range(1..6);
        let (artifacts, history) = (self.random.random_bool(0.3), self.random.random_range(0..3));
        let mut found: Vec<Arc<Task>> = Vec::new();
        let mut token = String::new();
        loop {
            let mut params = json!({
                "contextId": context, "pageSize": size, "includeArtifacts": artifacts, "historyLength": history,
            });
            if !token.is_empty() {
                params["pageToken"] = json!(token);
            }
            let binding = self.binding();
            let page = self.target.call::<ListTasksResponse>(binding, "ListTasks", &params).await?;
            let page = page.map_err(|error| format!("ListTasks: {error}"))?;
            if page.tasks.len() > size || !page.next_page_token.is_empty() && page.tasks.len() < size {
                return Err(format!("a page of {} for {size}", page.tasks.len()).into());
            }
            found.extend(page.tasks);
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        let key = |task: &Task| (task.status.timestamp, task.id.clone());
        if let Some([first, second]) =
            found.windows(2).find(|two| key(&two[0]) <= key(&two[1])).map(|two| [&two[0], &two[1]])
        {
            return Err(format!("in a list {} comes before {}", first.id, second.id).into());
        }
        let long = |task: &&Arc<Task>| task.history.len() > history || !artifacts && !task.artifacts.is_empty();
        if let Some(task) = found.iter().find(long) {
            return Err(format!("a list shows more of {} than was asked for", task.id).into());
        }
        let missing = known.iter().find(|id| !found.iter().any(|task| task.id == **id));
        match missing {
            Some(id) if !self.forgets => Err(format!("task {id} is not in the list of its context").into()),
            _ => Ok(()),
        }
    }
}

/// Sends one answer: blocking, immediate or streaming. Whether it must then be in the history.
async fn answer(
    target: &super::wire::Target,
    binding: Binding,
    mode: u8,
    mut params: serde_json::Value,
    id: &str,
) -> Result<Option<bool>, Wrong> {
    let refused = |error: protocol::error::RemoteError| match reason(&error).as_str() {
        "UNSUPPORTED_OPERATION" => Ok(Some(false)),
        _ => Err(Wrong(format!("an answer: {error}"))),
    };
    if mode == 2 {
        return match target.open(binding, "SendStreamingMessage", &params, None).await? {
            Ok(mut open) => {
                let mut follower = Follower::new();
                read_until(&mut open, &mut follower, |_| false).await?;
                match follower.state() {
                    // It may have waited beside a task that ended without it.
                    Some(state) if state.is_terminal() => Ok(None),
                    Some(TaskState::InputRequired) => Ok(Some(true)),
                    state => Err(format!("the stream of an answer ended in {state:?}").into()),
                }
            }
            Err(error) => refused(error),
        };
    }
    params["configuration"] = json!({"returnImmediately": mode == 1});
    match target.call::<StreamResponse>(binding, "SendMessage", &params).await? {
        Ok(StreamResponse::Task(task)) => {
            let state = task.status.state;
            if mode == 0 && !(state.is_terminal() || state == TaskState::InputRequired) {
                return Err(format!("a blocking reply is {state}").into());
            }
            let there = task.history.iter().any(|message| message.message_id.as_str() == id);
            if mode == 0 && !there {
                return Err(format!("a blocking reply does not know its own message {id}").into());
            }
            Ok(Some(true))
        }
        Ok(other) => Err(format!("a task was to come, but not {other:?}").into()),
        Err(error) => refused(error),
    }
}
