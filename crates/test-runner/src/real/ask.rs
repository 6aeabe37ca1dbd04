//! What a message asks for. Its words choose among what is configured; none of them reaches a shell or a path.

use protocol::{Message, Role, Task};

use super::project::{Project, Suite};

/// What is to be tested.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The project.
    pub project: &'a Project,
    /// The suite.
    pub suite: &'a Suite,
    /// The commit, branch or tag as it was said; none when nothing was.
    pub commit: Option<String>,
}

/// Why nothing is tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    /// It has to be asked.
    Ask(String),
    /// It is not there.
    Unknown(String),
}

/// All that the client has said in a task, the newest words last.
pub fn said(task: Option<&Task>, message: &Message) -> String {
    let history = task.into_iter().flat_map(|task| task.history.iter().map(|message| &**message));
    let mut texts: Vec<&str> = Vec::new();
    let mut is_in = false;
    for one in history.filter(|one| one.role == Role::User) {
        is_in |= one.message_id == message.message_id;
        texts.extend(one.parts.iter().filter_map(|part| part.as_text()));
    }
    if !is_in {
        texts.extend(message.parts.iter().filter_map(|part| part.as_text()));
    }
    texts.join(" \n ")
}

/// The words of a text without what stands around them.
fn words(text: &str) -> Vec<&str> {
    let around = |character: char| ".,;:!?\"'`()[]{}<>".contains(character);
    text.split_whitespace().map(|word| word.trim_matches(around)).filter(|word| !word.is_empty()).collect()
}

/// Names on a list, as a sentence holds them.
pub fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Reads what was said.
pub fn read<'a>(projects: &'a [Project], text: &str) -> Result<Wanted<'a>, Unclear> {
    let words = words(text);
    let project = find_project(projects, &words)?;
    let suite = find_suite(project, &words)?;
    Ok(Wanted { project, suite, commit: find_commit(project, &words) })
}

fn find_project<'a>(projects: &'a [Project], words: &[&str]) -> Result<&'a Project, Unclear> {
    let named = |word: &str| projects.iter().find(|project| project.name.eq_ignore_ascii_case(word));
    // The newest word counts: an answer comes after the question.
    if let Some(project) = words.iter().rev().find_map(|word| named(word)) {
        return Ok(project);
    }
    let all = || listed(projects.iter().map(|project| project.name.as_str()));
    // "for NAME", "project NAME" name one that is not there; "for commit x" and "for the …" name none.
    let no_name =
        ["the", "a", "all", "every", "each", "commit", "branch", "tag", "me", "us", "it", "its", "this", "project"];
    let after = words.windows(2).rev().find(|pair| {
        matches!(pair[0].to_ascii_lowercase().as_str(), "for" | "project" | "of" | "in")
            && !no_name.contains(&pair[1].to_ascii_lowercase().as_str())
    });
    if let Some(pair) = after {
        return Err(Unclear::Unknown(format!("Project {} is not configured here. Configured: {}.", pair[1], all())));
    }
    match projects {
        [only] => Ok(only),
        _ => Err(Unclear::Ask(format!("Which project should I test: {}?", all()))),
    }
}

fn find_suite<'a>(project: &'a Project, words: &[&str]) -> Result<&'a Suite, Unclear> {
    let named = |word: &str| project.suites.iter().find(|suite| suite.name.eq_ignore_ascii_case(word));
    let unknown = |word: &str| {
        let suites = listed(project.suites.iter().map(|suite| suite.name.as_str()));
        Unclear::Unknown(format!("{} has no suite {word}. Configured: {suites}.", project.name))
    };
    for pair in words.windows(2).rev() {
        let (first, second) = (pair[0].to_ascii_lowercase(), pair[1].to_ascii_lowercase());
        if first == "suite" {
            if let Some(suite) = named(&second) {
                return Ok(suite);
            }
            if !["of", "for", "at", "on", "in", "and", "to", "now", "please", "again"].contains(&second.as_str()) {
                return Err(unknown(pair[1]));
            }
        }
        if matches!(second.as_str(), "tests" | "suite") {
            if let Some(suite) = named(&first) {
                return Ok(suite);
            }
            // A project with one suite runs it for whatever its tests are called.
            let plain =
                ["the", "all", "its", "your", "my", "our", "full", "whole", "run", "start", "test", "a", "of", "these"];
            if project.suites.len() > 1 && !plain.contains(&first.as_str()) {
                return Err(unknown(pair[0]));
            }
        }
    }
    project.suites.first().ok_or_else(|| unknown("at all"))
}

