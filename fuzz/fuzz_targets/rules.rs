#![no_main]
//! libFuzzer's way into [`fuzz::rules`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::rules(data));
