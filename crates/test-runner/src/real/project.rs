//! The projects that may be tested, as they are configured: by `--project NAME=PATH`, or in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

/// How long a suite may run when nobody said otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// How much of a log is kept when nobody said otherwise.
const OUTPUT_LIMIT: usize = 10 << 20;
/// The suite of a project for which none is configured: what its files tell is run.
pub const DETECTED: &str = "tests";

/// A project that may be tested.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its name, as messages say it.
    pub name: String,
    /// A git repository, or a git bundle.
    pub path: PathBuf,
    /// Its suites. The first one runs when a message names none.
    pub suites: Vec<Suite>,
}

/// A way to test a project.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Its name; `unit` runs for "the unit tests" and "suite unit".
    pub name: String,
    /// The program and its arguments; empty when they are told from the files of the commit. `{report}` stands for the
    /// path of the report.
    pub command: Vec<String>,
    /// Where the command leaves a JUnit XML report, seen from the root of the commit. Without it: at `{report}`, if the
    /// command holds that.
    pub report: Option<PathBuf>,
    /// After so long it is stopped.
    pub time_limit: Duration,
    /// So many bytes of its log are kept from the start; what comes later is cut, except its last lines.
    pub output_limit: usize,
    /// So many bytes of data may each of its processes have.
    pub memory_limit: Option<u64>,
    /// So many seconds of a CPU may each of its processes use.
    pub cpu_limit: Option<u64>,
    /// Whether it reaches the network, where the sandbox can tell.
    pub network: bool,
    /// Variables of its environment, beside the few that every suite gets.
    pub environment: BTreeMap<String, String>,
}

impl Suite {
    fn detected() -> Self {
        Self {
            name: DETECTED.to_owned(),
            command: Vec::new(),
            report: None,
            time_limit: TIME_LIMIT,
            output_limit: OUTPUT_LIMIT,
            memory_limit: None,
            cpu_limit: None,
            network: true,
            environment: BTreeMap::new(),
        }
    }
}

/// Why projects are not taken. The text names the file, the line where that is known, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistake(pub String);

impl std::str::FromStr for Project {
    type Err = Mistake;

    /// Reads `NAME=PATH`. What is run is told from the files of each commit.
    fn from_str(text: &str) -> Result<Self, Mistake> {
        let Some((name, path)) = text.split_once('=').filter(|(_, path)| !path.is_empty()) else {
            return Err(Mistake(format!("a project is NAME=PATH, such as payments-api=../payments-api, not {text}")));
        };
        let project = Self { name: name.to_owned(), path: path.into(), suites: vec![Suite::detected()] };
        project.check()?;
        Ok(project)
    }
}

impl Project {
    fn check(&self) -> Result<(), Mistake> {
        let fine = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
        if self.name.is_empty() || !self.name.chars().all(fine) || self.name.starts_with(['-', '.']) {
            return Err(Mistake(format!(
                "{:?} is no name for a project: letters, digits, '-', '_' and '.' make one",
                self.name
            )));
        }
        Ok(())
    }

