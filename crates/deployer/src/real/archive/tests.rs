use std::io::Write;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

/// A tar archive with two files, one of them larger than what a reader takes at once.
fn tar() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in [("version", b"7".to_vec()), ("bin/large", large())] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, &content[..]).unwrap();
    }
    archive.into_inner().unwrap()
}

fn large() -> Vec<u8> {
    (0..100_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// The same, packed in pieces of these sizes one after the other.
fn in_pieces(bytes: &[u8], size: usize, pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    bytes.chunks(size).flat_map(pack).collect()
}

/// A folder with one archive in it.
fn archive(file: &str, content: &[u8]) -> (tempfile::TempDir, Archive) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(file), content).unwrap();
    let archive = list(folder.path()).unwrap().remove(0);
    (folder, archive)
}

const LIMIT: u64 = 10 << 20;

fn unpacked(folder: &Path, archive: &Archive, digest: &str) -> Result<Unpacked, Refused> {
    archive.unpack(&folder.join("into"), digest, LIMIT, &|| false)
}

#[test]
fn a_build_is_the_same_however_its_archive_is_packed() {
    let tar = tar();
    // A frame that decoders skip, as parallel packers write them.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zst(&tar)].concat();
    let between = [&zst(&tar[..70_000])[..], &skipped[..11], &zst(&tar[70_000..])].concat();
    for (file, content) in [
        ("7.tar", tar.clone()),
        ("7.tar.gz", gz(&tar)),
        ("7.tgz", in_pieces(&tar, 50_000, gz)),
        ("7.tar.gz", in_pieces(&tar, 511, gz)),
        ("7.tar.zst", zst(&tar)),
        ("7.tzst", in_pieces(&tar, 50_000, zst)),
        ("7.tar.zst", between),
        // What it is packed with is read from its bytes.
        ("7.tar.zst", gz(&tar)),
    ] {
        let (folder, archive) = archive(file, &content);
        assert_eq!(archive.name, "7");
        let digest = archive.digest().unwrap();
        assert_eq!(digest, hex(ring::digest::digest(&SHA256, &content).as_ref()));
        let size = large().len() as u64 + 1;
        let done = unpacked(folder.path(), &archive, &digest).unwrap_or_else(|refused| panic!("{file}: {refused}"));
        assert_eq!(done, Unpacked { files: 2, bytes: size }, "{file}");
        assert_eq!(fs::read(folder.path().join("into/bin/large")).unwrap(), large(), "{file}");
    }
}

#[test]
fn a_packed_archive_that_is_cut_off_or_damaged_leaves_nothing() {
    let tar = tar();
    let cut = |packed: Vec<u8>| packed[..packed.len() / 2].to_vec();
    let damaged = |mut packed: Vec<u8>| {
        let middle = packed.len() / 2;
        packed[middle..middle + 64].fill(0xff);
        packed
    };
    for (file, content) in [
        ("7.tar", cut(tar.clone())),
        ("7.tar.gz", cut(gz(&tar))),
        ("7.tar.gz", damaged(gz(&tar))),
        ("7.tar.gz", cut(in_pieces(&tar, 50_000, gz))),
        ("7.tar.zst", cut(zst(&tar))),
        ("7.tar.zst", [zst(&tar[..70_000]), b"no frame".to_vec()].concat()),
    ] {
        let (folder, archive) = archive(file, &content);
        let digest = archive.digest().unwrap();
        let refused = unpacked(folder.path(), &archive, &digest);
        assert!(matches!(refused, Err(Refused::Content(_) | Refused::Digest(_))), "{file}: {refused:?}");
        assert!(!folder.path().join("into").exists(), "{file}");
    }
}

#[test]
fn what_stands_behind_the_end_is_read_and_there_may_not_be_much_of_it() {
    for (behind, taken) in [(10 << 10, true), (8 << 20, false)] {
        let (folder, archive) = archive("7.tgz", &gz(&[tar(), vec![0; behind]].concat()));
        let digest = archive.digest().unwrap();
        match unpacked(folder.path(), &archive, &digest) {
            Ok(_) => assert!(taken),
            Err(refused) => {
                assert_eq!((refused.to_string().as_str(), taken), ("too much stands behind its end", false))
            }
        }
        assert_eq!(folder.path().join("into").exists(), taken);
    }
}

