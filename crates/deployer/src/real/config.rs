//! What may be deployed where, as it is configured: by flags, or in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use serde::Deserialize;

use super::check::{Check, CheckTable};

/// How many builds stay in an environment's folder when nobody said otherwise.
const KEEP: usize = 3;
/// How long an approval is waited for when nobody said otherwise.
const APPROVAL_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// How many bytes the contents of a build may have when nobody said otherwise.
const UNPACKED_LIMIT: u64 = 4 << 30;

/// Why a configuration is not taken. The text names the file, the line where that is known, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistake(pub String);

/// All that a working deployer is told.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The folder with the archives.
    pub builds: Option<PathBuf>,
    /// Where the audit log is kept.
    pub audit_log: Option<PathBuf>,
    /// Where builds go.
    pub environments: Vec<Environment>,
}

/// Somewhere that a build can be rolled out to, and who may do that and when.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Its name, as messages say it.
    pub name: String,
    /// Its folder. `current` in it leads to the build that is live.
    pub folder: PathBuf,
    /// Where people find it, for the report.
    pub url: Option<String>,
    /// How many builds stay in the folder, the live one included; at least two, so that there is a way back.
    pub keep: usize,
    /// How many operators have to approve: one or two.
    pub approvals: u8,
    /// The operators who may. Empty: all.
    pub approvers: Vec<String>,
    /// The callers who may ask. Empty: all.
    pub askers: Vec<String>,
    /// How long an approval is waited for.
    pub approval_limit: Duration,
    /// What everybody hears who asks for a roll-out to it. None: roll-outs are taken.
    pub refuse: Option<String>,
    /// When nothing is rolled out to it.
    pub quiet: Vec<Quiet>,
    /// How many bytes the contents of a build may have.
    pub unpacked_limit: u64,
    /// What is looked at before and after the switch.
    pub checks: Vec<Check>,
}

impl Environment {
    fn new(name: String, folder: PathBuf) -> Result<Self, String> {
        let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if name.is_empty() || !name.bytes().all(fine) {
            return Err(format!("{name:?} is no name for an environment: small letters, digits, '-' and '_' make one"));
        }
        Ok(Self {
            name,
            folder,
            url: None,
            keep: KEEP,
            approvals: 1,
            approvers: Vec::new(),
            askers: Vec::new(),
            approval_limit: APPROVAL_LIMIT,
            refuse: None,
            quiet: Vec::new(),
            unpacked_limit: UNPACKED_LIMIT,
            checks: Vec::new(),
        })
    }

    /// The words of the quiet hours that it is now, if it is any.
    pub fn is_quiet(&self, now: Timestamp) -> Option<&str> {
        self.quiet.iter().find(|quiet| quiet.holds(now)).map(|quiet| &*quiet.words)
    }
}

impl std::str::FromStr for Environment {
    type Err = Mistake;

    /// Reads `NAME=DIR`.
    fn from_str(text: &str) -> Result<Self, Mistake> {
        let Some((name, folder)) = text.split_once('=').filter(|(_, folder)| !folder.is_empty()) else {
            return Err(Mistake(format!("an environment is NAME=DIR, such as staging=./staging, not {text}")));
        };
        Self::new(name.to_owned(), folder.into()).map_err(Mistake)
    }
}

/// A span of the week in which nothing is rolled out: `22:00-06:00`, `Sat Sun`, or `Fri 15:00-24:00`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quiet {
    /// As it was written, with the time zone.
    words: String,
    /// The days on which it begins; empty for all.
    days: Vec<Weekday>,
    /// Minutes after midnight. An end before the start is on the next day.
    from: u16,
    to: u16,
    zone: TimeZone,
}

impl Quiet {
    fn read(text: &str, zone: &str, found: &TimeZone) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} are no quiet hours; such are: \"22:00-06:00\", \"Sat Sun\", \"Fri 15:00-24:00\"");
        let (mut days, mut span) = (Vec::new(), None);
        for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
            match (day(word), word.split_once('-')) {
                (Some(day), _) if span.is_none() => days.push(day),
                (None, Some((from, to))) if span.is_none() => {
                    let (Some(from), Some(to)) = (minutes(from), minutes(to)) else { return Err(wrong()) };
                    span = Some((from, to));
                }
                _ => return Err(wrong()),
            }
        }
        if days.is_empty() && span.is_none() {
            return Err(wrong());
        }
        let (from, to) = span.unwrap_or((0, 24 * 60));
        if from == to || from == 24 * 60 {
            return Err(wrong());
        }
        Ok(Self { words: format!("{text} {zone}"), days, from, to, zone: found.clone() })
    }

    fn holds(&self, now: Timestamp) -> bool {
        let now = self.zone.to_datetime(now);
        let on = |date: civil::Date| self.days.is_empty() || self.days.contains(&date.weekday());
        let at = minute_of(now.time());
        if self.from < self.to {
            return on(now.date()) && (self.from..self.to).contains(&at);
        }
        let began_yesterday = at < self.to && now.date().yesterday().is_ok_and(on);
        began_yesterday || (at >= self.from && on(now.date()))
    }
}

