#![no_main]
//! libFuzzer's way into [`fuzz::sse`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::sse(data));
