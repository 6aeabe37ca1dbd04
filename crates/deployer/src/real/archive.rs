//! Builds: tar archives in one folder, plain or packed with gzip or zstd, each with a SHA-256 file beside it if it has
//! one.
//!
//! An archive comes from somewhere else and is read as such: whatever it says, nothing is written outside the folder
//! that it is unpacked into, and one that is refused leaves nothing behind.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use ring::digest::{Context, SHA256};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use tar::EntryType;

/// What an archive's name may end in.
const ENDS: [&str; 5] = [".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"];
/// So many entries may an archive have.
const ENTRIES: u64 = 500_000;
/// So many bytes may stand between the contents of two entries: headers, long names and what else is said of an entry.
const HEADERS: u64 = 1 << 20;
/// How deep folders may lie.
const DEPTH: usize = 64;
/// The longest path, in bytes.
const PATH: usize = 2_048;

/// Why a build cannot be had. The text is fit for the client: it names no path outside the archive.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The archive holds something that is not taken.
    #[error("{0}")]
    Content(String),
    /// Its digest is not that of the file beside it, or not the one that was approved.
    #[error("{0}")]
    Digest(String),
    /// It could not be read or written. The cause is for the log.
    #[error("it could not be unpacked")]
    Io(#[from] io::Error),
    /// The work was stopped.
    #[error("it was stopped")]
    Stopped,
}

fn refused<T>(words: impl Into<String>) -> Result<T, Refused> {
    Err(Refused::Content(words.into()))
}

/// A build in its archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The build's name: that of the file without its end.
    pub name: String,
    path: PathBuf,
}

/// What was unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpacked {
    /// Files and links.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
}

/// The builds in a folder, by name.
pub fn list(folder: &Path) -> io::Result<Vec<Archive>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(file) = entry.file_name().into_string() else { continue };
        let name = ENDS.iter().filter_map(|end| file.strip_suffix(end)).min_by_key(|name| name.len());
        let Some(name) = name.filter(|name| is_name(name)) else { continue };
        // A link may lead to an archive elsewhere: whoever can write here decides what is deployed anyway.
        if entry.path().is_file() {
            found.entry(name.to_owned()).or_insert(Archive { name: name.to_owned(), path: entry.path() });
        }
    }
    Ok(found.into_values().collect())
}

/// Whether a build may be called so. Its name becomes part of a folder's.
pub fn is_name(name: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    (1..=100).contains(&name.len()) && name.bytes().all(fine) && !name.starts_with(['.', '-', '+'])
}

impl Archive {
    /// Its SHA-256 in hexadecimal. If a file with the digest stands beside it, both have to be the same.
    pub fn digest(&self) -> Result<String, Refused> {
        let mut file = File::open(&self.path)?;
        let mut hash = Context::new(&SHA256);
        let mut buffer = vec![0; 128 << 10];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                length => hash.update(&buffer[..length]),
            }
        }
        let digest = hex(hash.finish().as_ref());
        match self.stated()? {
            Some(stated) if stated != digest => {
                Err(Refused::Digest(format!("the archive's SHA-256 is {digest}, but the file beside it says {stated}")))
            }
            _ => Ok(digest),
        }
    }

    /// The digest in the file beside it, as `sha256sum` writes it: in hexadecimal, before a space and a file's name.
    fn stated(&self) -> Result<Option<String>, Refused> {
        let mut path = self.path.clone().into_os_string();
        path.push(".sha256");
        let mut text = Vec::new();
        match File::open(path) {
            Ok(file) => file.take(4096).read_to_end(&mut text)?,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause.into()),
        };
        let text = String::from_utf8_lossy(&text);
        let word = text.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        if word.len() != 64 || !word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Refused::Digest("the file beside the archive holds no SHA-256".to_owned()));
        }
        Ok(Some(word))
    }

    /// Unpacks it into a folder that is made for it. The folder is gone again when the archive is refused, or is not
    /// the one with this digest. `limit` is the most bytes that its contents may have; `stop` is asked now and then.
    pub fn unpack(&self, into: &Path, digest: &str, limit: u64, stop: &dyn Fn() -> bool) -> Result<Unpacked, Refused> {
        let mut folder = fs::DirBuilder::new();
        folder.mode(0o755).create(into)?;
        let unpacked = self.unpack_into(into, digest, limit, stop);
        if unpacked.is_err() {
            fs::remove_dir_all(into)?;
        }
        unpacked
    }

    fn unpack_into(&self, into: &Path, digest: &str, limit: u64, stop: &dyn Fn() -> bool) -> Result<Unpacked, Refused> {
        let hashed = Hashed { inner: File::open(&self.path)?, hash: Context::new(&SHA256) };
        let mut packed = BufReader::with_capacity(128 << 10, hashed);
        let unpacked = {
            let mut start = [0; 4];
            let seen = packed.fill_buf()?;
            let length = seen.len().min(4);
            start[..length].copy_from_slice(&seen[..length]);
            let mut plain: Box<dyn Read + '_> = match start {
                [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(&mut packed)),
                [0x28, 0xb5, 0x2f, 0xfd] => Box::new(Zstd::new(&mut packed)),
                _ => Box::new(&mut packed),
            };
            let unpacked = unpack(&mut plain, into, limit, stop)?;
            // Only at its end does what is packed say whether it is whole.
            if io::copy(&mut plain.take(HEADERS), &mut io::sink()).map_err(unreadable)? == HEADERS {
                return refused("too much stands behind its end");
            }
            unpacked
        };
        // What comes after the archive's end is part of the file, and so of its digest.
        io::copy(&mut packed, &mut io::sink())?;
        if hex(packed.into_inner().hash.finish().as_ref()) != digest {
            return Err(Refused::Digest("the archive is not the one that was approved: it has changed".to_owned()));
        }
        Ok(unpacked)
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A file whose bytes are hashed as they are read.
struct Hashed {
    inner: File,
    hash: Context,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.hash.update(&buffer[..length]);
        Ok(length)
    }
}

