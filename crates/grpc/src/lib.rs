//! gRPC.
mod wire {
    #![allow(missing_docs, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/lf.a2a.v1.rs"));
}
