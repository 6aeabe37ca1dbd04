//! The framing of server-sent events.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use proptest::collection::vec;
use proptest::prelude::*;
use protocol::sse::{self, Broken, Event, Reader};

/// The data and ids of all events of a stream that comes in these chunks.
fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, Option<String>)> {
    let mut reader = Reader::default();
    let mut found = Vec::new();
    for chunk in chunks {
        reader.push(chunk).unwrap();
        found.extend(std::iter::from_fn(|| reader.next()).map(|Event { data, id }| (data, id)));
    }
    found
}

fn data(stream: &str) -> Vec<String> {
    events([stream.as_bytes()]).into_iter().map(|(data, _)| data).collect()
}

#[test]
fn line_ends_may_be_lf_crlf_or_cr() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = "data: 1\n\ndata: 2a\ndata: 2b\n\n: note\n\nid: 7\ndata: 3\n\n".replace('\n', end);
        assert_eq!(data(&stream), ["1", "2a\n2b", "3"], "{end:?}");
    }
    assert_eq!(data("data: 1\r\ndata: 2\n\rdata: 3\r\r"), ["1\n2", "3"]);
}

#[test]
fn a_stream_may_be_cut_into_chunks_anywhere() {
    let stream = "\u{feff}id: 1\r\ndata: žluťoučký 🦀\r\ndata:你好\r\n\r\n: ping\r\rdata: {}\n\ndata\n\n".as_bytes();
    let whole = events([stream]);
    assert_eq!(whole.len(), 2);
    assert_eq!(whole[0], ("žluťoučký 🦀\n你好".to_owned(), Some("1".to_owned())));
    assert_eq!(events(stream.chunks(1)), whole);
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let chunks = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(events(chunks), whole, "{first} {second}");
        }
    }
}

#[test]
fn the_byte_order_mark_is_passed_over_once_and_only_at_the_start() {
    assert_eq!(data("\u{feff}data: 1\n\n"), ["1"]);
    assert_eq!(data("\u{feff}\u{feff}data: 1\n\n"), Vec::<String>::new());
    assert_eq!(data("\n\u{feff}data: 1\n\n"), Vec::<String>::new());
}

#[test]
fn comments_other_fields_and_empty_events_are_passed_over() {
    for nothing in [
        ": ping\n\n",
        ":\n\n",
        "\n\n\n",
        "data:\n\n",
        "data: \n\n",
        "data\n\n",
        "id: 7\n: ping\n\n",
        "event: message\n\n",
        "retry: 9\n\n",
        "Data: x\n\n",
        " data: x\n\n",
        "dat: x\n\n",
        "json\n\n",
    ] {
        assert_eq!(data(&format!("{nothing}data: 1\n\n")), ["1"], "{nothing:?}");
    }
    assert_eq!(data("event: message\nid: 1\nretry: 5\nx: y\ndata: 1\n\n"), ["1"]);
}

#[test]
fn one_space_after_the_colon_is_not_data() {
    assert_eq!(
        data("data:{}\n\ndata: {}\n\ndata:  {}\n\ndata:\t{}\n\ndata: a: b\n\n"),
        ["{}", "{}", " {}", "\t{}", "a: b"]
    );
    assert_eq!(data("data: {\ndata:  \"a\":\ndata\ndata:1\ndata: }\n\n"), ["{\n \"a\":\n\n1\n}"]);
}

#[test]
fn an_id_stays_until_another_comes() {
    let stream = b"data: a\n\nid: 1\ndata: b\n\ndata: c\n\nid: 2\n\ndata: d\n\nid: x\0y\ndata: e\n\nid\ndata: f\n\n";
    let ids: Vec<_> = events([&stream[..]]).into_iter().map(|(_, id)| id).collect();
    let id = |text: &str| Some(text.to_owned());
    assert_eq!(ids, [None, id("1"), id("1"), id("2"), id("2"), None]);
}

#[test]
fn a_stream_that_ends_inside_an_event_was_cut() {
    for (stream, cut) in [
        ("", false),
        ("data: 1\n\n", false),
        ("data: 1\r\r", false),
        (": ping\n", false),
        ("data: 1\n\n: pi", true),
        ("data: 1", true),
        ("data: 1\n", true),
        ("data: 1\n\ndata: 2\n", true),
        ("data: 1\n\nd", true),
    ] {
        let mut reader = Reader::default();
        reader.push(stream.as_bytes()).unwrap();
        assert_eq!(reader.is_cut(), cut, "{stream:?}");
    }
}

