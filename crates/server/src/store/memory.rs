//! The store in memory: gone with the process. Tasks that have ended, which may be very many, are kept as JSON.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use foldhash::HashMap;
use protocol::task::Phase;
use protocol::{
    Change, ConfigId, ContextId, Message, MessageId, TaskId, TaskPushNotificationConfig, TaskState, Timestamp,
};

use super::{
    Created, Delivery, GivenUp, Keep, Kept, Page, Place, Principal, Query, Record, Shown, Step, Store, StoreError,
};
use crate::told::{Told, Written};

/// Keeps tasks until the process ends.
#[derive(Debug, Default)]
pub struct Memory(RwLock<Shelves>);

#[derive(Debug, Default)]
struct Shelves {
    tasks: HashMap<TaskId, Shelved>,
    hooks: HashMap<TaskId, Vec<Hook>>,
    owners: HashMap<Principal, Index>,
    waiting: HashMap<TaskId, Vec<Message>>,
    sent: HashMap<(Principal, MessageId), (Message, TaskId)>,
    given_up: VecDeque<GivenUp>,
    /// The tasks that have ended, oldest first: the order in which they go.
    ended: VecDeque<Place>,
    /// Those that wait for somebody, longest first. They go when no ended ones are left.
    interrupted: BTreeSet<Place>,
    /// How many bytes of JSON the ended tasks are.
    bytes: u64,
}

/// A task as it is kept.
#[derive(Debug)]
enum Shelved {
    Open(Box<Record>),
    Ended(Box<Ended>),
}

/// A task to which nothing will happen any more.
#[derive(Debug)]
struct Ended {
    written: Written,
    number: u64,
    owner: Principal,
    base_url: Arc<str>,
    context_id: Option<ContextId>,
    state: TaskState,
    time: Option<Timestamp>,
}

impl Ended {
    fn record(&self) -> Result<Record, StoreError> {
        let task = self.written.read().map_err(StoreError::failed)?;
        let (owner, base_url) = (self.owner.clone(), self.base_url.clone());
        Ok(Record { task: Arc::new(task), number: self.number, owner, base_url })
    }
}

impl Shelved {
    /// Keeps what a task has become.
    fn renew(&mut self, record: &Record, written: Option<&Written>) -> Result<(), StoreError> {
        match self {
            Self::Open(known) if !record.task.status.state.is_terminal() => (**known).clone_from(record),
            _ => *self = Self::new(record, written)?,
        }
        Ok(())
    }

    /// Keeps a task as JSON if it has ended. `written` is that JSON, if somebody has it.
    fn new(record: &Record, written: Option<&Written>) -> Result<Self, StoreError> {
        let status = &record.task.status;
        if !status.state.is_terminal() {
            return Ok(Self::Open(Box::new(record.clone())));
        }
        let written = match written {
            Some(written) => written.clone(),
            None => Written::of(&record.task).map_err(StoreError::failed)?,
        };
        let (state, time, context_id) = (status.state, status.timestamp, record.task.context_id.clone());
        let (number, owner, base_url) = (record.number, record.owner.clone(), record.base_url.clone());
        Ok(Self::Ended(Box::new(Ended { written, number, owner, base_url, context_id, state, time })))
    }

    fn told(&self) -> Told {
        match self {
            Self::Open(record) => record.task.clone().into(),
            Self::Ended(ended) => ended.written.clone().into(),
        }
    }

    fn record(&self) -> Result<Record, StoreError> {
        match self {
            Self::Open(record) => Ok((**record).clone()),
            Self::Ended(ended) => ended.record(),
        }
    }

    fn owner(&self) -> &Principal {
        match self {
            Self::Open(record) => &record.owner,
            Self::Ended(ended) => &ended.owner,
        }
    }

    fn context_id(&self) -> Option<&ContextId> {
        match self {
            Self::Open(record) => record.task.context_id.as_ref(),
            Self::Ended(ended) => ended.context_id.as_ref(),
        }
    }

