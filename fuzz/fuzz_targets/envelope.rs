#![no_main]
//! libFuzzer's way into [`fuzz::envelope`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::envelope(data));
