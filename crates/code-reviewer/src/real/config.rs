//! What a reviewer knows of the machine, as it is configured: by `--project NAME=PATH`, or in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::finding::Severity;
use super::source::Language;

/// How long a tool may run when nobody said otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A project whose diffs are read in the files of their base branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// Its name, as messages say it.
    pub name: String,
    /// A git repository, or a git bundle.
    pub path: PathBuf,
}

/// A linter that writes SARIF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name, which stands before the ids of its rules.
    pub name: String,
    /// The program and its arguments. `{files}` stands for the paths of the changed files that are its own, `{report}`
    /// for the path of the report; without the latter the report comes on standard output.
    pub command: Vec<String>,
    /// The languages whose files are its own.
    pub languages: Vec<Language>,
    /// How the names of other files end that are its own, such as `.css`.
    pub endings: Vec<String>,
    /// After so long it is stopped.
    pub time_limit: Duration,
    /// How bad all that it finds is. Without it: errors are medium, all else is low.
    pub severity: Option<Severity>,
}

impl Tool {
    /// Whether a file is its own. One that may say how a tool works, which a stranger's diff must not, is nobody's.
    pub fn reads(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let configures = name.starts_with('.') || name.to_ascii_lowercase().contains("conf");
        let spoken = Language::of(path).is_some_and(|language| self.languages.contains(&language));
        !configures && (spoken || self.endings.iter().any(|ending| name.ends_with(ending.as_str())))
    }
}

/// All that is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// The projects.
    pub projects: Vec<Project>,
    /// The tools.
    pub tools: Vec<Tool>,
}

/// Why something is not taken. The text names the file, the line where that is known, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistake(pub String);

impl std::str::FromStr for Project {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let Some((name, path)) = text.split_once('=').filter(|(_, path)| !path.is_empty()) else {
            return Err(Mistake(format!("a project is NAME=PATH, such as payments-api=../payments-api, not {text}")));
        };
        check("project", name)?;
        Ok(Self { name: name.to_owned(), path: path.into() })
    }
}

/// Names stand in sentences, and in the ids of rules.
fn check(what: &str, name: &str) -> Result<(), Mistake> {
    let fine = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if name.is_empty() || !name.chars().all(fine) || name.starts_with(['-', '.']) {
        let words = "letters, digits, '-', '_' and '.' make one";
        return Err(Mistake(format!("{name:?} is no name for a {what}: {words}")));
    }
    Ok(())
}

impl Project {
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
    #[serde(default)]
    tool: BTreeMap<String, ToolTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectTable {
    path: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ToolTable {
    command: Vec<String>,
    #[serde(default)]
    languages: Vec<String>,
    #[serde(default)]
    endings: Vec<String>,
    /// Seconds.
    time_limit: Option<u64>,
    severity: Option<Word>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Low,
    Medium,
    High,
}

fn languages(word: &str) -> Option<&'static [Language]> {
    Some(match word.to_ascii_lowercase().as_str() {
        "python" => &[Language::Python],
        "typescript" | "javascript" => &[Language::TypeScript, Language::Tsx],
        "go" => &[Language::Go],
        "rust" => &[Language::Rust],
        _ => return None,
    })
}

impl Config {
    /// Reads a file. Paths in it start at its folder.
    pub fn open(path: &Path) -> Result<Self, Mistake> {
        let wrong = |cause: &dyn std::fmt::Display| Mistake(format!("{}: {cause}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|cause| wrong(&cause))?;
        let file: File = toml::from_str(&text).map_err(|cause| wrong(&cause.to_string().trim_end()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut config = Self::default();
        for (name, table) in file.project {
            check("project", &name).map_err(|cause| wrong(&cause))?;
            config.projects.push(Project { name, path: folder.join(table.path) });
        }
        for (name, table) in file.tool {
            check("tool", &name).map_err(|cause| wrong(&cause))?;
            if table.command.is_empty() {
                return Err(wrong(&format!("tool {name}: the command is empty")));
            }
            let mut spoken = Vec::new();
            for word in &table.languages {
                let known = languages(word)
                    .ok_or_else(|| wrong(&format!("tool {name}: {word} is none of python, typescript, go and rust")))?;
                spoken.extend_from_slice(known);
            }
            if spoken.is_empty() && table.endings.is_empty() {
                return Err(wrong(&format!("tool {name}: it needs languages or endings, or no file is its own")));
            }
            config.tools.push(Tool {
                name,
                command: table.command,
                languages: spoken,
                endings: table.endings,
                time_limit: table.time_limit.map_or(TIME_LIMIT, Duration::from_secs),
                severity: table.severity.map(|word| match word {
                    Word::Low => Severity::Low,
                    Word::Medium => Severity::Medium,
                    Word::High => Severity::High,
                }),
            });
        }
        if config == Self::default() {
            return Err(wrong(&"it holds neither a project nor a tool"));
        }
        Ok(config)
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
    fn a_file_holds_projects_and_tools_and_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("review.toml");
        let open = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Config::open(&path)
        };
        let text = "[project.shop]\npath = \"shop\"\n[tool.ruff]\ncommand = [\"ruff\", \"{files}\"]\n\
            languages = [\"Python\"]\nendings = [\".pyx\"]\ntime-limit = 5\nseverity = \"high\"\n";
        let config = open(text).unwrap();
        assert_eq!(config.projects, [Project { name: "shop".to_owned(), path: folder.path().join("shop") }]);
        let tool = &config.tools[0];
        assert_eq!((tool.time_limit.as_secs(), tool.severity), (5, Some(Severity::High)));
        for (path, own) in
            [("a/b.py", true), ("b.pyx", true), ("b.go", false), ("conftest.py", false), (".x.py", false)]
        {
            assert_eq!(tool.reads(path), own, "{path}");
        }
        let refused = |text: &str, words: &str| {
            let mistake = open(text).unwrap_err().0;
            assert!(mistake.contains("review.toml") && mistake.contains(words), "{mistake}");
        };
        refused("", "neither a project nor a tool");
        refused("[project.a]\npath = 1\n", "line 2");
        refused("[tool.a]\ncommand = []\nlanguages = [\"go\"]\n", "empty");
        refused("[tool.a]\ncommand = [\"a\"]\n", "languages or endings");
        refused("[tool.a]\ncommand = [\"a\"]\nlanguages = [\"perl\"]\n", "perl is none of");
        refused("[tool.\"a b\"]\ncommand = [\"a\"]\nlanguages = [\"go\"]\n", "no name for a tool");
    }
}
