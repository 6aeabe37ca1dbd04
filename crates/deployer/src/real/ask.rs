//! What a message asks for. Its words choose among what is configured; none of them becomes a path or reaches a shell.

use protocol::{Message, Role, Task};

/// What is to be done where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Back to an earlier build.
    pub back: bool,
    /// The environment, as it is configured.
    pub environment: String,
    /// The build that was named.
    pub build: Option<String>,
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    /// It has to be asked.
    Ask(String),
    /// It is not there.
    Unknown(String),
    /// It is outside what this agent does.
    Outside(String),
}

/// What somebody hears who wants to deploy to a production that is not configured.
pub const PRODUCTION: &str = "Production deploys are outside this agent's policy. Use the release train.";

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
    let around = |character: char| ",;:!?\"'`()[]{}<>".contains(character);
    text.split_whitespace()
        .map(|word| word.trim_matches(around).trim_end_matches('.').trim_end_matches(around))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Names on a list, as a sentence holds them: the first ten, and how many more there are.
pub fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(10);
    let mut shown = names.take(10).collect::<Vec<_>>().join(", ");
    if more > 0 {
        shown.push_str(&format!(" and {more} more"));
    }
    if shown.is_empty() { "none".to_owned() } else { shown }
}

/// Reads what was said, among these environments and builds. The newest word counts: an answer comes after the
/// question.
pub fn read(environments: &[&str], builds: &[&str], text: &str) -> Result<Wanted, Unclear> {
    let words = words(text);
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let is = |at: usize, any: &[&str]| lower.get(at).is_some_and(|word| any.contains(&word.as_str()));
    let rolls_back = |at: usize| {
        is(at, &["rollback", "roll-back"])
            || (is(at, &["roll", "return", "go", "revert"])
                && (at + 1..=at + 3).any(|next| is(next, &["back"])) | is(at, &["return", "revert"]))
    };
    let back = (0..words.len()).any(rolls_back);
    let environment = find_environment(environments, &words, &lower)?;
    let build = find_build(environments, builds, &words, &lower, back)?;
    Ok(Wanted { back, environment, build })
}

fn find_environment(environments: &[&str], words: &[&str], lower: &[String]) -> Result<String, Unclear> {
    if let Some(found) = lower.iter().rev().find(|word| environments.contains(&word.as_str())) {
        return Ok(found.clone());
    }
    if lower.iter().any(|word| matches!(word.as_str(), "production" | "prod")) {
        return Err(Unclear::Outside(PRODUCTION.to_owned()));
    }
    let all = || listed(environments.iter().copied());
    // "to NAME" and "environment NAME" name one that is not there; "to build x" and "to the previous one" name none.
    let no_name = [
        "the",
        "a",
        "an",
        "build",
        "previous",
        "last",
        "all",
        "every",
        "me",
        "us",
        "it",
        "its",
        "this",
        "that",
        "my",
        "our",
        "deploy",
        "roll",
        "return",
        "earlier",
        "version",
        "environment",
        "before",
    ];
    let after = (1..words.len()).rev().find(|&at| {
        matches!(lower[at - 1].as_str(), "to" | "on" | "onto" | "environment" | "in" | "into")
            && !no_name.contains(&lower[at].as_str())
            && !words[at].bytes().any(|byte| byte.is_ascii_digit())
    });
    if let Some(at) = after {
        let name: String = words[at].chars().take(80).collect();
        return Err(Unclear::Unknown(format!("Environment {name} is not configured here. Configured: {}.", all())));
    }
    match environments {
        [only] => Ok((*only).to_owned()),
        _ => Err(Unclear::Ask(format!("Which environment: {}?", all()))),
    }
}

fn find_build(
    environments: &[&str],
    builds: &[&str],
    words: &[&str],
    lower: &[String],
    back: bool,
) -> Result<Option<String>, Unclear> {
    if let Some(found) = words.iter().rev().find(|word| builds.contains(word)) {
        return Ok(Some((*found).to_owned()));
    }
    // "build NAME" names one; "the build", "build to staging" do not.
    let no_name =
        ["to", "on", "onto", "of", "for", "in", "and", "before", "that", "which", "please", "now", "again", "is"];
    let named = (1..words.len()).rev().find(|&at| {
        matches!(lower[at - 1].as_str(), "build" | "version" | "release")
            && !no_name.contains(&lower[at].as_str())
            && !environments.contains(&lower[at].as_str())
    });
    // A rollback may name a build whose archive is gone: its folder may still be there.
    if let Some(at) = named {
        let name: String = words[at].chars().take(80).collect();
        if back {
            return Ok(Some(name));
        }
        let there = listed(builds.iter().rev().copied().collect::<Vec<_>>().into_iter());
        return Err(Unclear::Unknown(format!("Build {name} is not there. There are: {there}.")));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVIRONMENTS: [&str; 2] = ["demo", "staging"];
    const BUILDS: [&str; 2] = ["2026.10.06-1", "2026.10.07-1"];

    #[test]
    fn words_choose_environment_and_build() {
        let is = |text: &str, back: bool, environment: &str, build: Option<&str>| {
            let wanted = read(&ENVIRONMENTS, &BUILDS, text).unwrap();
            let expected = Wanted { back, environment: environment.to_owned(), build: build.map(str::to_owned) };
            assert_eq!(wanted, expected, "{text}");
        };
        is("Deploy build 2026.10.06-1 to staging", false, "staging", Some("2026.10.06-1"));
        is("Please deploy 2026.10.07-1 to the demo environment.", false, "demo", Some("2026.10.07-1"));
        is("deploy to Staging.", false, "staging", None);
        is("Deploy the build to staging \n 2026.10.06-1", false, "staging", Some("2026.10.06-1"));
        is("Roll staging back", true, "staging", None);
        is("Roll back staging to build 2026.10.01-4", true, "staging", Some("2026.10.01-4"));
        is("rollback demo", true, "demo", None);
        is("Return staging to the previous build", true, "staging", None);
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        let unclear = |text: &str| read(&ENVIRONMENTS, &BUILDS, text).unwrap_err();
        let unknown = |text: &str, words: &str| assert_eq!(unclear(text), Unclear::Unknown(words.to_owned()));
        unknown("Deploy build 2026.10.06-1 to qa", "Environment qa is not configured here. Configured: demo, staging.");
        unknown("Deploy build 7 to staging", "Build 7 is not there. There are: 2026.10.07-1, 2026.10.06-1.");
        unknown(
            "Deploy build ../../etc to staging",
            "Build ../../etc is not there. There are: 2026.10.07-1, 2026.10.06-1.",
        );
        assert_eq!(unclear("Deploy build 2026.10.06-1"), Unclear::Ask("Which environment: demo, staging?".to_owned()));
        assert_eq!(unclear("Deploy build 2026.10.06-1 to production"), Unclear::Outside(PRODUCTION.to_owned()));
        assert_eq!(read(&ENVIRONMENTS[1..], &[], "Deploy").unwrap().environment, "staging");
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (1..=12).map(|number| number.to_string()).collect();
        assert_eq!(listed(names.iter().map(String::as_str)), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more");
        assert_eq!(listed([].into_iter()), "none");
    }
}
