//! The store in memory: gone with the process.

use std::collections::{BTreeSet, HashMap};
use std::sync::{PoisonError, RwLock};

use protocol::{Change, ConfigId, ContextId, Task, TaskId, TaskPushNotificationConfig, TaskState, Timestamp};

use super::{Kept, Page, Place, Principal, Query, Record, Store};

/// Keeps tasks until the process ends.
#[derive(Debug, Default)]
pub struct Memory(RwLock<Shelves>);

#[derive(Debug, Default)]
struct Shelves {
    records: HashMap<TaskId, Record>,
    configs: HashMap<TaskId, Vec<TaskPushNotificationConfig>>,
    owners: HashMap<Principal, Index>,
}

/// One owner's tasks in order, so that a page touches what it shows and nothing else.
#[derive(Debug, Default)]
struct Index {
    order: BTreeSet<Place>,
    contexts: BTreeSet<(ContextId, TaskId)>,
    /// How many tasks stand in each state.
    states: HashMap<TaskState, usize>,
}

fn place(task: &Task) -> Place {
    Place { time: task.status.timestamp.unwrap_or(Timestamp::from_millis(0)), id: task.id.clone() }
}

impl Index {
    fn add(&mut self, task: &Task) {
        self.order.insert(place(task));
        *self.states.entry(task.status.state).or_default() += 1;
    }

    fn remove(&mut self, task: &Task) {
        self.order.remove(&place(task));
        if let Some(count) = self.states.get_mut(&task.status.state) {
            *count -= 1;
        }
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
        let fits = |task: &Task| {
            query.status.is_none_or(|state| task.status.state == state)
                && query.since.is_none_or(|since| task.status.timestamp.is_some_and(|time| time >= since))
        };
        let task = |id: &TaskId| self.records.get(id).map(|record| &record.task);
        let mut page = Page::default();
        let mut take = |found: &std::sync::Arc<Task>| {
            if page.tasks.len() == query.limit {
                page.more = true;
                return false;
            }
            page.tasks.push(found.clone());
            true
        };
        if let Some(context_id) = &query.context_id {
            // No id comes before this one.
            let Ok(lowest) = TaskId::new("\0") else { return page };
            let of_context = index.contexts.range((context_id.clone(), lowest)..);
            let ids = of_context.take_while(|(context, _)| context == context_id).map(|(_, id)| id);
            let mut tasks: Vec<_> = ids.filter_map(task).filter(|task| fits(task)).collect();
            tasks.sort_by_key(|task| std::cmp::Reverse(place(task)));
            let after = tasks.iter().filter(|task| query.after.as_ref().is_none_or(|after| place(task) < *after));
            for found in after {
                if !take(found) {
                    break;
                }
            }
            page.total = tasks.len();
            return page;
        }
        let below: Box<dyn Iterator<Item = &Place>> = match &query.after {
            Some(after) => Box::new(index.order.range(..after).rev()),
            None => Box::new(index.order.iter().rev()),
        };
        for found in below.filter_map(|place| task(&place.id)).filter(|task| fits(task)) {
            if !take(found) {
                break;
            }
        }
        page.total = match (query.status, query.since) {
            (None, None) => index.order.len(),
            (Some(state), None) => index.states.get(&state).copied().unwrap_or_default(),
            (_, Some(since)) => {
                let newer = index.order.iter().rev().take_while(|place| place.time >= since);
                newer.filter_map(|place| task(&place.id)).filter(|task| fits(task)).count()
            }
        };
        page
    }
}

impl Store for Memory {
    fn waits(&self) -> bool {
        false
    }

    fn create<'a>(&'a self, record: &'a Record) -> Kept<'a, ()> {
        self.write(|shelves| {
            let task = &record.task;
            if !shelves.owners.contains_key(&record.owner) {
                shelves.owners.insert(record.owner.clone(), Index::default());
            }
            if let Some(index) = shelves.owners.get_mut(&record.owner) {
                index.add(task);
                if let Some(context_id) = &task.context_id {
                    index.contexts.insert((context_id.clone(), task.id.clone()));
                }
            }
            shelves.records.insert(task.id.clone(), record.clone());
        });
        Kept::now(())
    }

    fn keep<'a>(&'a self, record: &'a Record, change: &'a Change) -> Kept<'a, ()> {
        self.write(|shelves| {
            let before = shelves.records.insert(record.task.id.clone(), record.clone());
            if let (Change::Status(_), Some(index)) = (change, shelves.owners.get_mut(&record.owner)) {
                if let Some(before) = &before {
                    index.remove(&before.task);
                }
                index.add(&record.task);
            }
        });
        Kept::now(())
    }

    fn load<'a>(&'a self, id: &'a TaskId) -> Kept<'a, Option<Record>> {
        Kept::now(self.read(|shelves| shelves.records.get(id).cloned()))
    }

    fn list<'a>(&'a self, query: &'a Query) -> Kept<'a, Page> {
        Kept::now(self.read(|shelves| shelves.list(query)))
    }

    fn put_config<'a>(&'a self, task: &'a TaskId, config: &'a TaskPushNotificationConfig) -> Kept<'a, ()> {
        self.write(|shelves| {
            let configs = shelves.configs.entry(task.clone()).or_default();
            match configs.iter_mut().find(|known| known.id == config.id) {
                Some(known) => *known = config.clone(),
                None => configs.push(config.clone()),
            }
        });
        Kept::now(())
    }

    fn configs<'a>(&'a self, task: &'a TaskId) -> Kept<'a, Vec<TaskPushNotificationConfig>> {
        Kept::now(self.read(|shelves| shelves.configs.get(task).cloned().unwrap_or_default()))
    }

    fn delete_config<'a>(&'a self, task: &'a TaskId, id: &'a ConfigId) -> Kept<'a, ()> {
        self.write(|shelves| {
            if let Some(configs) = shelves.configs.get_mut(task) {
                configs.retain(|known| known.id.as_ref() != Some(id));
                if configs.is_empty() {
                    shelves.configs.remove(task);
                }
            }
        });
        Kept::now(())
    }
}