fn minute_of(time: Time) -> u16 {
    u16::from(time.hour().unsigned_abs()) * 60 + u16::from(time.minute().unsigned_abs())
}

fn day(word: &str) -> Option<Weekday> {
    let days = [
        ("mon", Weekday::Monday),
        ("tue", Weekday::Tuesday),
        ("wed", Weekday::Wednesday),
        ("thu", Weekday::Thursday),
        ("fri", Weekday::Friday),
        ("sat", Weekday::Saturday),
        ("sun", Weekday::Sunday),
    ];
    days.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, day)| day)
}

/// Reads `HH:MM` as minutes after midnight, `24:00` included.
fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':').filter(|(hours, minutes)| hours.len() == 2 && minutes.len() == 2)?;
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= 24 * 60).then_some(all)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    builds: Option<PathBuf>,
    audit_log: Option<PathBuf>,
    time_zone: Option<String>,
    #[serde(default)]
    environment: BTreeMap<String, EnvironmentTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EnvironmentTable {
    folder: PathBuf,
    url: Option<String>,
    keep: Option<usize>,
    approvals: Option<u8>,
    #[serde(default)]
    approvers: Vec<String>,
    #[serde(default)]
    askers: Vec<String>,
    /// Seconds.
    approval_limit: Option<u64>,
    refuse: Option<String>,
    #[serde(default)]
    quiet_hours: Vec<String>,
    /// Bytes.
    unpacked_limit: Option<u64>,
    #[serde(default)]
    check: Vec<CheckTable>,
}

