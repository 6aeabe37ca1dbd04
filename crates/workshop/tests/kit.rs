//! The kit's 24 captures come out of a run of the set, byte for byte, wherever and however often it runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use workshop::files::Files;
use workshop::record::{Recording, record};
use workshop::set::Set;

/// The SHA-256 sums of the captures.
const SUMS: [(&str, &str); 24] = [
    ("01-agent-cards.http", "bc6ddb97a3e144b9f157319b4758bcfbebbc50b88f99810a64df0f3c2f656a49"),
    ("02-message-reply.http", "34e49fea190da54468413194de3398923e973b42b058d029131d054e90860da2"),
    ("03-blocking-task.http", "aa2ba675b240cd31c8c4a2755c7716d4329adce90be68f3a8caff4dadc301b62"),
    ("04-polling.http", "421d5532dd685a3bc464965893f7b1ec57147f5075da116db85e14fdaa0688f0"),
    ("05-streaming.events.json", "d46fbc6bf51852bc6639eb77c8edc28587ac65bbc081cfffd3120a5310c0c272"),
    ("05-streaming.http", "7503ed1039eca89435c261f43ffd47efefd2313eca04d1cbde7daf33f6b09e0a"),
    ("06-input-required.http", "458d09865cdef478896eca22970c161a9e333dc40921e31d18b5b94925634879"),
    ("07-auth-required.events.json", "21ceeae0ead49c3be06f0033563003651240ee91f0cc579643378c380ed9ed36"),
    ("07-auth-required.http", "dc45d5eea67a8bca654a67881d15940280395198d2669e5741022db9193ecc79"),
    ("08-rejected.http", "6f7de5cc6862269eca9bddbf9c7f66c714141ece452f2afecf924d66fcc2a43c"),
    ("09-failed.http", "0c60500390d990adfdf47714174bc158d710882e9883c3fa3a4e284e70221a10"),
    ("10-cancel.http", "dbcbb521ad96d613eec7602806ff70df683078eca92a51e23af51b91482f27a9"),
    ("11-errors.http", "f3c159fdd219a3681869ff286e9af5a6ade9e4673fa01019153963a924ed9f6c"),
    ("12-list-tasks.http", "5ef44358c525dcdbd544ae98d575d4c8b4104e844f944c3775fd1c03657989ee"),
    ("13-history.http", "24c163d5701a5eeeda4dfe59048b5f53c94119923e0e95d5034532d43203d116"),
    ("14-resubscribe.events.json", "121f5c5e87bc6a7962002b069b28d6452cbc9a93834db500a69d113eb071aae4"),
    ("14-resubscribe.http", "0627d56644c93c75ea8605b712e982a05add6533b224296bfbf9282faaf8537f"),
    ("15-push.http", "e6f78605acf41a9d0297ae18272b4cb9787da865627bb1591e1b89ad026801aa"),
    ("16-rest-binding.http", "211b495849f38e88847639b28a060d6f66f7f628051898df5ceb9b8aa8048e45"),
    ("17-signed-card.txt", "510d5c01cbc4521c861e7d6c90fe6bfac7b08fa6e1a74e646f46daaf0f14ed9a"),
    ("18-extended-card.http", "c3851caa1b880624d863bb762231ffab829297629a6858a902b06f17b1c32b05"),
    ("19-planner.events.json", "cb0ac50f90cdd483a7c1aa67c69dc3e53d02be97749ada54b7f564d66889d19e"),
    ("19-planner.http", "dfb1bbe80f83736143369bb8974b4a51cc4f7461ab6625e031e1d41fd8034622"),
    ("19-planner.log", "a8c1cfae41fb870821e4f25d4e5d1ec3534cd945b1123348a235743a270f59af"),
];

