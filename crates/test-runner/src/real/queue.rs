//! The place of a run among those that wait. So many run at once; the rest wait in the order in which they came.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Runs that go on and runs that wait.
#[derive(Debug)]
pub struct Queue {
    inner: Mutex<Inner>,
    moved: watch::Sender<()>,
}

#[derive(Debug)]
struct Inner {
    free: usize,
    next: u64,
    waiting: VecDeque<u64>,
}

/// A run that goes on, or waits. Dropped, it makes room.
#[derive(Debug)]
pub struct Place {
    queue: Arc<Queue>,
    number: u64,
    runs: bool,
}

impl Queue {
    /// Room for so many at once, at least one.
    pub fn new(jobs: usize) -> Arc<Self> {
        let inner = Inner { free: jobs.max(1), next: 0, waiting: VecDeque::new() };
        Arc::new(Self { inner: Mutex::new(inner), moved: watch::Sender::new(()) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place at the end.
    pub fn enter(self: &Arc<Self>) -> Place {
        let mut inner = self.inner();
        let number = inner.next;
        inner.next += 1;
        inner.waiting.push_back(number);
        drop(inner);
        Place { queue: self.clone(), number, runs: false }
    }
}

impl Place {
    /// How many are before this one. Zero: it runs now.
    pub fn ahead(&mut self) -> usize {
        let mut inner = self.queue.inner();
        if self.runs {
            return 0;
        }
        let before = inner.waiting.iter().position(|number| *number == self.number).unwrap_or_default();
        if before < inner.free {
            inner.waiting.remove(before);
            inner.free -= 1;
            self.runs = true;
            return 0;
        }
        // Those that fill the room are before it as well.
        before + 1
    }

    /// Hears when the order changes.
    pub fn moves(&self) -> watch::Receiver<()> {
        self.queue.moved.subscribe()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.queue.inner();
        if self.runs {
            inner.free += 1;
        } else {
            inner.waiting.retain(|number| *number != self.number);
        }
        drop(inner);
        self.queue.moved.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_runs_and_the_rest_wait_in_order() {
        let queue = Queue::new(1);
        let (mut first, mut second, mut third) = (queue.enter(), queue.enter(), queue.enter());
        assert_eq!((first.ahead(), second.ahead(), third.ahead()), (0, 1, 2));
        drop(second);
        assert_eq!((first.ahead(), third.ahead()), (0, 1));
        drop(first);
        assert_eq!(third.ahead(), 0);
        let mut fourth = queue.enter();
        assert_eq!(fourth.ahead(), 1);
        drop(third);
        assert_eq!(fourth.ahead(), 0);
    }

    #[test]
    fn the_order_is_kept_when_several_may_run() {
        let queue = Queue::new(2);
        let mut places: Vec<_> = (0..4).map(|_| queue.enter()).collect();
        // Whoever asks first does not overtake.
        assert_eq!(places[2].ahead(), 3);
        assert_eq!(places[1].ahead(), 0);
        assert_eq!(places[0].ahead(), 0);
        assert_eq!((places[2].ahead(), places[3].ahead()), (1, 2));
        places.remove(1);
        assert_eq!((places[1].ahead(), places[2].ahead()), (0, 1));
    }
}
