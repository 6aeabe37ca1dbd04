//! What one message asks the hammer's agent to do, as text: drawn by the client, played by the agent, and played once
//! more by the client to know what the task must hold in the end.

use std::time::Duration;

use protocol::{Artifact, ArtifactId, Message, Part, Role, Task, TaskState};
use rand::RngExt;
use rand::rngs::StdRng;

/// One step of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Says that it works.
    Working,
    /// Begins an artifact, or begins it anew.
    New(u8),
    /// Appends to an artifact.
    Append(u8),
    /// Waits for so many microseconds.
    Pause(u16),
    /// Lets others run.
    Yield,
    /// Asks the client. Ends the turn.
    Ask,
    /// Needs an approval. Ends the turn; what follows is played when it is given.
    Approval,
    /// Ends well.
    Done,
    /// Ends with an error.
    Failed,
    /// Refuses.
    Rejected,
    /// Returns without an end.
    Return,
    /// Returns with an error.
    Fault,
    /// Panics.
    Panic,
    /// Waits until it is told to stop, and stops.
    Heed,
    /// Waits for ever, whatever it is told.
    Ignore,
    /// Answers with a message instead of a task.
    Reply,
}

const WORDS: [(&str, Step); 13] = [
    ("working", Step::Working),
    ("yield", Step::Yield),
    ("ask", Step::Ask),
    ("approval", Step::Approval),
    ("done", Step::Done),
    ("failed", Step::Failed),
    ("rejected", Step::Rejected),
    ("return", Step::Return),
    ("fault", Step::Fault),
    ("panic", Step::Panic),
    ("heed", Step::Heed),
    ("ignore", Step::Ignore),
    ("reply", Step::Reply),
];

impl Step {
    fn write(self) -> String {
        match self {
            Self::New(artifact) => format!("new-{artifact}"),
            Self::Append(artifact) => format!("append-{artifact}"),
            Self::Pause(micros) => format!("pause-{micros}"),
            other => {
                let word = WORDS.iter().find(|(_, step)| *step == other).map(|(word, _)| *word);
                word.unwrap_or_default().to_owned()
            }
        }
    }

    fn read(word: &str) -> Option<Self> {
        match word.split_once('-') {
            Some(("new", artifact)) => artifact.parse().ok().map(Self::New),
            Some(("append", artifact)) => artifact.parse().ok().map(Self::Append),
            Some(("pause", micros)) => micros.parse().ok().map(Self::Pause),
            _ => WORDS.iter().find(|(known, _)| *known == word).map(|(_, step)| *step),
        }
    }

    /// The state in which the step leaves the task for good, if it does.
    fn end(self) -> Option<TaskState> {
        match self {
            Self::Done => Some(TaskState::Completed),
            Self::Failed | Self::Return | Self::Fault | Self::Panic => Some(TaskState::Failed),
            Self::Rejected => Some(TaskState::Rejected),
            _ => None,
        }
    }
}

/// What one message asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Tells its pieces from those of every other plan.
    pub name: String,
    /// What is done, in order.
    pub steps: Vec<Step>,
}

impl Plan {
    /// A plan that works for a while in a random way, and then does this.
    pub fn draw(name: String, random: &mut StdRng, end: &[Step]) -> Self {
        let mut steps = Vec::new();
        if random.random_bool(0.8) {
            steps.push(Step::Working);
        }
        let pieces = match random.random_range(0..20u8) {
            0 => random.random_range(100..300),
            1..5 => 0,
            _ => random.random_range(1..12),
        };
        let begun = |steps: &[Step], artifact| steps.contains(&Step::New(artifact));
        for _ in 0..pieces {
            let artifact = random.random_range(0..3);
            let append = begun(&steps, artifact) && random.random_bool(0.9);
            steps.push(if append { Step::Append(artifact) } else { Step::New(artifact) });
            match random.random_range(0..30u8) {
                0 => steps.push(Step::Pause(random.random_range(0..3000))),
                1..4 => steps.push(Step::Yield),
                4 => steps.push(Step::Working),
                _ => {}
            }
        }
        steps.extend(end);
        Self { name, steps }
    }

    /// A way to end by itself: well most of the time.
    pub fn an_end(random: &mut StdRng) -> Step {
        const OTHERS: [Step; 5] = [Step::Failed, Step::Rejected, Step::Return, Step::Fault, Step::Panic];
        if random.random_bool(0.8) { Step::Done } else { OTHERS[random.random_range(0..OTHERS.len())] }
    }

    /// The plan as the text of a message.
    pub fn text(&self) -> String {
        let steps = self.steps.iter().map(|step| step.write());
        [self.name.clone()].into_iter().chain(steps).collect::<Vec<_>>().join(" ")
    }

    /// The plan in the text of a message.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let name = words.next()?.to_owned();
        Some(Self { name, steps: words.map(Step::read).collect::<Option<_>>()? })
    }

    /// The piece of an artifact that a step makes.
    pub fn piece(&self, number: usize, artifact: u8) -> Option<Artifact> {
        let id = ArtifactId::new(format!("a{artifact}")).ok()?;
        Some(Artifact::new(id, vec![Part::text(format!("{}.{number}", self.name))]))
    }
}

impl Step {
    /// How long a pause is.
    pub fn pause(self) -> Duration {
        match self {
            Self::Pause(micros) => Duration::from_micros(micros.into()),
            _ => Duration::ZERO,
        }
    }
}

/// Holds a task that has ended against the plans in its history. The error says what is wrong.
pub fn check(task: &Task) -> Result<(), String> {
    let plan = |message: &Message| {
        Plan::read(&message.text())
            .ok_or_else(|| format!("a message of the client's came back as {:?}", message.text()))
    };
    let messages = task.history.iter().filter(|message| message.role == Role::User);
    let plans = messages.map(|message| plan(message)).collect::<Result<Vec<_>, _>>()?;
    let broken_off = task.status.state == TaskState::Canceled;
    let mut made: Vec<Artifact> = Vec::new();
    let mut ended = None;
    let mut fits = broken_off && same(&made, task);
    'plans: for plan in &plans {
        for (number, step) in plan.steps.iter().enumerate() {
            let (artifact, append) = match *step {
                Step::New(artifact) => (artifact, false),
                Step::Append(artifact) => (artifact, true),
                step => match step.end() {
                    Some(end) => {
                        ended = Some(end);
                        break 'plans;
                    }
                    None => continue,
                },
            };
            let piece = plan.piece(number, artifact).ok_or("a piece without an id")?;
            match made.iter_mut().find(|known| known.artifact_id == piece.artifact_id) {
                Some(known) if append => known.parts.extend(&piece.parts),
                Some(known) => *known = piece,
                None => made.push(piece),
            }
            fits = fits || broken_off && same(&made, task);
        }
    }
    if !broken_off && ended != Some(task.status.state) {
        return Err(format!("the plans end in {ended:?}, the task in {}", task.status.state));
    }
    if fits || !broken_off && same(&made, task) {
        return Ok(());
    }
    let kind = if broken_off { "the beginning of what" } else { "what" };
    Err(format!("its artifacts are not {kind} the plans make: {}", sizes(task)))
}

fn same(made: &[Artifact], task: &Task) -> bool {
    made.len() == task.artifacts.len() && made.iter().zip(&task.artifacts).all(|(made, there)| *made == **there)
}

/// How much a task holds, for a message.
pub fn sizes(task: &Task) -> String {
    let sizes =
        task.artifacts.iter().map(|artifact| format!("{}: {} parts", artifact.artifact_id, artifact.parts.len()));
    format!("[{}]", sizes.collect::<Vec<_>>().join(", "))
}
