//! Locks through the SDK, against a real server: one at a time, renewed, lost in time to stop, given back.

use std::time::Duration;

use drumtower_e2e::{Cli, Server, Site};
use drumtower_sdk::{LockGuard, Locks};

const LONG: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

struct World {
    server: Server,
    cli: Cli,
    locks: Locks,
    _site: Site,
}

fn world() -> World {
    let site = Site::new();
    let server = Server::start(&site);
    let cli = Cli::new(site.dir("home")).env("DRUMTOWER_DATA", server.data().display().to_string());
    let token = server.token("locker", "operator");
    let locks = Locks::builder(server.url()).token(token).build();
    let locks = locks.expect("good settings");
    World {
        server,
        cli,
        locks,
        _site: site,
    }
}

async fn held(locks: &Locks, ttl: Duration) -> LockGuard {
    let asked = locks.lock("import").ttl(ttl).wait(LONG).acquire().await;
    asked.expect("an answer").expect("the lock")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_holds_it_and_the_next_gets_a_greater_fence() {
    let world = world();
    let first = held(&world.locks, LONG).await;
    assert!(first.is_held() && first.name() == "import");
    let refused = world.locks.lock("import").acquire().await;
    assert!(refused.expect("an answer").is_none());
    let waiting = world.locks.lock("import").wait(LONG).acquire();
    let waiting = tokio::spawn(waiting);
    let fence = first.fence();
    first.release().await.expect("given back");
    let second = waiting.await.expect("no panic").expect("an answer");
    let second = second.expect("the lock");
    assert!(second.fence() > fence);
    // Dropped, not released: it is given back all the same, long before its term is over.
    drop(second);
    let third = held(&world.locks, LONG).await;
    assert!(third.fence() > fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_outlives_its_term_because_it_is_renewed() {
    let world = world();
    let guard = held(&world.locks, SECOND).await;
    // Three terms of waiting are three terms in which nobody else got it.
    let other = world.locks.lock("import").wait(3 * SECOND).acquire().await;
    assert!(other.expect("an answer").is_none());
    assert!(guard.is_held());
    guard.release().await.expect("given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_loses_it_by_force_is_told() {
    let world = world();
    let guard = held(&world.locks, SECOND).await;
    world.cli.ok(&["lock", "release", "import", "--force"]);
    guard.lost().await;
    assert!(!guard.is_held());
    guard.release().await.expect("nothing is left to give back");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_renew_is_told_and_a_restarted_server_goes_on() {
    let mut world = world();
    let guard = held(&world.locks, 2 * SECOND).await;
    let fence = guard.fence();
    world.server.kill();
    guard.lost().await;
    assert!(!guard.is_held());
    drop(guard);
    let unreachable = world.locks.lock("import").acquire().await;
    assert!(unreachable.expect_err("nobody is there").is_unreachable());
    world.server.restart();
    let again = held(&world.locks, SECOND).await;
    assert!(again.fence() > fence);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_told_apart() {
    let world = world();
    let nameless = world.locks.lock("no such name!").acquire().await;
    assert!(nameless.expect_err("no name").is_configuration());
    let brief = world.locks.lock("import").ttl(Duration::from_millis(5));
    let brief = brief.acquire().await.expect_err("too short");
    assert!(
        brief.is_rejected() && brief.to_string().contains("ttl"),
        "{brief}"
    );
    let stranger = Locks::builder(world.server.url())
        .token("drt_wrong")
        .build();
    let refused = stranger
        .expect("good settings")
        .lock("import")
        .acquire()
        .await;
    assert!(refused.expect_err("no such token").is_unauthorized());
    let open = Locks::builder("http://scheduler:7070").token("t").build();
    assert!(open.err().is_some_and(|error| error.is_configuration()));
}