#[test]
fn an_event_larger_than_the_limit_is_refused_and_smaller_ones_never_are() {
    let stream_of = |line: &str, times: usize| line.repeat(times);
    for endless in [
        "x".repeat(200),
        stream_of("data: 0123456789\n", 20),
        stream_of("data:\n", 200),
        format!(": {}", "x".repeat(200)),
        format!("id: {}\n", "x".repeat(200)),
    ] {
        let mut reader = Reader::new(100);
        let whole = reader.push(endless.as_bytes());
        assert_eq!(whole, Err(Broken::TooLarge(100)), "{endless:?}");
        let mut reader = Reader::new(100);
        let bytewise = endless.as_bytes().chunks(1).try_for_each(|byte| reader.push(byte));
        assert_eq!(bytewise, Err(Broken::TooLarge(100)), "{endless:?}");
    }
    let mut reader = Reader::new(100);
    for _ in 0..100 {
        reader.push(b"data: 0123456789\ndata: 0123456789\n\n: a comment of some length, then nothing\n").unwrap();
        assert!(reader.next().is_some());
    }
    assert_eq!(Broken::TooLarge(100).to_string(), "an event of the stream is larger than 100 bytes");
}

#[test]
fn b28_a_frame_of_a_mebibyte_reads_the_same_in_pieces_of_any_size() {
    let long = "žluťoučký 🦀 ".repeat((1 << 20) / "žluťoučký 🦀 ".len() + 1);
    let stream = [sse::frame(&long, Some(1)), sse::frame("{}", Some(2))].concat();
    assert!(stream.len() > 1 << 20);
    for size in [1, 7, 1460, 1 << 16, stream.len()] {
        let found = events(stream.chunks(size));
        assert_eq!(found.len(), 2, "{size}");
        assert!(found[0].0 == long && found[1].0 == "{}", "{size}");
    }
}

#[test]
fn a_line_that_is_no_utf_8_is_refused() {
    for stream in [&b"data: \xff\n"[..], b"data: \xc3\n", b"\xef\xbb\n", b": \x80\n"] {
        assert_eq!(Reader::default().push(stream), Err(Broken::NotText), "{stream:?}");
    }
}

#[test]
fn a_frame_is_its_id_its_data_and_an_empty_line() {
    assert_eq!(sse::frame("{}", None), b"data: {}\n\n");
    assert_eq!(sse::frame("{}", Some(7)), b"id: 7\ndata: {}\n\n");
    assert_eq!(sse::frame("a\nb\r\nc\rd", None), b"data: a\ndata: b\ndata: c\ndata: d\n\n");
    let mut frame = Vec::new();
    sse::open(&mut frame, Some(u64::MAX));
    assert_eq!(frame, b"id: 18446744073709551615\ndata: ");
    assert_eq!(events([sse::KEEP_ALIVE]), []);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_chunks_read_the_same_and_never_panic(stream in vec(proptest::sample::select(&b"data:id \r\n\xef\xbb\xbfx"[..]), 0..60), cut in 0usize..60) {
        let read = |chunks: &[&[u8]]| {
            let mut reader = Reader::new(20);
            let outcome = chunks.iter().try_for_each(|chunk| reader.push(chunk));
            let events: Vec<_> = std::iter::from_fn(|| reader.next()).collect();
            // What is left over after a refusal depends on where it struck, and nobody reads on.
            (outcome, events, outcome.is_ok() && reader.is_cut())
        };
        let cut = cut.min(stream.len());
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(read(&[&stream]).1, read(&bytes).1);
        prop_assert_eq!(read(&[&stream]).2, read(&[&stream[..cut], &stream[cut..]]).2);
        prop_assert_eq!(read(&[&stream]).0.is_ok(), read(&bytes).0.is_ok());
    }

    #[test]
    fn frames_come_back(lines in vec("[^\r\n]{0,12}", 1..4), id: u64, size in 1usize..9) {
        let data = lines.join("\n");
        prop_assume!(!data.is_empty());
        let stream = [sse::frame(&data, Some(id)), sse::KEEP_ALIVE.to_vec(), sse::frame(&data, None)].concat();
        let expected = (data, Some(id.to_string()));
        prop_assert_eq!(events(stream.chunks(size)), [expected.clone(), expected]);
    }
}