impl Config {
    /// Reads a file. Paths in it start at its folder.
    pub fn open(path: &Path) -> Result<Self, Mistake> {
        let wrong = |cause: &dyn std::fmt::Display| Mistake(format!("{}: {cause}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|cause| wrong(&cause))?;
        let file: File = toml::from_str(&text).map_err(|cause| wrong(&cause.to_string().trim_end()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::of(file, folder).map_err(|words| wrong(&words))
    }

    fn of(file: File, folder: &Path) -> Result<Self, String> {
        let zone = file.time_zone.as_deref().unwrap_or("UTC");
        let found = match zone {
            "UTC" => TimeZone::UTC,
            other => TimeZone::get(other).map_err(|cause| format!("time-zone: {cause}"))?,
        };
        let mut environments = Vec::new();
        for (name, table) in file.environment {
            let here = |words: String| format!("environment {name}: {words}");
            let mut one = Environment::new(name.clone(), folder.join(table.folder)).map_err(here)?;
            one.url = table.url;
            one.keep = table.keep.unwrap_or(one.keep);
            one.approvals = table.approvals.unwrap_or(one.approvals);
            one.approvers = table.approvers;
            one.askers = table.askers;
            one.approval_limit = table.approval_limit.map_or(one.approval_limit, Duration::from_secs);
            one.refuse = table.refuse;
            one.unpacked_limit = table.unpacked_limit.unwrap_or(one.unpacked_limit);
            if one.keep < 2 {
                return Err(here("keep must be 2 or more, so that there is a way back".to_owned()));
            }
            if !(1..=2).contains(&one.approvals) {
                return Err(here("approvals must be 1 or 2".to_owned()));
            }
            if !one.approvers.is_empty() && one.approvers.len() < usize::from(one.approvals) {
                return Err(here("there are fewer approvers than approvals".to_owned()));
            }
            if one.approval_limit.is_zero() {
                return Err(here("approval-limit must be a second or more".to_owned()));
            }
            for text in &table.quiet_hours {
                one.quiet.push(Quiet::read(text, zone, &found).map_err(here)?);
            }
            for table in table.check {
                one.checks.push(table.check().map_err(here)?);
            }
            environments.push(one);
        }
        Ok(Self {
            builds: file.builds.map(|builds| folder.join(builds)),
            audit_log: file.audit_log.map(|log| folder.join(log)),
            environments,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Config, String> {
        let file: File = toml::from_str(text).map_err(|cause| cause.to_string())?;
        Config::of(file, Path::new("/etc/deployer"))
    }

    #[test]
    fn a_file_says_what_may_be_deployed_where() {
        let config = config(
            r#"
            builds = "builds"
            audit-log = "/var/log/deployer.jsonl"
            time-zone = "UTC"
            [environment.staging]
            folder = "staging"
            url = "https://staging.example.com"
            [environment.production]
            folder = "/srv/production"
            approvals = 2
            approvers = ["ada", "grace", "edsger"]
            askers = ["release-train"]
            approval-limit = 900
            quiet-hours = ["Fri 15:00-24:00", "Sat Sun"]
            [[environment.production.check]]
            name = "health"
            http = "http://127.0.0.1:8080/health"
            text = "ok"
            attempts = 5
            [[environment.production.check]]
            name = "smoke"
            command = ["./smoke.sh"]
            when = "before"
            "#,
        )
        .unwrap();
        assert_eq!(config.builds.unwrap(), Path::new("/etc/deployer/builds"));
        assert_eq!(config.audit_log.unwrap(), Path::new("/var/log/deployer.jsonl"));
        let [production, staging] = &config.environments[..] else { panic!("{:?}", config.environments) };
        assert_eq!((production.approvals, production.checks.len(), production.quiet.len()), (2, 2, 2));
        assert_eq!(production.approval_limit, Duration::from_secs(900));
        assert_eq!(staging.folder, Path::new("/etc/deployer/staging"));
        assert_eq!((staging.approvals, staging.keep), (1, KEEP));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_place() {
        let refused = |table: &str, words: &str| {
            let mistake = config(&format!("[environment.staging]\nfolder = \"s\"\n{table}")).unwrap_err();
            assert!(mistake.contains(words), "{mistake}");
        };
        refused("keep = 1", "environment staging: keep must be 2 or more");
        refused("approvals = 3", "environment staging: approvals must be 1 or 2");
        refused("approvals = 0", "environment staging: approvals must be 1 or 2");
        refused("approvals = 2\napprovers = [\"ada\"]", "fewer approvers than approvals");
        refused("approval-limit = 0", "approval-limit");
        refused("quiet-hours = [\"at night\"]", "\"at night\" are no quiet hours");
        refused("quiet-hours = [\"25:00-26:00\"]", "no quiet hours");
        refused("quiet-hours = [\"06:00-06:00\"]", "no quiet hours");
        refused("colour = \"blue\"", "unknown field");
        refused("[[environment.staging.check]]\nname = \"x\"", "check x");
        refused("[[environment.staging.check]]\nname = \"x\"\ntcp = \"a:1\"\nhttp = \"http://a\"", "check x");
        assert!(config("time-zone = \"Atlantis/Capital\"").unwrap_err().contains("time-zone"));
        assert!("staging".parse::<Environment>().unwrap_err().0.contains("NAME=DIR"));
        assert!("../x=y".parse::<Environment>().unwrap_err().0.contains("no name"));
    }

    #[test]
    fn quiet_hours_hold_over_midnight_and_on_their_days() {
        let quiet = |text: &str| Quiet::read(text, "UTC", &TimeZone::UTC).unwrap();
        let holds = |text: &str, time: &str| quiet(text).holds(time.parse().unwrap());
        // 2026-10-09 is a Friday.
        for (text, time, expected) in [
            ("22:00-06:00", "2026-10-09T22:00:00Z", true),
            ("22:00-06:00", "2026-10-09T05:59:59Z", true),
            ("22:00-06:00", "2026-10-09T06:00:00Z", false),
            ("Fri 22:00-06:00", "2026-10-10T05:00:00Z", true),
            ("Fri 22:00-06:00", "2026-10-09T05:00:00Z", false),
            ("Fri 15:00-24:00", "2026-10-09T14:59:59Z", false),
            ("Fri 15:00-24:00", "2026-10-09T23:59:59Z", true),
            ("Fri 15:00-24:00", "2026-10-10T00:00:00Z", false),
            ("Sat Sun", "2026-10-10T12:00:00Z", true),
            ("Sat Sun", "2026-10-12T00:00:00Z", false),
        ] {
            assert_eq!(holds(text, time), expected, "{text} at {time}");
        }
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let summer = Quiet::read("22:00-24:00", "+02", &zone).unwrap();
        assert!(summer.holds("2026-10-09T20:30:00Z".parse().unwrap()));
        assert_eq!(summer.words, "22:00-24:00 +02");
    }
}
