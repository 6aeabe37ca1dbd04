#![no_main]
//! libFuzzer's way into [`fuzz::diff`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::diff(data));