    fn state(&self) -> TaskState {
        match self {
            Self::Open(record) => record.task.status.state,
            Self::Ended(ended) => ended.state,
        }
    }

    fn time(&self) -> Option<Timestamp> {
        match self {
            Self::Open(record) => record.task.status.timestamp,
            Self::Ended(ended) => ended.time,
        }
    }

    fn place(&self, id: &TaskId) -> Place {
        Place { time: self.time().unwrap_or(Timestamp::from_millis(0)), id: id.clone() }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Open(_) => 0,
            Self::Ended(ended) => ended.written.text().len() as u64,
        }
    }
}

/// A webhook and what it has not got yet.
#[derive(Debug)]
struct Hook {
    config: TaskPushNotificationConfig,
    queue: VecDeque<(u64, Bytes)>,
    given_up: bool,
}

/// How many webhooks that get nothing more are remembered.
const GIVEN_UP: usize = 1000;

/// One owner's tasks in order, so that a page touches what it shows and nothing else.
#[derive(Debug, Default)]
struct Index {
    order: BTreeSet<Place>,
    contexts: HashMap<ContextId, InContext>,
    /// How many tasks stand in each state.
    states: [usize; TaskState::ALL.len()],
}

/// The tasks of a context. Most have one, and there may be very many contexts.
#[derive(Debug)]
enum InContext {
    One(TaskId),
    /// In a box, so that the others stay small.
    #[allow(clippy::box_collection)]
    Many(Box<BTreeSet<TaskId>>),
}

impl InContext {
    fn ids(&self) -> Box<dyn Iterator<Item = &TaskId> + '_> {
        match self {
            Self::One(id) => Box::new(std::iter::once(id)),
            Self::Many(ids) => Box::new(ids.iter()),
        }
    }
}

impl Index {
    fn join(&mut self, context_id: &ContextId, id: &TaskId) {
        match self.contexts.entry(context_id.clone()) {
            Entry::Vacant(vacant) => drop(vacant.insert(InContext::One(id.clone()))),
            Entry::Occupied(mut occupied) => match occupied.get_mut() {
                InContext::Many(ids) => drop(ids.insert(id.clone())),
                InContext::One(first) => {
                    let both = BTreeSet::from([first.clone(), id.clone()]);
                    occupied.insert(InContext::Many(Box::new(both)));
                }
            },
        }
    }

    fn part(&mut self, context_id: &ContextId, id: &TaskId) {
        let is_left = match self.contexts.get_mut(context_id) {
            None => false,
            Some(InContext::One(only)) => only != id,
            Some(InContext::Many(ids)) => {
                ids.remove(id);
                !ids.is_empty()
            }
        };
        if !is_left {
            self.contexts.remove(context_id);
        }
    }

    fn add(&mut self, place: Place, state: TaskState) {
        self.order.insert(place);
        self.states[state as usize] += 1;
    }

    fn remove(&mut self, place: &Place, state: TaskState) {
        self.order.remove(place);
        self.states[state as usize] -= 1;
    }
}