    /// Checks that its repository is there.
    pub fn find(&self) -> Result<(), Mistake> {
        let (name, path) = (&self.name, self.path.display());
        if self.path.is_file() || self.path.join(".git").exists() || self.path.join("HEAD").is_file() {
            return Ok(());
        }
        Err(Mistake(format!("project {name}: {path} is neither a git repository nor a git bundle")))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    project: BTreeMap<String, ProjectTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProjectTable {
    path: PathBuf,
    #[serde(default)]
    suite: Vec<SuiteTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SuiteTable {
    name: String,
    command: Vec<String>,
    report: Option<PathBuf>,
    /// Seconds.
    time_limit: Option<u64>,
    output_limit: Option<usize>,
    memory_limit: Option<u64>,
    cpu_limit: Option<u64>,
    network: Option<bool>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

/// Reads the projects of a file. Paths in it start at its folder.
pub fn open(path: &Path) -> Result<Vec<Project>, Mistake> {
    let wrong = |cause: &dyn std::fmt::Display| Mistake(format!("{}: {cause}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|cause| wrong(&cause))?;
    let file: File = toml::from_str(&text).map_err(|cause| wrong(&cause.to_string().trim_end()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut projects = Vec::new();
    for (name, table) in file.project {
        let mut suites = Vec::new();
        for table in table.suite {
            if table.command.is_empty() {
                return Err(wrong(&format!("project {name}, suite {}: the command is empty", table.name)));
            }
            if table.report.as_ref().is_some_and(|report| !is_inside(report)) {
                return Err(wrong(&format!("project {name}, suite {}: the report must be a path inside", table.name)));
            }
            let usual = Suite::detected();
            suites.push(Suite {
                name: table.name.to_lowercase(),
                command: table.command,
                report: table.report,
                time_limit: table.time_limit.map_or(usual.time_limit, Duration::from_secs),
                output_limit: table.output_limit.unwrap_or(usual.output_limit),
                memory_limit: table.memory_limit,
                cpu_limit: table.cpu_limit,
                network: table.network.unwrap_or(usual.network),
                environment: table.environment,
            });
        }
        if suites.is_empty() {
            suites.push(Suite::detected());
        }
        let project = Project { name, path: folder.join(table.path), suites };
        project.check().map_err(|cause| wrong(&cause))?;
        projects.push(project);
    }
    if projects.is_empty() {
        return Err(wrong(&"it holds no project"));
    }
    Ok(projects)
}

fn is_inside(path: &Path) -> bool {
    path.components().all(|piece| matches!(piece, std::path::Component::Normal(_)))
}

/// What to run for the files of a commit, with the report that it leaves.
pub fn detect(tree: &Path) -> Option<Vec<String>> {
    let has = |name: &str| tree.join(name).exists();
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    if has("Cargo.toml") {
        words(&["cargo", "test", "--no-fail-fast"])
    } else if has("go.mod") {
        words(&["go", "test", "-v", "./..."])
    } else if has("package.json") {
        words(&["npm", "test", "--silent"])
    } else if has("pytest.ini") || has("pyproject.toml") || has("setup.cfg") || has("tox.ini") || has("tests") {
        words(&["python3", "-m", "pytest", "-o", "junit_family=xunit1", "--junit-xml={report}"])
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_on_the_command_line_is_a_name_and_a_path() {
        let project: Project = "payments-api=../payments-api".parse().unwrap();
        assert_eq!((project.name.as_str(), project.path.as_path()), ("payments-api", Path::new("../payments-api")));
        for wrong in ["payments-api", "=x", "a b=x", "-a=x", "a=", "../a=x", "a/b=x"] {
            assert!(wrong.parse::<Project>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_is_refused_with_its_name_and_the_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("projects.toml");
        let refused = |text: &str| {
            std::fs::write(&path, text).unwrap();
            open(&path).unwrap_err().0
        };
        assert!(refused("[project.a]\npath = 1\n").contains("line 2"));
        assert!(
            refused("[project.a]\npath = \".\"\n[[project.a.suite]]\nname = \"unit\"\ncommand = []\n")
                .contains("empty")
        );
        assert!(refused("[project.a]\npath = \".\"\nsuites = 1\n").contains("suites"));
        assert!(refused("").contains("no project"));
        let report =
            "[project.a]\npath = \".\"\n[[project.a.suite]]\nname = \"u\"\ncommand = [\"x\"]\nreport = \"../x\"\n";
        assert!(refused(report).contains("inside"));
    }

    #[test]
    fn a_file_says_what_runs_and_how_much_it_may_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("projects.toml");
        let text = r#"
            [project.shop]
            path = "shop"
            [[project.shop.suite]]
            name = "Unit"
            command = ["make", "check"]
            report = "out/junit.xml"
            time-limit = 30
            output-limit = 1000
            network = false
            environment = { LEVEL = "2" }
        "#;
        std::fs::write(&path, text).unwrap();
        let projects = open(&path).unwrap();
        let [Project { path, suites, .. }] = projects.as_slice() else { panic!("{projects:?}") };
        assert_eq!(*path, folder.path().join("shop"));
        let suite = &suites[0];
        assert_eq!((suite.name.as_str(), suite.time_limit.as_secs(), suite.output_limit), ("unit", 30, 1000));
        assert!(!suite.network);
        assert_eq!(suite.environment["LEVEL"], "2");
    }
}
