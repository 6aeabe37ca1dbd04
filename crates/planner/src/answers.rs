//! What an agent asks in the middle of its work, and what the planner answers: out of its plan, and out of nothing else.

use std::collections::BTreeMap;

use protocol::{Content, Json, Part, Task};
use serde_json::{Map, Value};

use crate::Planner;
use crate::deliver::Work;

/// An answer that a plan knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub asked: Asked,
    pub text: String,
}

/// Which question it is the answer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// One whose text has this pattern in it: words, whatever their case, and `*` for anything between them.
    Words(String),
    /// One whose data has this member.
    Member(String),
}

/// Whether a text has the pattern in it.
fn has(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.to_lowercase(), pattern.to_lowercase());
    let mut rest = text.as_str();
    pattern.split('*').map(str::trim).all(|words| match rest.split_once(words) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

impl Planner {
    /// The question of a task in words, the answer in words, and the answer as it is sent. All that is asked for by data is
    /// answered by data, in one part; else the first pattern that fits decides.
    pub(crate) fn answer(&self, work: Work<'_>, task: &Task) -> (String, String, Part) {
        let parts = || task.status.message.iter().flat_map(|message| message.parts.iter());
        let text = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
        let data = parts().filter_map(|part| match &part.content {
            Content::Data(json) => Some(json),
            _ => None,
        });
        let data: Vec<&Json> = data.collect();
        let members: Map<String, Value> = data.iter().filter_map(|json| json.read().ok()).flat_map(object).collect();
        let question =
            if text.is_empty() { data.iter().map(|json| json.text()).collect::<Vec<_>>().join(" ") } else { text };
        let known = work.answers.iter().filter_map(|answer| match &answer.asked {
            Asked::Member(name) => members.contains_key(name).then_some((name, &answer.text)),
            Asked::Words(_) => None,
        });
        let known: BTreeMap<_, _> = known.collect();
        if let Some(json) = (!known.is_empty()).then(|| Json::of(&known).ok()).flatten() {
            return (question, json.text().to_owned(), Part::data(json));
        }
        let fits = |answer: &&Answer| matches!(&answer.asked, Asked::Words(pattern) if has(&question, pattern));
        let answer = match work.answers.iter().find(fits) {
            Some(answer) => answer.text.clone(),
            None if has(&question, "base branch") => self.base.clone(),
            None => "I cannot answer that.".to_owned(),
        };
        (question, answer.clone(), Part::text(answer))
    }
}

fn object(data: Value) -> Map<String, Value> {
    match data {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::has;

    #[test]
    fn a_pattern_is_words_in_their_order_whatever_their_case_and_a_star_is_anything_between() {
        for pattern in ["base branch", "Which * branch", "*", "BRANCH", "which*base*?", "* base *"] {
            assert!(has("Which base branch?", pattern), "{pattern}");
        }
        for pattern in ["branch * base", "bases", "which base which", "branch ! *"] {
            assert!(!has("Which base branch?", pattern), "{pattern}");
        }
    }
}
