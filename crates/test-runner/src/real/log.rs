//! The log of a run as it is written: cut into pieces by line and by time, as text, with an end to how much is kept.

use std::collections::VecDeque;

/// A piece of about this size leaves at once.
const PIECE: usize = 16 << 10;
/// So much of the end of a log that was cut is still shown.
const TAIL: usize = 4 << 10;

/// Turns bytes into pieces of text.
#[derive(Debug)]
pub struct Cutter {
    /// What has come and not left. Its end may be half a character.
    held: Vec<u8>,
    /// How many bytes may still be kept.
    left: usize,
    /// What came after that.
    tail: VecDeque<u8>,
    /// How many bytes are neither kept nor in the tail.
    cut: u64,
}

impl Cutter {
    /// Keeps so many bytes from the start.
    pub fn new(limit: usize) -> Self {
        Self { held: Vec::new(), left: limit, tail: VecDeque::new(), cut: 0 }
    }

    /// Takes what was written. Gives pieces that are large enough to leave at once.
    pub fn take(&mut self, bytes: &[u8]) -> Option<String> {
        let (kept, rest) = bytes.split_at(bytes.len().min(self.left));
        self.left -= kept.len();
        self.held.extend_from_slice(kept);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.cut += over as u64;
        if self.held.len() >= PIECE { self.lines().or_else(|| self.all()) } else { None }
    }

    /// Whether something waits to leave.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The lines that are complete.
    pub fn lines(&mut self) -> Option<String> {
        let end = self.held.iter().rposition(|byte| *byte == b'\n')? + 1;
        Some(text(self.held.drain(..end).collect()))
    }

    /// All that waits, but for half a character at the end.
    pub fn all(&mut self) -> Option<String> {
        let half = half_a_character(&self.held);
        let end = self.held.len() - half;
        (end > 0).then(|| text(self.held.drain(..end).collect()))
    }

    /// The end of the log: what waits, how much was cut, and the last lines after that.
    pub fn end(mut self) -> Option<String> {
        let mut rest = text(std::mem::take(&mut self.held));
        if !self.tail.is_empty() {
            let mut tail: Vec<u8> = self.tail.into();
            if self.cut > 0 {
                // From the start of a line, if one starts there.
                let start = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                self.cut += start as u64;
                tail.drain(..start);
            }
            if !rest.is_empty() && !rest.ends_with('\n') {
                rest.push('\n');
            }
            if self.cut > 0 {
                rest.push_str(&format!("[{} bytes of the log are left out here]\n", self.cut));
            }
            rest.push_str(&text(tail));
        }
        (!rest.is_empty()).then_some(rest)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|cause| String::from_utf8_lossy(cause.as_bytes()).into_owned())
}

/// How many bytes at the end may be the start of a character whose rest is still to come.
fn half_a_character(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    match std::str::from_utf8(last) {
        // The window itself may begin inside a character; what counts is that the end is not complete.
        Err(cause) if cause.error_len().is_none() => last.len() - cause.valid_up_to(),
        Err(_) => (1..=last.len().min(2))
            .find(|back| {
                let end = &last[last.len() - back..];
                std::str::from_utf8(end).is_err_and(|cause| cause.error_len().is_none())
            })
            .unwrap_or_default(),
        Ok(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_leave_whole_and_a_half_character_waits() {
        let mut cutter = Cutter::new(1000);
        assert_eq!(cutter.take(b"one\ntw"), None);
        assert_eq!(cutter.lines().unwrap(), "one\n");
        assert_eq!(cutter.lines(), None);
        assert_eq!(cutter.all().unwrap(), "tw");
        assert_eq!(cutter.all(), None);
        let euro = "\u{20ac}".as_bytes();
        for at in 1..3 {
            cutter.take(b"a");
            cutter.take(&euro[..at]);
            assert_eq!(cutter.all().unwrap(), "a", "{at}");
            assert_eq!(cutter.all(), None);
            cutter.take(&euro[at..]);
            assert_eq!(cutter.all().unwrap(), "\u{20ac}");
        }
        let long = "\u{1F600}".as_bytes();
        for at in 1..4 {
            cutter.take(b"xyz");
            cutter.take(&long[..at]);
            assert_eq!(cutter.all().unwrap(), "xyz", "{at}");
            cutter.take(&long[at..]);
            assert_eq!(cutter.all().unwrap(), "\u{1F600}");
        }
    }

    #[test]
    fn what_is_no_text_is_shown_as_such_and_the_rest_is_as_it_was() {
        let mut cutter = Cutter::new(1000);
        cutter.take(b"\x1b[31mred\x1b[0m 10%\r 20%\r\n\xff\xfe!\n\0\n");
        assert_eq!(cutter.end().unwrap(), "\x1b[31mred\x1b[0m 10%\r 20%\r\n\u{fffd}\u{fffd}!\n\0\n");
        let mut cutter = Cutter::new(1000);
        cutter.take(b"abc\xf0\x9f");
        assert_eq!(cutter.end().unwrap(), "abc\u{fffd}", "the end is said even when it is half a character");
    }

    #[test]
    fn a_line_of_a_mebibyte_leaves_in_pieces() {
        let mut cutter = Cutter::new(2 << 20);
        let line = vec![b'x'; 1 << 20];
        let mut length = 0;
        for piece in line.chunks(5000) {
            if let Some(text) = cutter.take(piece) {
                assert!(text.len() <= PIECE + 5000);
                length += text.len();
            }
        }
        length += cutter.end().unwrap().len();
        assert_eq!(length, 1 << 20);
    }

    #[test]
    fn a_log_over_the_limit_is_cut_where_it_is_seen_and_its_end_is_kept() {
        let mut cutter = Cutter::new(10);
        let mut seen = String::new();
        for number in 0..100_000 {
            seen.extend(cutter.take(format!("line {number}\n").as_bytes()));
        }
        assert!(cutter.tail.len() <= TAIL, "nothing grows with the log");
        seen.extend(cutter.end());
        assert!(seen.starts_with("line 0\nlin\n["), "{}", &seen[..60]);
        assert!(seen.ends_with("line 99998\nline 99999\n"));
        let cut: usize = seen.split_once('[').unwrap().1.split_once(' ').unwrap().0.parse().unwrap();
        let whole: usize = (0..100_000).map(|number| format!("line {number}\n").len()).sum();
        let note = seen.split_once('[').unwrap().1.split_once("]\n").unwrap();
        assert_eq!(10 + cut + note.1.len(), whole, "every byte is accounted for");
    }
}
