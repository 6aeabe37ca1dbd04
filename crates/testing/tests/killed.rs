//! Processes that are killed with SIGKILL, a few times. `scripts/crash.sh` and `scripts/replicas.sh` do it as often as one
//! likes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use testing::crash::Crash;
use testing::example;
use testing::replicas::Replicas;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_were_told_is_there_after_the_agent_was_killed_under_load() {
    let mut crash = Crash::new(&example("hammer-agent"), 1);
    for _ in 0..3 {
        crash.life().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_is_lost_when_either_of_two_processes_is_killed() {
    // Drawn so that each is killed, and once the one that has the turn.
    let Some(mut replicas) = Replicas::start(100, 1).await else { return };
    replicas.show().await.unwrap();
    for number in [0, 3, 1] {
        println!("{}", replicas.round(number).await.unwrap());
    }
    replicas.nothing_is_left().await.unwrap();
}