impl Memory {
    fn write<T>(&self, change: impl FnOnce(&mut Shelves) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn read<T>(&self, look: impl FnOnce(&Shelves) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shelves {
    fn list(&self, query: &Query) -> Page {
        let Some(index) = self.owners.get(&query.owner) else { return Page::default() };
        let fits = |task: &Shelved| {
            query.status.is_none_or(|state| task.state() == state)
                && query.since.is_none_or(|since| task.time().is_some_and(|time| time >= since))
        };
        let task = |id: &TaskId| self.tasks.get(id).filter(|task| fits(task));
        let mut page = Page::default();
        let mut last = None;
        let mut take = |place: &Place, found: &Shelved| {
            if page.tasks.len() == query.limit {
                page.next = last.take();
                return false;
            }
            page.tasks.push(found.told());
            if page.tasks.len() == query.limit {
                last = Some(place.clone());
            }
            true
        };
        if let Some(context_id) = &query.context_id {
            let ids = index.contexts.get(context_id).into_iter().flat_map(InContext::ids);
            let mut tasks: Vec<_> = ids.filter_map(|id| task(id).map(|task| (task.place(id), task))).collect();
            tasks.sort_by(|(one, _), (other, _)| other.cmp(one));
            let total = tasks.len();
            let after = |place: &Place| query.after.as_ref().is_none_or(|after| place < after);
            for (place, found) in tasks.iter().filter(|(place, _)| after(place)) {
                if !take(place, found) {
                    break;
                }
            }
            page.total = total;
            return page;
        }
        let below: Box<dyn Iterator<Item = &Place>> = match &query.after {
            Some(after) => Box::new(index.order.range(..after).rev()),
            None => Box::new(index.order.iter().rev()),
        };
        for (place, found) in below.filter_map(|place| Some((place, task(&place.id)?))) {
            if !take(place, found) {
                break;
            }
        }
        page.total = match (query.status, query.since) {
            (None, None) => index.order.len(),
            (Some(state), None) => index.states[state as usize],
            (_, Some(since)) => {
                let newer = index.order.iter().rev().take_while(|place| place.time >= since);
                newer.filter(|place| task(&place.id).is_some()).count()
            }
        };
        page
    }
}

impl Store for Memory {
    fn waits(&self) -> bool {
        false
    }

    fn create<'a>(&'a self, record: &'a Record, sent: Option<&'a Message>) -> Kept<'a, Created> {
        Kept::Now(Some(self.write(|shelves| {
            let task = &record.task;
            if let Some(message) = sent {
                let key = (record.owner.clone(), message.message_id.clone());
                match shelves.sent.get(&key) {
                    Some((first, task)) if first == message => return Ok(Created::Already(task.clone())),
                    Some(_) => {}
                    None => drop(shelves.sent.insert(key, (message.clone(), task.id.clone()))),
                }
            }
            let shelved = Shelved::new(record, None)?;
            if !shelves.owners.contains_key(&record.owner) {
                shelves.owners.insert(record.owner.clone(), Index::default());
            }
            if let Some(index) = shelves.owners.get_mut(&record.owner) {
                index.add(shelved.place(&task.id), shelved.state());
                if let Some(context_id) = &task.context_id {
                    index.join(context_id, &task.id);
                }
            }
            shelves.tasks.insert(task.id.clone(), shelved);
            Ok(Created::Here)
        })))
    }

    fn keep<'a>(&'a self, step: &'a Step<'a>) -> Kept<'a, ()> {
        let Step { record, event, .. } = step;
        let id = &record.task.id;
        Kept::Now(Some(self.write(|shelves| {
            let Some(known) = shelves.tasks.get_mut(id) else { return Err(StoreError::Moved) };
            match &event.change {
                Change::Status(_) => {
                    let before = (known.place(id), known.state());
                    shelves.bytes -= known.bytes();
                    let renewed = known.renew(record, step.written);
                    shelves.bytes += known.bytes();
                    renewed?;
                    let (place, state) = (known.place(id), known.state());
                    if before.1.phase() == Phase::Interrupted {
                        shelves.interrupted.remove(&before.0);
                    }
                    match state.phase() {
                        Phase::Running => {}
                        Phase::Interrupted => drop(shelves.interrupted.insert(place.clone())),
                        Phase::Terminal => shelves.ended.push_back(place.clone()),
                    }
                    if let Some(index) = shelves.owners.get_mut(&record.owner) {
                        index.remove(&before.0, before.1);
                        index.add(place, state);
                    }
                }
                Change::Message(message) => {
                    known.renew(record, None)?;
                    if step.waited
                        && let Some(waiting) = shelves.waiting.get_mut(id)
                    {
                        waiting.retain(|waits| waits.message_id != message.message_id);
                        if waiting.is_empty() {
                            shelves.waiting.remove(id);
                        }
                    }
                    if let Some(message) = step.sent {
                        let key = (record.owner.clone(), message.message_id.clone());
                        shelves.sent.entry(key).or_insert_with(|| (message.clone(), id.clone()));
                    }
                }
                Change::Artifact(_) => known.renew(record, None)?,
            }
            if step.webhooks && event.is_shown() {
                let hooks = shelves.hooks.get_mut(id).into_iter().flatten();
                for hook in hooks.filter(|hook| !hook.given_up) {
                    hook.queue.push_back((event.number, event.json().clone()));
                }
            }
            Ok(())
        })))
    }

    fn load<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Record>> {
        Kept::Now(Some(self.read(|shelves| shelves.tasks.get(id).map(Shelved::record).transpose())))
    }

    fn show<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Shown>> {
        let shown = |task: &Shelved| Shown { owner: task.owner().clone(), task: task.told() };
        Kept::now(self.read(|shelves| shelves.tasks.get(id).map(shown)))
    }

    fn list<'a>(&'a self, query: &'a Query) -> Kept<'a, Page> {
        Kept::now(self.read(|shelves| shelves.list(query)))
    }

    fn unfinished(&self) -> Kept<'_, Vec<TaskId>> {
        Kept::now(self.read(|shelves| {
            let running = shelves.tasks.iter().filter(|(_, task)| !task.state().phase().settles());
            let waiting = shelves.waiting.keys().filter(|id| shelves.tasks.contains_key(*id));
            let all: BTreeSet<_> = running.map(|(id, _)| id).chain(waiting).collect();
            all.into_iter().cloned().collect()
        }))
    }

    fn awaiting_approval(&self) -> Kept<'_, Vec<Record>> {
        Kept::now(self.read(|shelves| {
            let interrupted = shelves.interrupted.iter().filter_map(|place| {
                let Shelved::Open(record) = shelves.tasks.get(&place.id)? else { return None };
                (record.task.status.state == TaskState::AuthRequired).then(|| (**record).clone())
            });
            interrupted.collect()
        }))
    }

    fn came_to<'a>(&'a self, owner: &'a Principal, message: &'a Message) -> Kept<'a, Option<TaskId>> {
        Kept::now(self.read(|shelves| {
            let known = shelves.sent.get(&(owner.clone(), message.message_id.clone()));
            known.filter(|(first, _)| first == message).map(|(_, task)| task.clone())
        }))
    }

    fn wait<'a>(&'a self, task: &'a TaskId, message: &'a Message) -> Kept<'a, ()> {
        self.write(|shelves| shelves.waiting.entry(task.clone()).or_default().push(message.clone()));
        Kept::now(())
    }

    fn waiting<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<Message>> {
        Kept::now(self.read(|shelves| shelves.waiting.get(task).cloned().unwrap_or_default()))
    }

    fn put_config<'a>(&'a self, task: &'a TaskId, config: &'a TaskPushNotificationConfig) -> Kept<'a, ()> {
        self.write(|shelves| {
            let hooks = shelves.hooks.entry(task.clone()).or_default();
            let hook = Hook { config: config.clone(), queue: VecDeque::new(), given_up: false };
            match hooks.iter_mut().find(|known| known.config.id == config.id) {
                Some(known) => *known = hook,
                None => hooks.push(hook),
            }
        });
        Kept::now(())
    }

    fn configs<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<TaskPushNotificationConfig>> {
        Kept::now(self.read(|shelves| {
            let hooks = shelves.hooks.get(task).into_iter().flatten();
            hooks.map(|hook| hook.config.clone()).collect()
        }))
    }

    fn delete_config<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, ()> {
        self.write(|shelves| {
            if let Some(hooks) = shelves.hooks.get_mut(task) {
                hooks.retain(|known| known.config.id.as_ref() != Some(id));
                if hooks.is_empty() {
                    shelves.hooks.remove(task);
                }
            }
        });
        Kept::now(())
    }

    fn next_delivery<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, Option<Delivery>> {
        Kept::now(self.read(|shelves| {
            let hook = shelves.hooks.get(task)?.iter().find(|known| known.config.id.as_ref() == Some(id))?;
            let (number, json) = hook.queue.front()?.clone();
            Some(Delivery { config: hook.config.clone(), number, json })
        }))
    }

    fn delivered<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId, number: u64) -> Kept<'a, ()> {
        self.write(|shelves| {
            if let Some(hook) = shelves.hook(task, id) {
                hook.queue.retain(|(waits, _)| *waits != number);
            }
        });
        Kept::now(())
    }

    fn give_up<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId, why: &'a str, now: Timestamp) -> Kept<'a, ()> {
        self.write(|shelves| {
            let Some(hook) = shelves.hook(task, id) else { return };
            hook.queue.clear();
            hook.given_up = true;
            let config = hook.config.clone();
            shelves.given_up.push_front(GivenUp { task: task.clone(), config, why: why.to_owned(), since: now });
            shelves.given_up.truncate(GIVEN_UP);
        });
        Kept::now(())
    }

    fn given_up(&self) -> Kept<'_, Vec<GivenUp>> {
        Kept::now(self.read(|shelves| shelves.given_up.iter().cloned().collect()))
    }

    fn undelivered(&self) -> Kept<'_, Vec<(TaskId, ConfigId)>> {
        Kept::now(self.read(|shelves| {
            let hooks = shelves.hooks.iter().flat_map(|(task, hooks)| hooks.iter().map(move |hook| (task, hook)));
            let left = hooks.filter(|(_, hook)| !hook.queue.is_empty());
            left.filter_map(|(task, hook)| Some((task.clone(), hook.config.id.clone()?))).collect()
        }))
    }

    fn retain<'a>(&'a self, keep: &'a Keep) -> Kept<'a, Vec<TaskId>> {
        Kept::now(self.write(|shelves| shelves.retain(keep)))
    }
}

