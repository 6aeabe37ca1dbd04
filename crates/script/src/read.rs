//! From TOML to agents. Every way in which a file can be refused stands here and in the rooms below: what a rule
//! looks at, what it says, whether that can be said in this order, and who the agent is.

mod about;
mod flow;
mod step;
mod when;

use std::collections::BTreeMap;

use toml::de::DeTable;

use crate::mistake::Mistake;
use crate::rule::{Rule, When};
use crate::step::{Step, Verb};
use crate::story::Entry;
use crate::table::{Source, Table, Value};

/// The keys of a rule, in the order in which the documentation explains them.
const RULE: [&str; 11] = [
    "on",
    "message_id_prefix",
    "contains",
    "lacks",
    "ends_with",
    "has_media_type",
    "lacks_media_type",
    "part",
    "first_message_part",
    "otherwise",
    "say",
];

/// Reads every agent of a file.
pub(crate) fn agents(file: &str, text: &str) -> Result<BTreeMap<String, Entry>, Mistake> {
    let source = Source { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        let line = source.line(error.span().map_or(0, |span| span.start));
        source.mistake(line, format!("this is no TOML: {}", error.message()))
    })?;
    let agents = Table::whole(source, &root).members();
    if agents.is_empty() {
        return Err(source.mistake(1, "no agent; expected rules such as [[test-runner.rule]]"));
    }
    agents.into_iter().map(|(_, agent)| Ok((agent.name.to_owned(), entry(agent)?))).collect()
}

fn entry(agent: Value<'_>) -> Result<Entry, Mistake> {
    let name = agent.name;
    let table = agent.table(&format!("an agent with its rules, such as [[{name}.rule]]"))?;
    let known: Vec<&str> = about::KEYS.into_iter().chain(["configuration", "rule"]).collect();
    // A part of a story has rules and nothing else, so that is what a wrong key there is held against.
    let tells_about_itself =
        table.members().iter().any(|(_, member)| member.name != "rule" && known.contains(&member.name));
    table.only(if tells_about_itself { &known } else { &["rule"] })?;
    let (about, configurations) = if tells_about_itself {
        let (about, configurations) = about::about(table, name)?;
        (Some(about), configurations)
    } else {
        Default::default()
    };
    let expected = || agent.mistake(format!("{name} has no rules; expected [[{name}.rule]]"));
    let rules = table.get("rule").ok_or_else(expected)?.list(&format!("rules, each under [[{name}.rule]]"))?;
    Ok(Entry { about, configurations, rules: self::rules(agent.source, rules)?.into() })
}

/// A rule whose steps still know their lines.
struct Draft {
    line: usize,
    when: When,
    said: Vec<Said>,
}

struct Said {
    step: Step,
    line: usize,
}

impl Draft {
    fn rule(self) -> Rule {
        Rule { line: self.line, when: self.when, steps: self.said.into_iter().map(|said| said.step).collect() }
    }

    /// Whether the last step leaves the task open.
    fn waits(&self) -> bool {
        matches!(self.said.last(), Some(Said { step: Step::Words(verb, _), .. }) if verb.waits())
    }
}

/// The rules in the order in which they are tried: the longest prefix of a message id first, else as in the file.
fn rules(source: Source<'_>, rules: Vec<Value<'_>>) -> Result<Vec<Rule>, Mistake> {
    let mut drafts: Vec<Draft> = rules.into_iter().map(draft).collect::<Result<_, _>>()?;
    let carried = flow::carried(&drafts);
    for draft in &drafts {
        flow::check(source, draft, carried.clone())?;
    }
    drafts.sort_by_key(|draft| std::cmp::Reverse(draft.when.prefix_length()));
    for (at, draft) in drafts.iter().enumerate() {
        if let Some(first) = drafts[..at].iter().find(|first| first.when.covers(&draft.when)) {
            let words = match &draft.when.message_id_prefix {
                Some(prefix) if first.when == draft.when => {
                    format!("the message_id_prefix `{prefix}` is already that of the rule in line {}", first.line)
                }
                _ => format!("this rule can never match: the one in line {} takes all of it", first.line),
            };
            return Err(source.mistake(draft.line, words));
        }
    }
    Ok(drafts.into_iter().map(Draft::rule).collect())
}

fn draft(value: Value<'_>) -> Result<Draft, Mistake> {
    let table = value.table("a rule, such as [[agent.rule]]")?;
    table.only(&RULE)?;
    let say = table.get("say").ok_or_else(|| value.mistake("this rule says nothing; expected `say = [...]`"))?;
    let mut said = Vec::new();
    for entry in say.list("a list of steps")? {
        said.extend(step::steps(entry)?.into_iter().map(|step| Said { step, line: entry.line() }));
    }
    let when = when::when(table, said.iter().any(|said| matches!(said.step, Step::Words(Verb::Reply, _))))?;
    Ok(Draft { line: value.line(), when, said })
}