fn sum(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn record_all(files: &Files) -> Recording {
    let set = Set::read(files, "kit").unwrap();
    let all: Vec<usize> = (0..set.scenarios.len()).collect();
    record(&set, &all).await.unwrap()
}

fn assert_is_the_kit(recording: &Recording) {
    let names: Vec<&str> = recording.keys().map(String::as_str).collect();
    assert_eq!(names, SUMS.map(|(name, _)| name));
    for (name, expected) in SUMS {
        assert_eq!(sum(&recording[name]), expected, "{name}");
    }
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// A copy of `scenarios/` without the captures.
fn copy_without_captures() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for folder in ["kit", "stories"] {
        std::fs::create_dir(copy.path().join(folder)).unwrap();
        for entry in std::fs::read_dir(scenarios().join(folder)).unwrap() {
            let entry = entry.unwrap();
            if entry.path().is_file() {
                std::fs::copy(entry.path(), copy.path().join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    copy
}

#[test]
fn the_committed_captures_are_the_kits() {
    let mut committed = Recording::new();
    for entry in std::fs::read_dir(scenarios().join("kit/captures")).unwrap() {
        let entry = entry.unwrap();
        committed.insert(entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap());
    }
    assert_is_the_kit(&committed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_recorded_again_and_again_is_the_same() {
    for _ in 0..5 {
        assert_is_the_kit(&record_all(&Files::Embedded).await);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_set_recorded_with_one_thread_is_the_same() {
    for _ in 0..3 {
        assert_is_the_kit(&record_all(&Files::Embedded).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_recorded_beside_three_others_is_the_same() {
    let runs: Vec<_> = (0..4).map(|_| tokio::spawn(async { record_all(&Files::Embedded).await })).collect();
    for run in runs {
        assert_is_the_kit(&run.await.unwrap());
    }
}

#[tokio::test]
async fn a_set_is_recorded_while_its_ports_are_taken() {
    // Whoever cannot take one of them finds it taken already, which is as good.
    let taken: Vec<_> = (41241..=41250).map(|port| std::net::TcpListener::bind(("127.0.0.1", port))).collect();
    assert_is_the_kit(&record_all(&Files::Embedded).await);
    drop(taken);
}

#[tokio::test]
async fn recording_reads_no_capture() {
    let copy = copy_without_captures();
    assert_is_the_kit(&record_all(&Files::Folder(copy.path().into())).await);
}

#[tokio::test]
async fn one_scenario_is_recorded_as_it_is_within_the_set() {
    let set = Set::read(&Files::Embedded, "kit").unwrap();
    let recording = record(&set, &[set.find("13").unwrap()]).await.unwrap();
    let names: Vec<&str> = recording.keys().map(String::as_str).collect();
    assert_eq!(names, ["13-history.http"]);
    assert_eq!(sum(&recording["13-history.http"]), SUMS.iter().find(|(name, _)| *name == names[0]).unwrap().1);
}

#[tokio::test]
async fn one_word_of_the_story_changes_the_captures_that_hold_it_and_no_other() {
    let copy = copy_without_captures();
    let story = copy.path().join("stories/payments-api.toml");
    let text = std::fs::read_to_string(&story).unwrap();
    let (word, other) = ("Comparing the diff against main", "Comparing the patch against main");
    std::fs::write(&story, text.replace(word, other)).unwrap();
    let changed = record_all(&Files::Folder(copy.path().into())).await;
    let mut differing = BTreeSet::new();
    let mut holding = BTreeSet::new();
    for (name, bytes) in &changed {
        let text = String::from_utf8_lossy(bytes);
        if text.contains(other) {
            holding.insert(name.as_str());
        }
        if sum(bytes) != SUMS.iter().find(|(known, _)| known == name).unwrap().1 {
            differing.insert(name.as_str());
        }
    }
    assert_eq!(differing, BTreeSet::from(["06-input-required.http", "13-history.http", "19-planner.http"]));
    assert_eq!(differing, holding);
}

#[test]
fn no_recorded_id_stands_in_a_source() {
    let mut ids = BTreeSet::new();
    for entry in std::fs::read_dir(scenarios().join("kit/captures")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let is_id = |word: &&str| word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
        let words = text.split(|letter: char| !letter.is_ascii_hexdigit() && letter != '-');
        ids.extend(words.filter(is_id).map(str::to_owned));
    }
    // What the client of scenario 11 asks for: an id that no server makes.
    ids.remove("00000000-0000-4000-8000-000000000000");
    assert!(ids.len() > 50, "the captures hold ids");
    let mut looked_at = 0;
    let mut folders = vec![scenarios().join("../crates"), scenarios().join("stories"), scenarios().join("kit")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["captures", "target"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if name != "seeded.rs" {
                // `seeded.rs` holds the published vectors of the generator.
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                looked_at += 1;
                let found = ids.iter().find(|id| text.contains(id.as_str()));
                assert!(found.is_none(), "{} holds {found:?}", path.display());
            }
        }
    }
    assert!(looked_at > 50, "the sources were looked at");
}
