//! Answers to questions, from the table of the rules.

use super::rules::{self, Rule};
use super::source::Language;

/// Answers a question: about a rule that it names, the rules of a language or of a severity that it names, the
/// languages, or what is checked at all.
pub fn answer(question: &str) -> String {
    answered(question, rules::all())
}

fn answered(question: &str, rules: &[Rule]) -> String {
    let words: Vec<&str> = question
        .split(|character: char| !character.is_alphanumeric() && character != '-')
        .filter(|word| !word.is_empty())
        .collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let asks = |any: &[&str]| lower.iter().any(|word| any.contains(&word.as_str()));
    let named: Vec<&Rule> = rules.iter().filter(|rule| asks(&[rule.id])).collect();
    if !named.is_empty() {
        return named.iter().map(|rule| about(rule)).collect::<Vec<_>>().join("\n");
    }
    if asks(&["language", "languages"]) {
        return format!("{} Send the diff as a text/x-diff part and name the base branch.", reviews());
    }
    let spoken: Vec<Language> = LANGUAGES
        .into_iter()
        .filter(|language| asks(words_for(*language)) || words.contains(&language.name()))
        .collect();
    let severities: Vec<_> = rules.iter().map(|rule| rule.severity).filter(|one| asks(&[one.word()])).collect();
    let chosen: Vec<&Rule> = rules
        .iter()
        .filter(|rule| spoken.is_empty() || spoken.iter().any(|language| rule.languages.contains(language)))
        .filter(|rule| severities.is_empty() || severities.contains(&rule.severity))
        .collect();
    if chosen.is_empty() {
        return format!("{} No rule of mine is of that kind.", reviews());
    }
    let lines: Vec<String> =
        chosen.iter().map(|rule| format!("{} ({}): {}", rule.id, rule.severity.word(), rule.title)).collect();
    let rules = if lines.len() == 1 { "rule" } else { "rules" };
    format!(
        "{} I check changed lines by {} {rules}. Ask about one by its id.\n{}",
        reviews(),
        lines.len(),
        lines.join("\n")
    )
}

/// The languages, each once.
const LANGUAGES: [Language; 4] = [Language::Python, Language::TypeScript, Language::Go, Language::Rust];

fn reviews() -> String {
    let names = LANGUAGES.map(Language::name);
    let [first @ .., last] = &names;
    format!("I review unified diffs in {} and {last}.", first.join(", "))
}

/// How people call a language beside its name. "go" is a word of other sentences, so Go counts only as it is written.
fn words_for(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &["python", "python3"],
        Language::TypeScript | Language::Tsx => &["typescript", "javascript", "tsx"],
        Language::Go => &["golang"],
        Language::Rust => &["rust"],
    }
}

fn about(rule: &Rule) -> String {
    let mut languages: Vec<&str> = rule.languages.iter().map(|language| language.name()).collect();
    languages.dedup();
    format!("{} ({}, {}): {} {}", rule.id, rule.severity.word(), languages.join(", "), sentence(rule.title), rule.why)
}

fn sentence(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::Severity;

    const RULES: [Rule; 2] = [
        Rule {
            id: "lost-cents",
            severity: Severity::High,
            title: "Money is cut to whole units",
            why: "Cents are lost.",
            languages: &[Language::Python],
        },
        Rule {
            id: "new-todo",
            severity: Severity::Low,
            title: "A new TODO names no issue",
            why: "Nobody will find it.",
            languages: &[Language::Rust, Language::Go],
        },
    ];

    #[test]
    fn answers_come_from_the_table() {
        let answer = |question: &str| answered(question, &RULES);
        assert_eq!(
            answer("What is lost-cents?"),
            "lost-cents (high, Python): Money is cut to whole units. Cents are lost."
        );
        let languages = "I review unified diffs in Python, TypeScript, Go and Rust. \
            Send the diff as a text/x-diff part and name the base branch.";
        assert_eq!(answer("What languages can you review?"), languages);
        let rust = "I review unified diffs in Python, TypeScript, Go and Rust. I check changed lines by 1 rule. \
            Ask about one by its id.\nnew-todo (low): A new TODO names no issue";
        assert_eq!(answer("What do you check in Rust?"), rust);
        assert!(answer("What do you check?").contains("by 2 rules"));
        assert!(answer("What can go wrong?").contains("by 2 rules"));
        assert!(answer("Which are high?").ends_with("lost-cents (high): Money is cut to whole units"));
        assert!(answer("Which high ones are there in Go?").ends_with("No rule of mine is of that kind."));
    }
}
