//! The kit's whole job: test a commit, review its diff, deploy its build, and stop where a rule says so.

use protocol::TaskState;

use crate::plan::{Finished, Inputs, Plan};
use crate::{Failure, Planner};

/// What to ship.
#[derive(Debug, Clone)]
pub struct Order {
    /// The commit to test.
    pub commit: String,
    /// The diff to review.
    pub diff: Vec<u8>,
    /// The build to deploy.
    pub build: String,
}

/// The diff that the kit ships.
pub const CLEAN_DIFF: &[u8] = include_bytes!("../../../scenarios/stories/refunds-clean.diff");

impl Default for Order {
    /// What the kit ships.
    fn default() -> Self {
        Self { commit: "a41d7c3".to_owned(), diff: CLEAN_DIFF.to_vec(), build: "2026.10.06-1".to_owned() }
    }
}

impl Order {
    /// What the kit's plan is given.
    pub fn inputs(self) -> Inputs {
        let inputs = [("commit", self.commit.into_bytes()), ("diff", self.diff), ("build", self.build.into_bytes())];
        inputs.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

/// How the job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The deploy was delegated and came to this state; none when it came to no task.
    Deployed(Option<TaskState>),
    /// A rule stopped it; the log says which.
    Stopped,
}

impl Ended {
    /// Whether the build is live.
    pub fn is_live(&self) -> bool {
        *self == Self::Deployed(Some(TaskState::Completed))
    }
}

/// The kit's plan.
pub const SHIP: &str = include_str!("../plans/ship.toml");

impl Planner {
    /// Ships an order with the agents it has met, as the kit's plan says. Nothing is begun unless somebody has each skill.
    pub async fn ship(&self, order: &Order) -> Result<Ended, Failure> {
        let plan = Plan::read(SHIP).map_err(|wrong| Failure::Inputs(wrong.to_string()))?;
        Ok(match self.run(&plan, &order.clone().inputs()).await? {
            Finished::Done(state) => Ended::Deployed(state),
            Finished::Stopped => Ended::Stopped,
        })
    }
}
