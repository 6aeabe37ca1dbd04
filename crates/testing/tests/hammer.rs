//! Two seconds of the hammer in one process. `scripts/hammer.sh` hammers an agent process for as long as one likes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::time::Duration;

use server::Setup;
use testing::hammer::{self, Hammer};
use testing::{Slow, serve};

async fn hammered(change: impl FnOnce(&mut Setup)) {
    hammer::hide_planned_panics();
    let served = serve(hammer::agent(), |setup| {
        setup.limits.cancel = Duration::from_millis(200);
        change(setup);
    })
    .await;
    let report = Hammer::new(&served.url, Duration::from_secs(2), 7).run().await;
    println!("{report}");
    assert!(report.wrong.is_empty(), "{report}");
    for kind in ["blocking", "streams dropped", "canceled", "asked", "approved", "walked", "tasks ended"] {
        assert!(report.counts.get(kind).is_some_and(|count| *count > 0), "nothing was {kind}: {report}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_breaks_under_the_hammer() {
    hammered(|_| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_breaks_under_the_hammer_when_the_store_is_slow() {
    hammered(|setup| setup.store = Arc::new(Slow::new())).await;
}
