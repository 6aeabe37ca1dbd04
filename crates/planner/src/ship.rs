//! The kit's whole job: test a commit, review its diff, deploy its build, and stop where a rule says so.

use protocol::{Part, Task, TaskState, media};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

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
        let summary: Summary = match data(tests, "summary") {
            Ok(summary) => summary,
            Err(why) => return stop(format!("the test task has no summary that can be read: {why}")),
        };
        self.say(format!("tests: {summary}"));
        if summary.failed > 0 {
            return stop(format!("{} test(s) failed", summary.failed));
        }

        let diff = Part::raw(order.diff.clone(), "refunds.diff", media::DIFF);
        let ask = Part::text("Review this diff of payments-api.");
        let review = self.delegate("review-diff", vec![ask, diff]).await?;
        let Some(review) = completed(&review) else {
            return stop("the review did not complete".to_owned());
        };
        let review: Review = match data(review, "review") {
            Ok(review) => review,
            Err(why) => return stop(format!("the review task has no review that can be read: {why}")),
        };
        let findings = review.findings.len();
        let blocking = review.findings.iter().filter(|finding| finding.severity == Severity::High).count();
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

/// The first data part of an artifact, in the shape that the planner reads. The error says what is missing or wrong.
fn data<T: for<'a> Deserialize<'a>>(task: &Task, name: &str) -> Result<T, String> {
    let artifact = task.artifacts.iter().find(|made| made.artifact_id.as_str() == name);
    let artifact = artifact.ok_or_else(|| format!("there is no artifact {name}"))?;
    let data = artifact.parts.iter().find_map(|part| match &part.content {
        protocol::Content::Data(json) => Some(json),
        _ => None,
    });
    let data = data.ok_or_else(|| format!("the artifact {name} has no data"))?;
    data.read().map_err(|cause| format!("the data of the artifact {name}: {cause}"))
}

/// What the tests came to.
#[derive(Debug, Deserialize)]
struct Summary {
    #[serde(deserialize_with = "whole")]
    passed: u64,
    #[serde(deserialize_with = "whole")]
    failed: u64,
}

/// A whole number, also one that was carried as a double, as whatever goes through protobuf's `Struct` is: `13.0`.
fn whole<'de, D: Deserializer<'de>>(number: D) -> Result<u64, D::Error> {
    let number = serde_json::Number::deserialize(number)?;
    let double = || number.as_f64().filter(|double| double.fract() == 0.0 && (0.0..9e15).contains(double));
    let whole = number.as_u64().or_else(|| double().map(|double| double as u64));
    whole.ok_or_else(|| D::Error::custom(format!("{number} is no whole number")))
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
    findings: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
struct Finding {
    severity: Severity,
}

/// How bad a finding is. A word that is not known may mean anything, so nothing is deployed over it.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Low,
    Medium,
    High,
}
