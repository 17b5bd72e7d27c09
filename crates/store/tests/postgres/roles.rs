//! Who may do what, and what a program says of a schema that is not its own.

use drumtower_store::postgres::{self, Options, Target};
use drumtower_store::{Error, Read};
use drumtower_testpg::Cluster;

use super::{begin, done, numbered, small, target};
use drumtower_core::change::ChangeSet;
use drumtower_store::Store;

fn database(url: &str) -> &str {
    url.rsplit('/').next().expect("a name")
}

#[test]
fn one_role_makes_the_tables_and_another_works_on_them() {
    let cluster = Cluster::shared();
    let url = cluster.database().expect("a database");
    let role = format!("runner_{}", database(&url));
    let made = format!("CREATE ROLE {role} LOGIN PASSWORD 'run'");
    cluster.sql(database(&url), &made).expect("a role");
    let owner = target(&url);
    let runner: Target = target(&cluster.url_at(cluster.port(), &role, "run", database(&url)));
    let refused = postgres::open(&runner, small()).err().expect("it may not");
    let said = refused.to_string();
    assert!(said.contains("drumtower store migrate"), "{said}");
    assert!(!said.contains(":run@"), "{said}");
    let migrated = postgres::migrate(&owner, Some(&role)).expect("it is migrated");
    assert_eq!((migrated.from, migrated.to), (0, postgres::KNOWN));
    let again = postgres::migrate(&owner, Some(&role)).expect("there is nothing to do");
    assert_eq!((again.from, again.to), (postgres::KNOWN, postgres::KNOWN));
    let (mut writer, reader) = postgres::open(&runner, small()).expect("the store opens");
    let session = begin(&mut writer);
    done(writer.commit(&numbered(ChangeSet::default(), session, 1)));
    assert!(reader.meta().is_ok());
    let partitions = "SELECT count(*) FROM drumtower.history_partition";
    let partitions = cluster.sql(database(&url), partitions).expect("a count");
    assert_eq!(partitions, "8", "made by the owner's function");
}

#[test]
fn a_wrong_password_is_told_without_repeating_it() {
    let cluster = Cluster::shared();
    let url = cluster.database().expect("a database");
    let role = format!("guard_{}", database(&url));
    let made = format!("CREATE ROLE {role} LOGIN PASSWORD 'right'");
    cluster.sql(database(&url), &made).expect("a role");
    let wrong = target(&cluster.url_at(cluster.port(), &role, "geheim", database(&url)));
    let said = postgres::open(&wrong, small())
        .err()
        .expect("it is refused");
    let said = said.to_string();
    assert!(said.contains("password authentication failed"), "{said}");
    assert!(said.contains(&role) && !said.contains("geheim"), "{said}");
}

#[test]
fn a_newer_schema_is_left_alone_unless_it_allows_older_servers() {
    let cluster = Cluster::shared();
    let url = cluster.database().expect("a database");
    let target = target(&url);
    drop(postgres::open(&target, Options::default()).expect("the store opens"));
    let set = |oldest: u32| {
        let sql =
            format!("UPDATE drumtower.meta SET schema_version = 99, oldest_server = {oldest}");
        cluster.sql(database(&url), &sql).expect("it is set");
    };
    set(99);
    let refused = postgres::open(&target, Options::default()).err();
    assert!(
        matches!(refused, Some(Error::Newer { found: 99, known }) if known == postgres::KNOWN),
        "{refused:?}"
    );
    set(1);
    assert!(postgres::open(&target, Options::default()).is_ok());
}

#[test]
fn a_look_tells_version_delay_and_clock_and_changes_nothing() {
    let target = super::fresh();
    let look = postgres::look(&target).expect("it answers");
    assert_eq!(look.schema_version, None);
    assert!(
        look.version.starts_with(char::is_numeric),
        "{}",
        look.version
    );
    assert!(look.ahead_ms.abs() < 60_000 && !look.encrypted);
    drop(postgres::open(&target, Options::default()).expect("the store opens"));
    let look = postgres::look(&target).expect("it answers");
    assert_eq!(look.schema_version, Some(postgres::KNOWN));
}
