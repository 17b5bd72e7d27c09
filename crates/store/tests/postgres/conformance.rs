//! The suite that every store passes.

use drumtower_store::conformance::{Open, run_all};
use drumtower_store::postgres::Options;
use drumtower_testpg::Cluster;

use super::{open, small, target};

/// The database of one exercise, which goes with it.
struct Database(String);

impl Drop for Database {
    fn drop(&mut self) {
        let removed = Cluster::shared().remove(&self.0);
        if !std::thread::panicking() {
            removed.expect("the database goes");
        }
    }
}

fn on_server(options: Options) -> impl FnMut() -> Open {
    move || {
        let database = Database(Cluster::shared().database().expect("a database"));
        let options = options.clone();
        Box::new(move || {
            let (writer, reader) = open(&target(&database.0), options.clone());
            (Box::new(writer), Box::new(reader))
        })
    }
}

#[test]
fn postgres_conforms() {
    let options = Options {
        prune_every: std::time::Duration::ZERO,
        ..Options::default()
    };
    run_all(on_server(options), false);
}

#[test]
fn postgres_with_small_ranges_conforms() {
    run_all(on_server(small()), false);
}

#[test]
fn postgres_opened_after_each_commit_conforms() {
    run_all(on_server(small()), true);
}
