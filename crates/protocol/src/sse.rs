//! The framing of server-sent events, as the WHATWG HTML standard defines it.

/// A comment that keeps proxies from closing a quiet stream.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The data lines joined by newlines.
    pub data: String,
    /// The last `id:` seen so far, if any; an empty one takes it back.
    pub id: Option<String>,
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An event is larger than the reader's limit, in bytes.
    #[error("an event of the stream is larger than {0} bytes")]
    TooLarge(usize),
    /// A line is not UTF-8.
    #[error("the stream is not UTF-8")]
    NotText,
}

/// Reads events from chunks of bytes, wherever the chunks are cut: inside a character, a line end or the byte order
/// mark. Line ends may be LF, CRLF or CR. Comments are passed over, and so are events without data or with an empty one, which
/// cannot be JSON (the standard would give the latter).
#[derive(Debug)]
pub struct Reader {
    limit: usize,
    line: Vec<u8>,
    data: Option<String>,
    id: Option<String>,
    begun: bool,
    after_cr: bool,
    ready: std::collections::VecDeque<Event>,
}

/// The limit that fits most readers: 16 MiB.
pub const LIMIT: usize = 16 << 20;

impl Default for Reader {
    fn default() -> Self {
        Self::new(LIMIT)
    }
}

impl Reader {
    /// A reader that gives up on an event larger than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let ready = std::collections::VecDeque::new();
        Self { limit, line: Vec::new(), data: None, id: None, begun: false, after_cr: false, ready }
    }

    /// Takes a chunk. Events that it completes are then given by [`Reader::next`].
    pub fn push(&mut self, mut chunk: &[u8]) -> Result<(), Broken> {
        while let Some(&first) = chunk.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let end = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
            if held + piece.len() > self.limit {
                return Err(Broken::TooLarge(self.limit));
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { return Ok(()) };
            self.after_cr = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            let mut line = std::mem::take(&mut self.line);
            self.end_line(&line)?;
            line.clear();
            self.line = line;
        }
        Ok(())
    }

    /// The next event that is whole.
    #[allow(clippy::should_implement_trait, reason = "an empty queue is not the end of the stream")]
    pub fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// Whether bytes are left over that make no whole event. At the end of a stream this means that it was cut.
    pub fn is_cut(&self) -> bool {
        !self.line.is_empty() || self.data.is_some()
    }

    fn end_line(&mut self, mut line: &[u8]) -> Result<(), Broken> {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        let line = std::str::from_utf8(line).map_err(|_| Broken::NotText)?;
        if line.is_empty() {
            if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
                self.ready.push_back(Event { data, id: self.id.clone() });
            }
            return Ok(());
        }
        let (field, value) = match line.split_once(':') {
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line, ""),
        };
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()).filter(|id| !id.is_empty()),
            _ => {}
        }
        Ok(())
    }
}

/// Writes the head of an event: its id, and `data: `. Whoever calls it writes one line of data and two newlines.
pub fn open(frame: &mut Vec<u8>, id: Option<u64>) {
    if let Some(id) = id {
        frame.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    frame.extend_from_slice(b"data: ");
}

/// One event as bytes. `data` may hold several lines, whatever their ends; a reader sees LF.
pub fn frame(data: &str, id: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() + 24);
    open(&mut bytes, id);
    for (at, line) in data.replace("\r\n", "\n").split(['\n', '\r']).enumerate() {
        if at > 0 {
            bytes.extend_from_slice(b"\ndata: ");
        }
        bytes.extend_from_slice(line.as_bytes());
    }
    bytes.extend_from_slice(b"\n\n");
    bytes
}
