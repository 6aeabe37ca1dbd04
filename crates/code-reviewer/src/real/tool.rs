//! Linters that write SARIF, run over the changed files in a working tree of the base.

use std::path::Path;
use std::process::Stdio;

use percent_encoding::percent_decode_str;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::config::Tool;
use super::finding::{Finding, Severity};

/// The most of a report that is read, in bytes.
const MOST: u64 = 64 << 20;
/// These reach a tool from the agent's own environment; everything else stays out.
const PASSED_ON: [&str; 10] =
    ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOROOT", "VIRTUAL_ENV"];

/// Runs a tool over these files of a working tree. The error is for the client: why nothing came of it.
pub async fn run(tool: &Tool, tree: &Path, files: &[&str], report: &Path) -> Result<Vec<Finding>, String> {
    let mut words = Vec::new();
    let mut writes_report = false;
    for word in &tool.command {
        if word == "{files}" {
            // Nothing that a client names is an option.
            words.extend(
                files.iter().map(|file| if file.starts_with('-') { format!("./{file}") } else { (*file).to_owned() }),
            );
        } else {
            writes_report |= word.contains("{report}");
            words.push(word.replace("{report}", &report.display().to_string()));
        }
    }
    let name = &tool.name;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(tree).env_clear().kill_on_drop(true).process_group(0);
    command.envs(PASSED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("{name} was not asked: {} is not installed here.", tool.command[0]));
        }
        Err(cause) => {
            tracing::error!(%cause, tool = name, "a tool could not be started");
            return Err(format!("{name} was not asked: it could not be started."));
        }
    };
    let _group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let mut written = Vec::new();
    let output = child.stdout.take();
    let running = async {
        if let Some(output) = output {
            output.take(MOST).read_to_end(&mut written).await?;
        }
        child.wait().await
    };
    let status = match tokio::time::timeout(tool.time_limit, running).await {
        Ok(Ok(status)) => status,
        Ok(Err(cause)) => {
            tracing::error!(%cause, tool = name, "a tool could not be waited for");
            return Err(format!("{name} was asked, and could not be waited for."));
        }
        Err(_) => {
            return Err(format!("{name} took longer than {} s and was stopped.", tool.time_limit.as_secs()));
        }
    };
    if writes_report {
        written = std::fs::read(report).unwrap_or_default();
    }
    // Linters end with a code of their own when they find something, so the report alone tells.
    read(tool, tree, &written).map_err(|cause| {
        tracing::warn!(%cause, %status, tool = name, "a tool left no report that can be read");
        format!("{name} ended with {status} and without a report that can be read.")
    })
}

/// A tool with all that it started. Dropped, they are killed.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[derive(Deserialize)]
struct Log {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    results: Option<Vec<Report>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    rule_id: Option<String>,
    rule: Option<RuleName>,
    kind: Option<String>,
    level: Option<String>,
    message: Words,
    #[serde(default)]
    locations: Vec<Location>,
    #[serde(default)]
    suppressions: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct RuleName {
    id: Option<String>,
}

#[derive(Deserialize)]
struct Words {
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: Option<Place>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    artifact_location: Option<Artifact>,
    region: Option<Region>,
}

#[derive(Deserialize)]
struct Artifact {
    uri: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: Option<u32>,
}

/// Reads a report: what has a place in the tree.
fn read(tool: &Tool, tree: &Path, report: &[u8]) -> Result<Vec<Finding>, serde_json::Error> {
    let log: Log = serde_json::from_slice(report)?;
    let results = log.runs.into_iter().flat_map(|run| run.results.unwrap_or_default());
    Ok(results.filter_map(|result| finding(tool, tree, result)).collect())
}

fn finding(tool: &Tool, tree: &Path, result: Report) -> Option<Finding> {
    let is_none = result.kind.is_some_and(|kind| kind != "fail") || result.level.as_deref() == Some("none");
    if is_none || !result.suppressions.is_empty() {
        return None;
    }
    let id = result.rule_id.or(result.rule.and_then(|rule| rule.id)).unwrap_or_else(|| "unnamed".to_owned());
    let place = result.locations.into_iter().next()?.physical_location?;
    let line = place.region?.start_line?;
    let uri = place.artifact_location?.uri?;
    let path = percent_decode_str(&uri).decode_utf8_lossy();
    let path = path.strip_prefix("file://").unwrap_or(&path);
    let file = match Path::new(path).strip_prefix(tree) {
        Ok(inside) => inside.to_str()?.to_owned(),
        Err(_) => path.trim_start_matches("./").to_owned(),
    };
    let severity = tool.severity.unwrap_or(match result.level.as_deref() {
        Some("error") => Severity::Medium,
        _ => Severity::Low,
    });
    let text = result.message.text?;
    Some(Finding { file, line, severity, finding: text, rule: format!("{}/{id}", tool.name).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_gives_what_has_a_place_and_is_not_suppressed() {
        let tool = Tool {
            name: "lint".to_owned(),
            command: vec!["lint".to_owned()],
            languages: Vec::new(),
            endings: vec![".py".to_owned()],
            time_limit: std::time::Duration::from_secs(1),
            severity: None,
        };
        let place = |uri: &str| {
            format!(r#"[{{"physicalLocation":{{"artifactLocation":{{"uri":"{uri}"}},"region":{{"startLine":3}}}}}}]"#)
        };
        let result =
            |more: &str, uri: &str| format!(r#"{{"message":{{"text":"Bad."}},"locations":{}{more}}}"#, place(uri));
        let report = format!(
            r#"{{"runs":[{{"results":[{},{},{},{},{{"message":{{"text":"Nowhere."}}}}]}},{{}}]}}"#,
            result(r#","ruleId":"F1","level":"error""#, "file:///tree/a%20b.py"),
            result(r#","rule":{"id":"F2"}"#, "./b.py"),
            result(r#","ruleId":"F3","suppressions":[{}]"#, "b.py"),
            result(r#","ruleId":"F4","kind":"pass""#, "b.py"),
        );
        let found = read(&tool, Path::new("/tree"), report.as_bytes()).unwrap();
        let shown: Vec<_> = found.iter().map(|one| (one.file.as_str(), one.line, one.severity, &*one.rule)).collect();
        assert_eq!(shown, [("a b.py", 3, Severity::Medium, "lint/F1"), ("b.py", 3, Severity::Low, "lint/F2")]);
        assert!(read(&tool, Path::new("/tree"), b"usage: lint").is_err());
    }
}