fn find_commit(project: &Project, words: &[&str]) -> Option<String> {
    let is_id = |word: &str| {
        (7..=40).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_hexdigit())
            && word.bytes().any(|byte| byte.is_ascii_digit())
    };
    let announces = |word: &str| {
        ["commit", "branch", "tag", "revision", "ref", "at", "against"].contains(&word.to_ascii_lowercase().as_str())
    };
    let skip = |word: &str| {
        ["commit", "branch", "tag", "revision", "ref", "the", "once"].contains(&word.to_ascii_lowercase().as_str())
    };
    let announced = words.windows(2).rev().find(|pair| announces(pair[0]) && !skip(pair[1])).map(|pair| pair[1]);
    let found = announced.or_else(|| words.iter().rev().copied().find(|word| is_id(word)));
    found.filter(|word| !word.eq_ignore_ascii_case(&project.name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projects() -> Vec<Project> {
        let mut shop: Project = "shop=x".parse().unwrap();
        let mut unit = shop.suites[0].clone();
        unit.name = "unit".to_owned();
        let mut slow = unit.clone();
        slow.name = "slow".to_owned();
        shop.suites = vec![unit, slow];
        vec!["payments-api=x".parse().unwrap(), shop]
    }

    fn told(text: &str) -> (String, String, Option<String>) {
        let projects = projects();
        let wanted = read(&projects, text).unwrap();
        (wanted.project.name.clone(), wanted.suite.name.clone(), wanted.commit)
    }

    #[test]
    fn words_choose_project_suite_and_commit() {
        let is = |text: &str, project: &str, suite: &str, commit: Option<&str>| {
            assert_eq!(told(text), (project.to_owned(), suite.to_owned(), commit.map(str::to_owned)), "{text}");
        };
        is("Run the unit tests for payments-api at commit 9f3c2e1", "payments-api", "tests", Some("9f3c2e1"));
        is("Run the full suite for payments-api at commit 9f3c2e1.", "payments-api", "tests", Some("9f3c2e1"));
        is("shop, slow tests, branch fix/rounding", "shop", "slow", Some("fix/rounding"));
        is("Run suite slow of shop at v1.2", "shop", "slow", Some("v1.2"));
        is("Test shop", "shop", "unit", None);
        is("Run the tests. \n payments-api", "payments-api", "tests", None);
        is("payments-api a41d7c3", "payments-api", "tests", Some("a41d7c3"));
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        let projects = projects();
        let unclear = |text: &str| read(&projects, text).unwrap_err();
        let Unclear::Unknown(words) = unclear("Run the tests for billing at 9f3c2e1") else { panic!() };
        assert_eq!(words, "Project billing is not configured here. Configured: payments-api, shop.");
        let Unclear::Unknown(words) = unclear("Run the fast tests for shop") else { panic!() };
        assert_eq!(words, "shop has no suite fast. Configured: unit, slow.");
        let Unclear::Ask(words) = unclear("Run the tests at commit 9f3c2e1") else { panic!() };
        assert_eq!(words, "Which project should I test: payments-api, shop?");
        let only = &projects[..1];
        assert_eq!(read(only, "Run the tests").unwrap().project.name, "payments-api");
    }
}
