//! Starts a PostgreSQL server to try things on, prints the address of an empty database, and ends with its standard input:
//! `cargo run -p drumtower-testpg --example cluster -- [DIRECTORY]`

use std::io::Read;
use std::path::PathBuf;

use drumtower_testpg::{Cluster, Purpose};

fn main() {
    let place = std::env::args_os().nth(1).map(PathBuf::from);
    let place = place.unwrap_or_else(std::env::temp_dir);
    let cluster = Cluster::start_below(&place, Purpose::Bench, &[]).expect("a server");
    println!("{}", cluster.database().expect("a database"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
