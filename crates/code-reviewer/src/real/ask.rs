//! What a message asks for. Its words choose among what is configured and what a repository has; none of them reaches
//! a shell.

use protocol::{Content, Message, Part, Role, Task, media};

use super::config::Project;
use super::diff;

/// All that the client has said in a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Its words, the newest last.
    pub words: Vec<String>,
    /// How many of them were there before the newest message.
    pub before: usize,
    /// The newest diff.
    pub diff: Option<Vec<u8>>,
}

/// Reads what the client has said in a task until now, this message included.
pub fn said(task: Option<&Task>, message: &Message) -> Said {
    let mut said = Said::default();
    let history = task.into_iter().flat_map(|task| task.history.iter().map(|message| &**message));
    let earlier = history.filter(|one| one.role == Role::User && one.message_id != message.message_id);
    for one in earlier.chain([message]) {
        said.before = said.words.len();
        said.hear(one);
    }
    said
}

/// Whether a part holds a diff as such.
fn is_diff(part: &Part) -> bool {
    media::is(part.media_type(), media::DIFF)
}

/// Whether a message only asks something about reviews: nothing in it is a diff, and a text of it ends as questions do.
pub fn is_question(message: &Message) -> bool {
    let asks = |part: &Part| part.as_text().is_some_and(|text| text.trim_end().ends_with('?'));
    let brings = |part: &Part| is_diff(part) || part.as_text().is_some_and(|text| diff::is_in(text.as_bytes()));
    message.parts.iter().any(asks) && !message.parts.iter().any(brings)
}

impl Said {
    fn hear(&mut self, message: &Message) {
        let mut found: Option<Vec<u8>> = None;
        let mut add = |bytes: &[u8]| {
            let diff = found.get_or_insert_default();
            if !diff.is_empty() && !diff.ends_with(b"\n") {
                diff.push(b'\n');
            }
            diff.extend_from_slice(bytes);
        };
        for part in &message.parts {
            match &part.content {
                Content::Raw(bytes) if is_diff(part) => add(bytes),
                Content::Text(text) if is_diff(part) => add(text.as_bytes()),
                // A client that has only words may put the diff between them.
                Content::Text(text) if diff::is_in(text.as_bytes()) => {
                    add(text.as_bytes());
                    let begins = |line: &&str| diff::is_in(line.as_bytes()) || line.starts_with("--- ");
                    text.lines().take_while(|line| !begins(line)).for_each(|line| self.words.extend(words(line)));
                }
                Content::Text(text) => self.words.extend(words(text)),
                _ => {}
            }
        }
        if found.is_some() {
            self.diff = found;
        }
    }

    /// The words of the newest message.
    fn newest(&self) -> &[String] {
        &self.words[self.before..]
    }
}

/// The words of a text without what stands around them. A colon stays: it says what a word is for.
fn words(text: &str) -> Vec<String> {
    let around = |character: char| ",;!?\"'`()[]{}<>".contains(character);
    let bare = |word: &str| word.trim_matches(around).trim_end_matches('.').trim_matches(around).to_owned();
    text.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect()
}

/// Names as a sentence holds them: the first ten, and how many more there are.
pub fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(10);
    let mut shown = names.take(10).collect::<Vec<_>>().join(", ");
    if more > 0 {
        shown.push_str(&format!(" and {more} more"));
    }
    if shown.is_empty() { "none".to_owned() } else { shown }
}

/// Which project a diff is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of<'a> {
    /// One that is configured, by its place in the list.
    Project(usize),
    /// None of them, by this name if it has one.
    Other(Option<&'a str>),
    /// It has to be asked.
    Unclear,
}

/// Finds the project. The newest word counts: an answer comes after the question.
pub fn project<'a>(projects: &[Project], said: &'a Said) -> Of<'a> {
    let named = |word: &String| projects.iter().position(|project| project.name.eq_ignore_ascii_case(word));
    if let Some(at) = said.words.iter().rev().find_map(named) {
        return Of::Project(at);
    }
    // "this diff of NAME" and "project NAME" name one that is not there.
    let is = |word: &str, any: &[&str]| any.contains(&word.to_ascii_lowercase().as_str());
    for at in (0..said.words.len().saturating_sub(1)).rev() {
        let (word, next) = (&said.words[at], &said.words[at + 1]);
        let change = ["diff", "change", "changes", "patch"];
        let leads =
            is(word, &["project", "repository"]) || (is(word, &["of"]) && at > 0 && is(&said.words[at - 1], &change));
        if leads && !is(next, &["the", "a", "an", "my", "our", "your", "this", "that", "it", "mine", "base:"]) {
            return Of::Other(Some(next));
        }
    }
    match projects {
        [] => Of::Other(None),
        [_] => Of::Project(0),
        _ if said.before > 0 && said.newest().iter().any(|word| is(word, &["none"])) => Of::Other(None),
        _ => Of::Unclear,
    }
}

