//! Compiles the proto without a protoc of the system, and keeps its descriptors for reflection.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto/a2a.proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).open_file("a2a.proto")?;
    let descriptors = compiler.file_descriptor_set();
    std::fs::write(out.join("a2a.bin"), descriptors.encode_to_vec())?;
    prost_build::Config::new().bytes([".lf.a2a.v1.Part.raw"]).btree_map(["."]).compile_fds(descriptors)?;
    Ok(())
}
