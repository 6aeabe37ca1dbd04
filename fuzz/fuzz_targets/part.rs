#![no_main]
//! libFuzzer's way into [`fuzz::part`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::part(data));
