use std::process::ExitCode;
use std::sync::Arc;

use script::{Mistake, Scripted, Story, one_of};
use server::cli;

use crate::files::Files;

/// `workshop agent`.
#[derive(Debug, clap::Args)]
pub struct Agent {
    /// The agent's file (docs/agents.md), or the name of one of those that are built in, such as hello.
    file: String,
    /// Which agent of the file, when it has more than one.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// One of the agent's configurations.
    #[arg(long, value_name = "NAME")]
    configuration: Option<String>,
    /// Only reads the file, and says what is wrong with it.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    shared: cli::Flags,
}

impl Agent {
    /// Serves the agent until it is stopped, as the agent binaries do.
    pub fn run(mut self, files: &Files) -> ExitCode {
        let (agent, rules) = match self.read(files) {
            Ok(read) => read,
            Err(mistake) => {
                eprintln!("{mistake}");
                return ExitCode::from(2);
            }
        };
        let about = &agent.about;
        if self.check {
            println!("{}: {} {}, rules: {rules}", self.file, about.card.name, about.card.version);
            return ExitCode::SUCCESS;
        }
        self.shared.allow_local_webhooks |= about.allow_local_webhooks;
        self.shared.plain_json |= about.plain_json;
        self.shared.token = self.shared.token.or_else(|| about.token.clone());
        let defaults = cli::Defaults {
            port: about.port,
            token: None,
            dedupe: about.dedupe,
            signing_key: None,
            needs_operators: false,
            notice: agent.notice(),
        };
        cli::run(&self.shared, defaults, Arc::new(agent))
    }

    fn read(&self, files: &Files) -> Result<(Scripted, usize), Mistake> {
        let built_in = format!("agents/{}.toml", self.file);
        let (shown, text) = match files.read(&built_in) {
            Some(bytes) => (files.shown(&built_in), String::from_utf8_lossy(&bytes).into_owned()),
            None => {
                (self.file.clone(), std::fs::read_to_string(&self.file).map_err(|cause| self.unread(files, &cause))?)
            }
        };
        let story = Story::parse(&shown, &text)?;
        let agent = Scripted::of(&story, &shown, self.agent.as_deref(), self.configuration.as_deref())?;
        let rules = agent.script.rules().len();
        Ok((agent, rules))
    }

    fn unread(&self, files: &Files, cause: &std::io::Error) -> Mistake {
        let names = files.names("agents");
        let names: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(".toml")).collect();
        let words = format!("cannot be read: {cause}; expected a file or {}", one_of(&names));
        Mistake { file: self.file.clone(), line: None, words }
    }
}