/// The base that was named: after `base:`, or the name of a branch that stands where a base is named. None: nothing was.
pub fn base(said: &Said, branches: &[String], project: Option<&str>) -> Option<String> {
    let is_branch = |word: &str| branches.iter().any(|branch| branch == word);
    let newest = said.newest();
    let is_answer = said.before > 0;
    // An answer is the name, or has it among its words.
    if is_answer && after_base(newest).is_none() {
        if let Some(word) = newest.iter().rev().find(|word| is_branch(word)) {
            return Some(word.clone());
        }
        if let [only] = newest
            && !is_base(only)
            && project.is_none_or(|name| !name.eq_ignore_ascii_case(only))
        {
            return Some(only.clone());
        }
    }
    after_base(&said.words).or_else(|| {
        let pairs = said.words.windows(2).rev();
        let leads = |word: &str| matches!(word.to_ascii_lowercase().as_str(), "base" | "branch" | "against");
        pairs.filter(|pair| leads(&pair[0]) && is_branch(&pair[1])).map(|pair| pair[1].clone()).next()
    })
}

/// Whether a word says that a base follows.
fn is_base(word: &str) -> bool {
    word.get(..5).is_some_and(|head| head.eq_ignore_ascii_case("base:"))
}

/// The word after the last `base:`.
pub fn after_base(words: &[String]) -> Option<String> {
    let at = words.iter().rposition(|word| is_base(word))?;
    let rest = &words[at][5..];
    if rest.is_empty() { words.get(at + 1).cloned() } else { Some(rest.to_owned()) }
}

#[cfg(test)]
mod tests {
    use protocol::MessageId;

    use super::*;

    fn message(parts: Vec<Part>) -> Message {
        Message::new(MessageId::new("m").unwrap(), Role::User, parts)
    }

    fn heard(texts: &[&str]) -> Said {
        let mut heard = Said::default();
        for text in texts {
            heard.before = heard.words.len();
            heard.hear(&message(vec![Part::text(*text)]));
        }
        heard
    }

    fn projects(names: &[&str]) -> Vec<Project> {
        names.iter().map(|name| format!("{name}=x").parse().unwrap()).collect()
    }

    #[test]
    fn words_choose_the_project() {
        let two = projects(&["payments-api", "shop"]);
        assert_eq!(project(&two, &heard(&["Review this diff of payments-api."])), Of::Project(0));
        assert_eq!(project(&two, &heard(&["Review this diff of shop, base: main"])), Of::Project(1));
        assert_eq!(project(&two, &heard(&["Review this diff"])), Of::Unclear);
        assert_eq!(project(&two, &heard(&["Review this diff", "shop"])), Of::Project(1));
        assert_eq!(project(&two, &heard(&["Review this diff", "none"])), Of::Other(None));
        let one = &two[..1];
        assert_eq!(project(one, &heard(&["Review this diff of billing."])), Of::Other(Some("billing")));
        assert_eq!(project(one, &heard(&["Review this diff for bugs in detail, of mine"])), Of::Project(0));
        assert_eq!(project(&[], &heard(&["Review this"])), Of::Other(None));
    }

    #[test]
    fn words_choose_the_base() {
        let branches = ["main".to_owned(), "fix/cents".to_owned()];
        let is = |texts: &[&str], expected: Option<&str>| {
            assert_eq!(base(&heard(texts), &branches, Some("shop")).as_deref(), expected, "{texts:?}");
        };
        is(&["Review this, base: main."], Some("main"));
        is(&["Review this. Base:fix/cents"], Some("fix/cents"));
        is(&["Review this against main"], Some("main"));
        is(&["Review this against all odds"], None);
        is(&["Review this, base: other"], Some("other"));
        is(&["Review this", "main"], Some("main"));
        is(&["Review this", "It is the branch fix/cents, please."], Some("fix/cents"));
        is(&["Review this", "nothing"], Some("nothing"));
        is(&["Review this", "I do not know"], None);
        is(&["Review this", "shop"], None);
        is(&["Review this, base: old", "base: main"], Some("main"));
        is(&["Review this", "base:"], None);
    }

    #[test]
    fn a_question_is_one_that_brings_no_diff() {
        let text = |text: &str| Part::text(text);
        assert!(is_question(&message(vec![text("What do you check? ")])));
        assert!(!is_question(&message(vec![text("Review this.")])));
        let diff = Part::raw(&b"--- a\n+++ b\n"[..], "x.diff", media::DIFF);
        assert!(!is_question(&message(vec![text("Is this fine?"), diff])));
        assert!(!is_question(&message(vec![text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b?")])));
    }

    #[test]
    fn a_diff_may_stand_between_words() {
        let said =
            heard(&["Review this diff of shop, base: main\n```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n```"]);
        assert_eq!(project(&projects(&["shop"]), &said), Of::Project(0));
        assert_eq!(diff::read(&said.diff.unwrap()).files.len(), 1);
        assert!(!said.words.iter().any(|word| word == "@@"));
    }
}
