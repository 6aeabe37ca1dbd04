//! What clients may send that is no request, byte by byte: it is refused with an error of the table or closed, the
//! connection and everybody else goes on, and nothing of it stays.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod grpc;
mod http;
mod memory;
mod wire;

use std::time::Duration;

use server::Setup;
use testing::{Scripted, Served, scripted};

use crate::wire::Wire;

/// Is done with what it was sent.
fn echo() -> Scripted {
    scripted(|job, say| async move {
        say.done(job.message.parts.clone()).await?;
        Ok(())
    })
}

/// Nobody is waited for.
fn impatient(setup: &mut Setup) {
    setup.limits.arrival = Duration::from_millis(200);
    setup.limits.keep_alive = Duration::from_millis(200);
}

/// How much runs in this test, which is the server, when nobody is connected to it.
async fn alive(served: &Served) -> usize {
    let mut wire = Wire::to(served).await;
    wire.send(b"GET / HTTP/1.1\r\n\r\n").await.answer().await.unwrap();
    tokio::runtime::Handle::current().metrics().num_alive_tasks() - 1
}

/// Waits until no more runs than this.
async fn until_alive(at_most: usize) {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..2000 {
        if alive() <= at_most {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} tasks, not {at_most}", alive());
}
