//! How an agent speaks.

use protocol::{Artifact, TaskId};

use crate::agent::Words;

/// The agent's voice in one turn. Each word is kept, then told, before the call returns.
#[derive(Debug)]
pub struct Say {
    pub(crate) todo: (),
}

/// A piece of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// The artifact, with the parts of this piece.
    pub artifact: Artifact,
    /// The parts follow those that are there; otherwise they replace them.
    pub append: bool,
    /// Nothing more will come.
    pub last_chunk: bool,
}

/// Nothing more can be said in this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Over {
    /// The work is to stop: canceled, out of time, or the server shuts down.
    #[error("the work was stopped")]
    Stopped,
    /// The turn has ended: a question, a need for approval, an end or a direct reply was said.
    #[error("the turn has ended")]
    Ended,
    /// A direct reply is only possible before anything else.
    #[error("a direct reply must come first and alone")]
    NotFirst,
    /// What was said could not be kept.
    #[error("the store failed")]
    NotKept,
}

impl Say {
    /// The task's id. Makes the task when it is not there yet.
    pub async fn task_id(&self) -> Result<TaskId, Over> {
        Err(Over::Ended)
    }

    /// Answers with a direct message. No task is made. Only the first word of a first turn may be this one.
    pub async fn reply(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }

    /// The task waits for its turn; says where it stands in the queue.
    pub async fn queued(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }

    /// The agent works.
    pub async fn working(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }

    /// A piece of what the agent made.
    pub async fn artifact(&self, chunk: Chunk) -> Result<(), Over> {
        let _ = chunk;
        Ok(())
    }

    /// The agent needs an answer from the client. Ends the turn; the answer starts the next one.
    pub async fn ask(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }

    /// The agent needs an approval from outside A2A. Ends the turn; the approval starts the next one.
    pub async fn need_approval(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }

    /// The task ended well.
    pub async fn done(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }

    /// The task ended with an error.
    pub async fn failed(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }

    /// The agent will not do it.
    pub async fn rejected(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }

    /// The work was stopped as asked.
    pub async fn canceled(&self, words: impl Into<Words>) -> Result<(), Over> {
        let _ = words.into();
        Ok(())
    }
}
