//! Which crate may know which: the table of ARCHITECTURE.md, held against `cargo metadata`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Each crate with the workspace crates that it may use.
const ROOMS: [(&str, &[&str]); 14] = [
    ("protocol", &[]),
    ("signature", &["protocol"]),
    ("grpc", &["protocol"]),
    ("server", &["protocol", "signature", "grpc"]),
    ("client", &["protocol", "signature", "grpc"]),
    ("script", &["protocol", "server"]),
    ("capture", &[]),
    ("planner", &["protocol", "signature", "client", "capture"]),
    ("code-reviewer", &["protocol", "server", "script"]),
    ("test-runner", &["protocol", "server", "script"]),
    ("deployer", &["protocol", "signature", "server", "script"]),
    ("testing", &["protocol", "signature", "grpc", "server", "client", "script", "capture", "planner", "workshop"]),
    (
        "workshop",
        &[
            "protocol",
            "signature",
            "server",
            "client",
            "script",
            "capture",
            "planner",
            "code-reviewer",
            "test-runner",
            "deployer",
        ],
    ),
    ("fuzz", &["protocol", "code-reviewer"]),
];

/// What a crate must not know of the outside.
const DENIED: [(&str, &[&str]); 3] = [
    ("protocol", &["tokio", "axum", "hyper", "http", "reqwest", "rand", "uuid"]),
    ("capture", &["tokio", "axum", "hyper", "reqwest", "protocol"]),
    ("signature", &["tokio", "axum", "hyper", "http", "reqwest"]),
];

fn normal_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();
    let packages = metadata.packages.iter();
    packages
        .map(|package| {
            let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
            (package.name.to_string(), normal.map(|dependency| dependency.name.clone()).collect())
        })
        .collect()
}

#[test]
fn no_crate_uses_a_crate_of_the_workspace_that_it_must_not_know() {
    let dependencies = normal_dependencies();
    let workspace: BTreeSet<&String> = dependencies.keys().collect();
    let allowed: BTreeMap<&str, &[&str]> = ROOMS.into_iter().collect();
    for (name, uses) in &dependencies {
        let allowed = allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not in the table"));
        for used in uses.iter().filter(|used| workspace.contains(used)) {
            assert!(allowed.contains(&used.as_str()), "{name} must not use {used}");
        }
    }
}

#[test]
fn no_crate_uses_an_outside_crate_that_it_must_not_know() {
    let dependencies = normal_dependencies();
    for (name, denied) in DENIED {
        for outside in denied {
            assert!(!dependencies[name].contains(*outside), "{name} must not use {outside}");
        }
    }
}