#[test]
fn the_file_beside_an_archive_has_to_say_its_digest() {
    let (folder, archive) = archive("7.tar.gz", &gz(&tar()));
    let digest = archive.digest().unwrap();
    let beside = folder.path().join("7.tar.gz.sha256");
    let upper = digest.to_uppercase();
    for right in
        [digest.clone(), format!("{digest}\n"), format!("{digest}  7.tar.gz\n"), format!("{upper} *7.tar.gz\r\n")]
    {
        fs::write(&beside, &right).unwrap();
        assert_eq!(archive.digest().unwrap(), digest, "{right}");
    }
    let other = format!("{}  7.tar.gz\n", "0".repeat(64));
    fs::write(&beside, &other).unwrap();
    let wrong = archive.digest().unwrap_err();
    let words = format!("the archive's SHA-256 is {digest}, but the file beside it says {}", "0".repeat(64));
    assert!(matches!(&wrong, Refused::Digest(said) if *said == words), "{wrong:?}");
    let malformed = [
        String::new(),
        "\n".to_owned(),
        digest[..63].to_owned(),
        format!("{digest}0"),
        digest.replace(&digest[..1], "g"),
        format!("7.tar.gz {digest}"),
        format!("SHA256 (7.tar.gz) = {digest}"),
    ];
    for text in malformed {
        fs::write(&beside, &text).unwrap();
        let wrong = archive.digest().unwrap_err();
        assert_eq!(wrong.to_string(), "the file beside the archive holds no SHA-256", "{text}");
    }
    fs::write(&beside, [0xff; 8192]).unwrap();
    assert!(matches!(archive.digest(), Err(Refused::Digest(_))));
    // One that cannot be read does not count as none.
    fs::remove_file(&beside).unwrap();
    fs::create_dir(&beside).unwrap();
    assert!(matches!(archive.digest(), Err(Refused::Io(_))));
}

#[test]
fn an_archive_that_has_changed_since_it_was_approved_is_not_unpacked() {
    let (folder, archive) = archive("7.tar.gz", &gz(&tar()));
    let approved = archive.digest().unwrap();
    let mut other = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    other.append_data(&mut header, "version", &b"8"[..]).unwrap();
    let changed = [
        gz(&other.into_inner().unwrap()),
        // The same content, packed otherwise, and with bytes behind its end.
        zst(&tar()),
        [tar(), vec![0; 512]].concat(),
        tar(),
    ];
    for content in changed {
        fs::write(folder.path().join("7.tar.gz"), &content).unwrap();
        let refused = unpacked(folder.path(), &archive, &approved).unwrap_err();
        assert_eq!(refused.to_string(), "the archive is not the one that was approved: it has changed");
        assert!(!folder.path().join("into").exists());
    }
}

#[test]
fn unpacking_stops_when_it_is_told_to_and_at_the_limit_and_leaves_nothing() {
    let (folder, archive) = archive("7.tar.zst", &zst(&tar()));
    let digest = archive.digest().unwrap();
    let into = folder.path().join("into");
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    assert!(matches!(archive.unpack(&into, &digest, LIMIT, &stop), Err(Refused::Stopped)));
    assert!(!into.exists());
    let refused = archive.unpack(&into, &digest, 1000, &|| false).unwrap_err();
    assert_eq!(refused.to_string(), "its contents have more than 1000 bytes");
    assert!(!into.exists());
    assert!(unpacked(folder.path(), &archive, &digest).is_ok());
}

#[test]
fn builds_are_listed_by_name_and_other_files_are_none() {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "b.tar",
        "a.tar.gz",
        "c.tzst",
        "2026.10.06-1.tar.zst",
        "notes.txt",
        ".hidden.tar",
        "-x.tar",
        "a b.tar",
        "d.tar.gz.sha256",
    ] {
        fs::write(folder.path().join(file), "").unwrap();
    }
    fs::create_dir(folder.path().join("e.tar")).unwrap();
    let names: Vec<String> = list(folder.path()).unwrap().into_iter().map(|archive| archive.name).collect();
    assert_eq!(names, ["2026.10.06-1", "a", "b", "c"]);
}
