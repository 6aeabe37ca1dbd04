//! `docs/tour.md` against the tree.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::Path;

/// A name that stands in code spans behind a file.
#[derive(Debug)]
struct Stop {
    file: String,
    name: String,
}

/// The names of a row, each with the file that stands before it.
fn stops(row: &str) -> Vec<Stop> {
    let (mut file, mut stops) = (None, Vec::new());
    for code in row.split('`').skip(1).step_by(2) {
        if code.ends_with(".rs") {
            file = Some(code.to_owned());
        } else {
            let file = file.clone().unwrap_or_else(|| panic!("{code} stands behind no file: {row}"));
            stops.push(Stop { file, name: code.to_owned() });
        }
    }
    stops
}

/// Whether a text defines a name: a function, a constant, or a type.
fn defines(text: &str, name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap();
    let starts_small = last.starts_with(|first: char| first.is_ascii_lowercase());
    let keywords: &[&str] = if starts_small { &["fn"] } else { &["struct", "enum", "trait", "type", "const"] };
    let defined = keywords.iter().any(|keyword| {
        text.match_indices(&format!("{keyword} {last}")).any(|(at, found)| {
            let next = text[at + found.len()..].chars().next();
            next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
        })
    });
    let owner = name.split_once("::").map(|(owner, _)| owner);
    defined && owner.is_none_or(|owner| text.contains(owner))
}

#[test]
fn every_stop_of_the_tour_is_where_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/tour.md")).unwrap();
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| section")).collect();
    assert!(rows.len() > 50, "only {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let section = row.trim_start_matches("| ");
        assert!(section.starts_with(|first: char| first.is_ascii_digit()), "no section: {row}");
        let stops = stops(row);
        assert!(!stops.is_empty(), "nothing is named: {row}");
        for stop in stops {
            match std::fs::read_to_string(root.join(&stop.file)) {
                Ok(text) if defines(&text, &stop.name) => {}
                Ok(_) => wrong.push(format!("{} does not define {}", stop.file, stop.name)),
                Err(cause) => wrong.push(format!("{}: {cause}", stop.file)),
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_not_there_is_noticed() {
    let text = "impl Door {\n    pub fn admit(&self) {}\n}\nconst LIMIT: u8 = 1;\npub(crate) struct Door<'a>;";
    for there in ["Door::admit", "LIMIT", "Door"] {
        assert!(defines(text, there), "{there}");
    }
    for missing in ["admi", "Window::admit", "LIM", "Doo", "Door::leave"] {
        assert!(!defines(text, missing), "{missing}");
    }
}
