//! The kit's deployer on a port of its own. Callers show the bearer token `dpl_test_7c1e4b`, or the one of `--token`.
//!
//! ```text
//! $ cargo run -p deployer
//! INFO deployer recites the story payments-api; it deploys nothing
//! deployer is ready: http://localhost:41243/.well-known/agent-card.json
//!
//! $ cargo run -p deployer -- operator ada >> operators
//! The token of ada, shown this once: …
//! $ cargo run -p deployer -- --environment staging=./staging --builds ./builds --operators operators
//! INFO deployer rolls the builds in ./builds out to staging, each after an operator has approved it
//! ```
//!
//! Ctrl-C ends it. `--help` lists the flags; `--story FILE` lets it recite something else, `--environment NAME=DIR` and
//! `--config FILE` let it work. `deployer audit FILE` reads the audit log.

#[cfg(feature = "real")]
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use deployer::Deployer;
#[cfg(feature = "real")]
use deployer::real::{self, Config, Environment, Rollouts, audit};
use script::{Script, stories};
use server::{Dedupe, cli};

/// The kit's deployer on a port of its own. Callers show the bearer token `dpl_test_7c1e4b`, or the one of `--token`.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    shared: cli::Flags,
    /// What it recites: a story file, or the name of the story that is built in; none, when it is to work.
    #[arg(long, value_name = "FILE", default_value = stories::DEFAULT)]
    story: String,
    #[cfg(feature = "real")]
    #[command(flatten)]
    real: Real,
}

/// What the program does beside being an agent.
#[derive(clap::Subcommand)]
enum Other {
    /// Makes a token for an operator: shows it once, and prints the line for the file of --operators.
    Operator {
        /// The operator's name, as it stands in reports and in the audit log.
        name: String,
    },
    /// Prints an audit log, and checks it with --verify.
    #[cfg(feature = "real")]
    Audit {
        /// The log. Without it: the one that a deployer without --audit-log writes.
        file: Option<PathBuf>,
        /// Checks that no line was changed, taken out or put in, and prints the hash of the last one instead of the log.
        #[arg(long)]
        verify: bool,
        /// A hash that was noted earlier and must still be there; without it, lines taken away from the end do not show.
        #[arg(long, value_name = "HASH", requires = "verify")]
        head: Option<String>,
    },
}

/// Real work.
#[cfg(feature = "real")]
#[derive(clap::Args)]
struct Real {
    /// An environment and its folder, in which `current` leads to the build that is live. Repeatable.
    #[arg(long = "environment", value_name = "NAME=DIR")]
    environment: Vec<Environment>,
    /// The folder with the builds: tar archives, plain or packed with gzip or zstd.
    #[arg(long, value_name = "DIR")]
    builds: Option<PathBuf>,
    /// A file with environments, their checks and who may do what there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the audit log is kept. Without it: a2a/deployer-audit.jsonl in the user's state directory.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

#[cfg(feature = "real")]
impl Real {
    /// The agent that works, if there is somewhere to deploy to.
    fn agent(self) -> Result<Option<Deployer>, real::Mistake> {
        let mut config = self.config.as_deref().map(Config::open).transpose()?.unwrap_or_default();
        config.environments.extend(self.environment);
        if config.environments.is_empty() {
            return match self.config {
                Some(file) => Err(real::Mistake(format!("{}: there is no environment in it", file.display()))),
                None => Ok(None),
            };
        }
        let Some(builds) = self.builds.or(config.builds) else {
            return Err(real::Mistake("without builds there is nothing to deploy: --builds DIR".to_owned()));
        };
        let log = self.audit_log.or(config.audit_log).unwrap_or_else(real::audit_log);
        Rollouts::new(&builds, config.environments, &log).map(|rollouts| Some(Deployer::working(rollouts)))
    }
}

fn agent(story: &str, #[cfg(feature = "real")] real: Real) -> Result<Deployer, String> {
    #[cfg(feature = "real")]
    if let Some(agent) = real.agent().map_err(|mistake| mistake.to_string())? {
        return Ok(agent);
    }
    if story == "none" {
        let words = "without a story there must be somewhere to deploy to: --environment NAME=DIR, or --config FILE";
        return Err(words.to_owned());
    }
    Script::open(deployer::NAME, story).map(Deployer::reciting).map_err(|mistake| mistake.to_string())
}

fn main() -> ExitCode {
    let Arguments {
        other,
        shared,
        story,
        #[cfg(feature = "real")]
        real,
    } = Arguments::parse();
    match other {
        None => {}
        Some(Other::Operator { name }) => return cli::new_token(&name),
        #[cfg(feature = "real")]
        Some(Other::Audit { file, verify, head }) => {
            return read_log(&file.unwrap_or_else(real::audit_log), verify, head.as_deref());
        }
    }
    let agent = agent(
        &story,
        #[cfg(feature = "real")]
        real,
    );
    let agent = match agent {
        Ok(agent) => agent,
        Err(mistake) => {
            eprintln!("{mistake}");
            return ExitCode::from(2);
        }
    };
    let defaults = cli::Defaults {
        port: deployer::PORT,
        token: Some(deployer::TOKEN),
        dedupe: Dedupe::Always,
        signing_key: Some(deployer::signing_key()),
        needs_operators: agent.works(),
        notice: agent.notice(),
    };
    cli::run(&shared, defaults, Arc::new(agent))
}

/// Prints the log, or what checking it came to: exit code 0, or 1 when it cannot be trusted.
#[cfg(feature = "real")]
fn read_log(file: &std::path::Path, verify: bool, head: Option<&str>) -> ExitCode {
    let print = |entry: &audit::Entry| {
        if !verify {
            println!("{entry}");
        }
    };
    match audit::verify(file, head, print) {
        Ok(whole) => {
            if verify {
                println!(
                    "{} entries, each after the one before it. The last one's hash: {}",
                    whole.entries, whole.head
                );
            }
            if whole.torn {
                eprintln!("The last line is torn: a process died while it wrote it. The next entry takes its place.");
            }
            ExitCode::SUCCESS
        }
        Err(broken) => {
            eprintln!("{}: {broken}", file.display());
            ExitCode::from(1)
        }
    }
}

#[test]
fn the_flags_do_not_contradict_each_other() {
    <Arguments as clap::CommandFactory>::command().debug_assert();
}