/// Frames of zstd, one after the other, as `cat` and parallel packers make them.
struct Zstd<R> {
    packed: R,
    decoder: FrameDecoder,
    /// A frame has begun and there may be more of it.
    within: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(packed: R) -> Self {
        Self { packed, decoder: FrameDecoder::new(), within: false }
    }

    /// Begins the next frame. False at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.packed.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.packed) {
                Ok(()) => {
                    self.within = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut (&mut self.packed).take(length.into()), &mut io::sink())?;
                }
                Err(cause) => return Err(io::Error::new(io::ErrorKind::InvalidData, cause)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within && (buffer.is_empty() || !self.begin()?) {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.packed, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|cause| io::Error::new(io::ErrorKind::InvalidData, cause))?;
            }
            match self.decoder.read(buffer)? {
                0 if self.decoder.is_finished() && !buffer.is_empty() => self.within = false,
                length => return Ok(length),
            }
        }
    }
}

/// A reader that gives an error once it has given as many bytes as it was allowed to.
struct Allowed<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Allowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other("too much is said of one entry"));
        }
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let length = self.inner.read(&mut buffer[..most])?;
        self.left.set(left - length as u64);
        Ok(length)
    }
}

/// Unpacks the entries of a tar archive into a folder that is there and empty.
///
/// Links are made last: until then the folder holds only folders and files of the archive's, so nothing can be written
/// through a link. Then each is followed, and has to end inside.
fn unpack(plain: impl Read, into: &Path, limit: u64, stop: &dyn Fn() -> bool) -> Result<Unpacked, Refused> {
    let left = Rc::new(Cell::new(HEADERS));
    let mut archive = tar::Archive::new(Allowed { inner: plain, left: left.clone() });
    let mut unpacked = Unpacked { files: 0, bytes: 0 };
    let mut links: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut entries = 0;
    let mut all = archive.entries().map_err(unreadable)?;
    loop {
        left.set(HEADERS);
        let Some(entry) = all.next() else { break };
        let mut entry = entry.map_err(unreadable)?;
        entries += 1;
        if entries > ENTRIES {
            return refused(format!("it has more than {ENTRIES} entries"));
        }
        if stop() {
            return Err(Refused::Stopped);
        }
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let name = entry.path_bytes().into_owned();
        let path = inside(&name)?;
        let shown = || String::from_utf8_lossy(&name).into_owned();
        if is_sparse(&mut entry)? {
            return refused(format!("{} is a sparse file, which is not taken", shown()));
        }
        let Some(path) = path else {
            if kind.is_dir() {
                continue;
            }
            return refused(format!("{:?} is no name for a file", shown()));
        };
        let place = into.join(&path);
        if kind.is_dir() {
            folders(&place).map_err(|cause| taken(cause, &shown()))?;
            continue;
        }
        if let Some(parent) = place.parent() {
            folders(parent).map_err(|cause| taken(cause, &shown()))?;
        }
        unpacked.files += 1;
        match kind {
            EntryType::Regular | EntryType::Continuous => {
                let is_program = entry.header().mode().unwrap_or(0o644) & 0o100 != 0;
                let size = entry.size();
                if unpacked.bytes.saturating_add(size) > limit {
                    return refused(format!("its contents have more than {limit} bytes"));
                }
                left.set(size.saturating_add(HEADERS));
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(if is_program { 0o755 } else { 0o644 })
                    .open(&place)
                    .map_err(|cause| taken(cause, &shown()))?;
                let copied = copy(&mut entry, &mut file, stop)?;
                if copied != size {
                    return refused(format!("{} ends early: the archive is cut off", shown()));
                }
                unpacked.bytes += copied;
            }
            EntryType::Symlink => {
                let Some(target) = entry.link_name_bytes() else {
                    return refused(format!("{} leads nowhere", shown()));
                };
                let target = Path::new(OsStr::from_bytes(&target)).to_owned();
                if target.is_absolute() || target.as_os_str().is_empty() || target.as_os_str().len() > PATH {
                    return refused(format!("{} is a link out of the build", shown()));
                }
                links.push((path, target));
            }
            EntryType::Link => {
                let target = entry.link_name_bytes().map(|name| inside(&name)).transpose()?.flatten();
                let is_file = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_file());
                let Some(target) = target.map(|target| into.join(target)).filter(|target| is_file(target)) else {
                    return refused(format!("{} is a link to no file of the build", shown()));
                };
                fs::hard_link(target, &place).map_err(|cause| taken(cause, &shown()))?;
            }
            _ => return refused(format!("{} is neither a file, a folder nor a link", shown())),
        }
    }
    for (path, target) in &links {
        symlink(target, into.join(path)).map_err(|cause| taken(cause, &path.to_string_lossy()))?;
    }
    let root = fs::canonicalize(into)?;
    for (path, _) in &links {
        if !fs::canonicalize(into.join(path)).is_ok_and(|end| end.starts_with(&root)) {
            return refused(format!("{} is a link out of the build, or leads nowhere", path.display()));
        }
    }
    if entries == 0 {
        return refused("there is nothing in it");
    }
    Ok(unpacked)
}

