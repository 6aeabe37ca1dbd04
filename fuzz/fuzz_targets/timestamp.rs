#![no_main]
//! libFuzzer's way into [`fuzz::timestamp`].

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::timestamp(data));