impl Shelves {
    fn hook(&mut self, task: &TaskId, id: &ConfigId) -> Option<&mut Hook> {
        self.hooks.get_mut(task)?.iter_mut().find(|known| known.config.id.as_ref() == Some(id))
    }

    fn retain(&mut self, keep: &Keep) -> Vec<TaskId> {
        let mut gone = Vec::new();
        let too_many = |records: usize| keep.tasks.is_some_and(|most| records as u64 > most);
        loop {
            let too_large = keep.bytes.is_some_and(|most| self.bytes > most);
            let is_due = |place: &Place| {
                too_many(self.tasks.len()) || too_large || keep.since.is_some_and(|since| place.time < since)
            };
            let place = if self.ended.front().is_some_and(is_due) {
                self.ended.pop_front()
            } else if self.interrupted.first().is_some_and(is_due) {
                self.interrupted.pop_first()
            } else {
                return gone;
            };
            let Some(Place { id, .. }) = place else { return gone };
            self.drop_task(&id);
            gone.push(id);
        }
    }

    fn drop_task(&mut self, id: &TaskId) {
        let Some(task) = self.tasks.remove(id) else { return };
        self.bytes -= task.bytes();
        if let Some(index) = self.owners.get_mut(task.owner()) {
            index.remove(&task.place(id), task.state());
            if let Some(context_id) = task.context_id() {
                index.part(context_id, id);
            }
        }
        self.hooks.remove(id);
        self.waiting.remove(id);
        if !self.sent.is_empty()
            && let Ok(record) = task.record()
        {
            for message in &record.task.history {
                let key = (record.owner.clone(), message.message_id.clone());
                if self.sent.get(&key).is_some_and(|(_, task)| task == id) {
                    self.sent.remove(&key);
                }
            }
        }
    }
}
