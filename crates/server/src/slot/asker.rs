//! Who waits for what: a caller, its message before the turn begins, and how it gets its answer.

use std::sync::Arc;

use protocol::{Error, Message, TaskPushNotificationConfig, Timestamps};
use tokio::sync::oneshot;

use super::{ELSEWHERE, Slot, State};
use crate::attempt::{Attempt, Outcome};
use crate::engine::{Engine, Sent};
use crate::hub::{Ends, Log, Reader};
use crate::store::Principal;

/// How a caller wants to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// When the turn has settled.
    Blocking,
    /// As soon as there is a task.
    Immediate,
    /// With a stream.
    Streaming,
}

/// A caller who waits for an answer.
#[derive(Debug)]
pub(crate) struct Asker {
    pub mode: Mode,
    pub answer: oneshot::Sender<Result<Sent, Error>>,
    pub attempt: Arc<Attempt>,
    /// What the agent makes in this caller's turn says when it was made.
    pub timestamps: Option<Timestamps>,
}

/// A message with what belongs to it, before its turn starts.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub message: Arc<Message>,
    pub accepted_output_modes: Arc<[String]>,
    pub config: Option<TaskPushNotificationConfig>,
    pub asker: Asker,
}

impl Incoming {
    /// A message whose caller was answered by a process that is gone.
    pub fn answered(owner: &Principal, message: Message) -> Self {
        let (answer, _) = oneshot::channel();
        let message = Arc::new(message);
        let attempt = Attempt::new(owner, &message);
        let asker = Asker { mode: Mode::Immediate, answer, attempt, timestamps: None };
        Self { message, accepted_output_modes: Arc::default(), config: None, asker }
    }
}

impl Slot {
    /// Waits for the turn that runs, if one does, here or elsewhere.
    pub async fn joined(self: &Arc<Self>, engine: &Engine, asker: Asker) {
        let turn = {
            let mut state = self.lock().await;
            if let Err(error) = self.hear(engine, &mut state).await {
                drop(state);
                asker.attempt.becomes(Outcome::Error(error.clone()));
                let _ = asker.answer.send(Err(error));
                return;
            }
            match &state.running {
                Some(running) => running.turn,
                None if state.elsewhere => ELSEWHERE,
                None => state.turns,
            }
        };
        asker.attempt.becomes(Outcome::Turn(self.clone(), turn));
        self.settled(turn, asker).await;
    }

    /// Waits for a turn to settle, whoever started it.
    pub async fn settled(&self, turn: u32, asker: Asker) {
        let mut state = self.lock().await;
        let elsewhere = turn == ELSEWHERE && state.elsewhere && !state.task.status.state.phase().settles();
        let open = elsewhere
            || state.running.as_ref().is_some_and(|running| running.turn == turn) && !state.over
            || state.waiting.iter().any(|(own, _)| *own == turn);
        let waits = match asker.mode {
            Mode::Blocking => open,
            Mode::Streaming => open || !state.task.status.state.is_terminal(),
            Mode::Immediate => false,
        };
        if waits {
            state.place(&self.log, turn, asker);
        } else {
            let _ = asker.answer.send(Ok(Sent::Task(state.told())));
        }
    }
}

impl State {
    /// Gives a caller its place: an answer, a stream, or a place among those who wait.
    pub fn place(&mut self, log: &Arc<Log>, turn: u32, asker: Asker) {
        match asker.mode {
            Mode::Blocking => self.askers.push((turn, asker)),
            Mode::Immediate => {
                let _ = asker.answer.send(Ok(Sent::Task(self.told())));
            }
            Mode::Streaming => {
                let reader = Reader::attach(log, self.task.clone(), Ends::WithTurn(turn));
                let _ = asker.answer.send(Ok(Sent::Stream(reader)));
            }
        }
    }
}