/// Copies the content of an entry, and looks now and then whether to stop.
fn copy(entry: &mut impl Read, file: &mut File, stop: &dyn Fn() -> bool) -> Result<u64, Refused> {
    let mut copied = 0;
    loop {
        let some = io::copy(&mut entry.take(4 << 20), file).map_err(unreadable)?;
        copied += some;
        if some == 0 {
            return Ok(copied);
        }
        if stop() {
            return Err(Refused::Stopped);
        }
    }
}

/// A name in an archive as a path below the folder; none for the folder itself.
fn inside(name: &[u8]) -> Result<Option<PathBuf>, Refused> {
    let shown = || String::from_utf8_lossy(&name[..name.len().min(200)]).into_owned();
    if name.contains(&0) {
        return refused(format!("{:?} is no path", shown()));
    }
    if name.len() > PATH {
        return refused(format!("{}… is too long a path", shown()));
    }
    let mut path = PathBuf::new();
    let mut depth = 0;
    for component in Path::new(OsStr::from_bytes(name)).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => {
                depth += 1;
                path.push(name);
            }
            _ => return refused(format!("{} leads out of the build", shown())),
        }
    }
    if depth > DEPTH {
        return refused(format!("{}… lies too deep", shown()));
    }
    Ok((depth > 0).then_some(path))
}

/// Makes folders, where they are not there yet. None of them may be a file.
fn folders(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Whether an entry says, in one of the dialects, that parts of it are left out.
fn is_sparse<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<bool, Refused> {
    if entry.header().entry_type() == EntryType::GNUSparse {
        return Ok(true);
    }
    let Some(said) = entry.pax_extensions().map_err(unreadable)? else { return Ok(false) };
    Ok(said.filter_map(Result::ok).any(|one| one.key_bytes().starts_with(b"GNU.sparse.")))
}

/// What an archive that cannot be read to its end gets.
fn unreadable(cause: io::Error) -> Refused {
    match cause.raw_os_error() {
        Some(_) => Refused::Io(cause),
        None => Refused::Content(format!("the archive cannot be read: {cause}")),
    }
}

/// What a path gets that cannot be made because of what the archive has put there.
fn taken(cause: io::Error, path: &str) -> Refused {
    match cause.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            Refused::Content(format!("{path} is there twice"))
        }
        io::ErrorKind::InvalidFilename => Refused::Content(format!("{path} has a name that is too long")),
        _ => Refused::Io(cause),
    }
}

#[cfg(test)]
mod tests;
