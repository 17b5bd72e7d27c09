//! A database that an older server left behind is brought up to date when a newer one opens it.

use drumtower_core::model::WallMs;
use drumtower_store::conformance::sample;
use drumtower_store::postgres;
use drumtower_store::{Error, Read, Store};
use drumtower_testpg::Cluster;

use super::{begin, done, inserted, numbered, open, small, target};

#[test]
fn a_store_of_version_1_is_upgraded_with_what_is_in_it() {
    let cluster = Cluster::shared();
    let url = cluster.database().expect("a database");
    let name = url.rsplit('/').next().expect("a name");
    let target = target(&url);
    let (mut writer, _) = open(&target, small());
    let session = begin(&mut writer);
    let run = sample::run(0, 1, sample::job_id(1));
    done(writer.commit(&numbered(inserted(std::slice::from_ref(&run)), session, 1)));
    drop(writer);
    // What versions 2 and 3 added, taken away.
    let back =
        "ALTER TABLE drumtower.session DROP COLUMN home, DROP COLUMN took, DROP COLUMN lease;
                DROP TABLE drumtower.tie;
                ALTER TABLE drumtower.meta DROP COLUMN definitions;
                DROP TABLE drumtower.follower, drumtower.waits, drumtower.ending;
                UPDATE drumtower.meta SET schema_version = 1, oldest_server = 1";
    cluster.sql(name, back).expect("it is as it was");
    // Whoever works on it would be broken under its feet.
    let refused = postgres::migrate(&target, None).expect_err("it is live");
    let told = refused.to_string();
    assert!(told.contains("stop `server-1` first"), "{told}");
    let end = "UPDATE drumtower.session SET expires = 0";
    cluster.sql(name, end).expect("its session has ended");
    let migrated = postgres::migrate(&target, None).expect("it is migrated");
    assert_eq!((migrated.from, migrated.to), (1, postgres::KNOWN));
    let (mut writer, reader) = open(&target, small());
    let old = writer.session(session).expect("it is read").expect("a row");
    assert_eq!((old.took, old.member.home), (None, None));
    assert_eq!(reader.run(run.id).expect("it is read"), Some(run));
    assert_eq!(reader.definitions().expect("it is read"), 0);
    assert_eq!(reader.tenures(WallMs(0)).expect("they are read"), []);
    // The session of before was not revoked: whoever wakes up too late is told by the version, not by a refused commit.
    done(writer.commit(&numbered(Default::default(), session, 2)));
}

#[test]
fn whoever_has_a_store_open_sees_that_it_became_too_new() {
    let cluster = Cluster::shared();
    let url = cluster.database().expect("a database");
    let name = url.rsplit('/').next().expect("a name");
    let (_writer, reader) = open(&target(&url), small());
    reader
        .check_version()
        .expect("it is as this program made it");
    let set = |oldest: u32| {
        let sql = format!("UPDATE drumtower.meta SET oldest_server = {oldest}");
        cluster.sql(name, &sql).expect("it is set");
    };
    set(99);
    let refused = reader.check_version();
    assert!(
        matches!(refused, Err(Error::Newer { found: 99, known }) if known == postgres::KNOWN),
        "{refused:?}"
    );
    set(1);
    reader
        .check_version()
        .expect("older servers may write to it");
}
