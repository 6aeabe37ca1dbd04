//! The kit's whole job: test a commit, review its diff, deploy its build, and stop where a rule says so.

use protocol::{Part, Task, TaskState, media};
use serde::Deserialize;

use crate::delegate::Outcome;
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

impl Planner {
    /// Ships an order with the agents it has met. Nothing is begun unless somebody has each skill.
    pub async fn ship(&self, order: &Order) -> Result<Ended, Failure> {
        let stop = |why: String| {
            self.say(format!("stop: {why}"));
            Ok(Ended::Stopped)
        };

        for skill in ["run-tests", "review-diff", "deploy"] {
            self.with_skill(skill)?;
        }

        let text = format!("Run the unit tests for payments-api at commit {}", order.commit);
        let tests = self.delegate("run-tests", vec![Part::text(text)]).await?;
        let Some(tests) = completed(&tests) else {
            return stop("the test task did not complete".to_owned());
        };
        let Some(summary) = data::<Summary>(tests, "summary") else {
            return stop("the test task has no summary".to_owned());
        };
        self.say(format!("tests: {summary}"));
        if summary.failed > 0 {
            return stop(format!("{} test(s) failed", summary.failed));
        }

        let diff = Part::raw(order.diff.clone(), "refunds.diff", media::DIFF);
        let ask = Part::text("Review this diff of payments-api.");
        let review = self.delegate("review-diff", vec![ask, diff]).await?;
        let Some(review) = completed(&review).and_then(|task| data::<Review>(task, "review")) else {
            return stop("the review did not complete".to_owned());
        };
        let findings = review.findings.len();
        let blocking = review.findings.iter().filter(|finding| finding.severity == "high").count();
        let plural = if findings == 1 { "" } else { "s" };
        self.say(format!("review: {findings} finding{plural}, {blocking} blocking"));
        if blocking > 0 {
            return stop("a high-severity finding blocks the deploy".to_owned());
        }

        let text = format!("Deploy build {} to staging", order.build);
        let deploy = self.delegate("deploy", vec![Part::text(text)]).await?;
        let state = match &deploy {
            Outcome::Task(task) => Some(task.status.state),
            Outcome::Message(_) | Outcome::Nothing => None,
        };
        self.say(format!("deploy: {}", state.map_or("no task", TaskState::word)));
        Ok(Ended::Deployed(state))
    }
}

fn completed(outcome: &Outcome) -> Option<&Task> {
    match outcome {
        Outcome::Task(task) if task.status.state == TaskState::Completed => Some(task),
        _ => None,
    }
}

/// The first data part of an artifact, when it has the shape that the planner reads.
fn data<T: for<'a> Deserialize<'a>>(task: &Task, artifact: &str) -> Option<T> {
    let artifact = task.artifacts.iter().find(|made| made.artifact_id.as_str() == artifact)?;
    artifact.parts.iter().find_map(|part| match &part.content {
        protocol::Content::Data(json) => json.read().ok(),
        _ => None,
    })
}

/// What the tests came to.
#[derive(Debug, Deserialize)]
struct Summary {
    passed: u64,
    failed: u64,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.failed > 0 {
            write!(f, "{} failed, ", self.failed)?;
        }
        write!(f, "{} passed", self.passed)
    }
}

/// What the review found.
#[derive(Debug, Deserialize)]
struct Review {
    #[serde(default)]
    findings: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
struct Finding {
    #[serde(default)]
    severity: String,
}
