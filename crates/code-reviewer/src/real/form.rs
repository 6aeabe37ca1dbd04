//! A review in the forms that clients take.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::diff::Note;
use super::finding::{Finding, Severity};
use super::rules;

/// The media type of SARIF.
pub const SARIF: &str = "application/sarif+json";
/// The media type of Markdown.
pub const MARKDOWN: &str = "text/markdown";

/// The content of `review.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Review {
    /// The branch that the diff was compared with, as the client named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// What there is to know beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

impl Review {
    /// How many findings there are: `2 findings`.
    pub fn count(&self) -> String {
        match self.findings.len() {
            0 => "no findings".to_owned(),
            1 => "1 finding".to_owned(),
            number => format!("{number} findings"),
        }
    }

    /// The review in one line, and each note in one more.
    pub fn summary(&self) -> String {
        let mut text = self.headline();
        for note in &self.notes {
            text.push('\n');
            text.push_str(&note.to_string());
        }
        text
    }

    fn headline(&self) -> String {
        match self.findings.first() {
            Some(first) => format!("{} in {}", self.count(), first.file),
            None => self.count(),
        }
    }

    /// The review as plain text: a line for each finding, as compilers write them.
    pub fn text(&self) -> String {
        let mut lines = vec![self.headline()];
        for one in &self.findings {
            lines.push(format!("{}:{}: {}: {} [{}]", one.file, one.line, one.severity.word(), one.finding, one.rule));
        }
        lines.extend(self.notes.iter().map(Note::to_string));
        lines.join("\n") + "\n"
    }

    /// The review as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("**{}**\n", marked(&self.headline()));
        if !self.findings.is_empty() {
            text.push('\n');
        }
        for one in &self.findings {
            let place = code(&format!("{}:{}", one.file, one.line));
            let (severity, finding, rule) = (one.severity.word(), marked(&one.finding), code(&one.rule));
            text.push_str(&format!("- **{severity}** {place} {finding} ({rule})\n"));
        }
        if !self.notes.is_empty() {
            text.push_str("\nNotes:\n\n");
        }
        for note in &self.notes {
            text.push_str(&format!("- {}\n", marked(&note.to_string())));
        }
        text
    }

    /// The review as SARIF 2.1.0.
    pub fn sarif(&self) -> Value {
        let mut ids: Vec<&str> = rules::all().iter().map(|rule| rule.id).collect();
        for one in &self.findings {
            if !ids.contains(&&*one.rule) {
                ids.push(&one.rule);
            }
        }
        let results: Vec<Value> = self
            .findings
            .iter()
            .map(|one| {
                json!({
                    "ruleId": one.rule,
                    "ruleIndex": ids.iter().position(|id| *id == one.rule),
                    "level": level(one.severity),
                    "message": {"text": one.finding},
                    "locations": [{"physicalLocation": {
                        "artifactLocation": {"uri": uri(&one.file)},
                        "region": {"startLine": one.line.max(1)},
                    }}],
                })
            })
            .collect();
        let notifications: Vec<Value> = self
            .notes
            .iter()
            .map(|note| {
                let mut notification = Map::new();
                notification.insert("level".to_owned(), json!("warning"));
                notification.insert("message".to_owned(), json!({"text": note.to_string()}));
                if let Some(file) = &note.file {
                    let location = json!({"physicalLocation": {"artifactLocation": {"uri": uri(file)}}});
                    notification.insert("locations".to_owned(), json!([location]));
                }
                Value::Object(notification)
            })
            .collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {
                    "name": crate::NAME,
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": ids.iter().map(|id| descriptor(id)).collect::<Vec<_>>(),
                }},
                "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": notifications}],
                "results": results,
            }],
        })
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    }
}

/// A rule as SARIF describes it. Of another tool's, only the id is known.
fn descriptor(id: &str) -> Value {
    match rules::all().iter().find(|rule| rule.id == id) {
        Some(rule) => json!({
            "id": id,
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.why},
            "defaultConfiguration": {"level": level(rule.severity)},
        }),
        None => json!({"id": id}),
    }
}

/// A path as a relative URI.
fn uri(path: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(path, KEPT).to_string()
}

/// Text that means only itself in Markdown.
fn marked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\`*_[]<>#|".contains(character) {
            shown.push('\\');
        }
        shown.push(if character == '\n' { ' ' } else { character });
    }
    shown
}

/// Text as code, whatever it holds.
fn code(text: &str) -> String {
    let text = text.replace('\n', " ");
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{text}`") } else { format!("{fence} {text} {fence}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review() -> Review {
        let finding = |line, severity, finding: &str, rule: &'static str| Finding {
            file: "a b/`x`.py".to_owned(),
            line,
            severity,
            finding: finding.to_owned(),
            rule: rule.into(),
        };
        Review {
            base: Some("main".to_owned()),
            findings: vec![
                finding(42, Severity::High, "Cents are *lost*.", "ruff/X1"),
                finding(57, Severity::Low, "No test.", "ruff/X2"),
            ],
            notes: vec![Note::of("c.py", Some(2), "Its header cannot be read.")],
        }
    }

    #[test]
    fn json_has_the_members_of_the_captures_and_the_rule() {
        let json = serde_json::to_string(&review()).unwrap();
        let expected = concat!(
            r#"{"base":"main","findings":[{"file":"a b/`x`.py","line":42,"severity":"high","finding":"Cents are *lost*.","#,
            r#""rule":"ruff/X1"},{"file":"a b/`x`.py","line":57,"severity":"low","finding":"No test.","rule":"ruff/X2"}],"#,
            r#""notes":[{"file":"c.py","hunk":2,"note":"Its header cannot be read."}]}"#,
        );
        assert_eq!(json, expected);
        assert_eq!(serde_json::to_string(&Review::default()).unwrap(), r#"{"findings":[]}"#);
    }

    #[test]
    fn words_and_markdown_mean_what_they_say() {
        assert_eq!(review().summary(), "2 findings in a b/`x`.py\nc.py, hunk 2: Its header cannot be read.");
        assert_eq!(Review::default().summary(), "no findings");
        let text = "2 findings in a b/`x`.py\na b/`x`.py:42: high: Cents are *lost*. [ruff/X1]\n\
            a b/`x`.py:57: low: No test. [ruff/X2]\nc.py, hunk 2: Its header cannot be read.\n";
        assert_eq!(review().text(), text);
        let markdown = "**2 findings in a b/\\`x\\`.py**\n\n- **high** `` a b/`x`.py:42 `` Cents are \\*lost\\*. (`ruff/X1`)\n\
            - **low** `` a b/`x`.py:57 `` No test. (`ruff/X2`)\n\nNotes:\n\n- c.py, hunk 2: Its header cannot be read.\n";
        assert_eq!(review().markdown(), markdown);
    }

    #[test]
    fn sarif_points_at_rules_and_places() {
        let sarif = review().sarif();
        let run = &sarif["runs"][0];
        let place = &run["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b/%60x%60.py");
        assert_eq!(place["region"]["startLine"], 42);
        let index = usize::try_from(run["results"][1]["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "ruff/X2");
        let notification = &run["invocations"][0]["toolExecutionNotifications"][0];
        assert_eq!(notification["message"]["text"], "c.py, hunk 2: Its header cannot be read.");
    }
}
