//! Partitions of the history: made ahead, dropped whole.

use drumtower_core::change::{ChangeSet, Prune, RunChange};
use drumtower_core::model::{
    Checkpoint, Retention, Run, RunId, RunState, SegmentId, SegmentSet, WallMs, id_floor,
};
use drumtower_store::conformance::all_runs;
use drumtower_store::conformance::sample::{self, job_id};
use drumtower_store::postgres::{Reader, Target, Writer};
use drumtower_store::{Error, PrunedRow, Read, RunFilter, Store};
use drumtower_testpg::Cluster;

use super::{begin, done, fresh, numbered, open, small};

const DAY_MS: i64 = 86_400_000;

fn sql(target: &Target, statement: &str) -> String {
    let url = target.to_string();
    let database = url.rsplit('/').next().expect("a name");
    let said = Cluster::shared().sql(
        database,
        &format!("SET search_path = drumtower; {statement}"),
    );
    said.expect("it is answered")
}

/// A run that was made at an instant and has ended.
fn run(at: WallMs, number: u64, retention: Retention, state: RunState) -> Run {
    let id = RunId(id_floor(at, SegmentId(1)) + number);
    let run = Run {
        id,
        created: at,
        due: at,
        retention,
        ..sample::run(0, number, job_id(1 + number % 3))
    };
    sample::ended(run, state, 40)
}

fn prune(now: WallMs) -> ChangeSet {
    ChangeSet {
        prune: Some(Prune { now, limit: 2 }),
        ..ChangeSet::default()
    }
}

fn opened() -> (Target, Writer, Reader) {
    let target = fresh();
    let (writer, reader) = open(&target, small());
    (target, writer, reader)
}

#[test]
fn a_partition_is_there_before_its_first_run_and_goes_whole() {
    let (target, mut writer, reader) = opened();
    let session = begin(&mut writer);
    let now = writer.clock().expect("there is a clock");
    let parts = "SELECT count(DISTINCT class), count(*) FROM history_partition";
    assert_eq!(
        sql(&target, parts),
        "4|8",
        "this one and the next of each class"
    );
    let runs = (0..30).map(|n| {
        let state = [RunState::Completed, RunState::Failed][(n % 3 / 2) as usize];
        let class = [Retention::Day, Retention::Keep][(n % 5 / 4) as usize];
        run(now, n, class, state)
    });
    let runs: Vec<Run> = runs.collect();
    let mut changes = sample::finished(runs.clone());
    let failed = runs[2].id;
    let body = Checkpoint {
        number: 1,
        body: vec![7; 10].into(),
    };
    changes.checkpoints.insert(failed, Some(body));
    done(writer.commit(&numbered(changes, session, 1)));
    for class in ["1d", "keep"] {
        let rest = format!("SELECT count(*) FROM history_{class}_rest");
        assert_eq!(sql(&target, &rest), "0", "they lie in a partition");
    }
    // Two rows at once could go, and the whole partition does.
    done(writer.commit(&numbered(prune(now.plus(DAY_MS)), session, 2)));
    assert_eq!(all_runs(&reader, &RunFilter::default(), 9).len(), 30);
    done(writer.commit(&numbered(
        prune(now.plus(DAY_MS + 2 * 4_194_304)),
        session,
        3,
    )));
    let left = all_runs(&reader, &RunFilter::default(), 9);
    assert_eq!(left.len(), 6);
    assert!(left.iter().all(|run| run.retention == Retention::Keep));
    let row = PrunedRow {
        namespace: Default::default(),
        completed: 16,
        failed: 8,
        cancelled: 0,
    };
    assert_eq!(reader.pruned().expect("they are read"), [row]);
    assert_eq!(reader.checkpoint(failed).expect("it is read"), None);
    assert_eq!(
        sql(
            &target,
            "SELECT count(*) FROM history_tally WHERE class = 0"
        ),
        "0"
    );
}

#[test]
fn a_run_that_ends_when_its_partition_is_gone_is_kept_and_goes_by_itself() {
    let (target, mut writer, reader) = opened();
    let session = begin(&mut writer);
    let now = writer.clock().expect("there is a clock");
    let late = run(now, 1, Retention::Day, RunState::Failed);
    let begun = Run {
        state: RunState::Pending,
        attempts: Vec::new(),
        transitions: late.transitions[..1].to_vec(),
        ..late.clone()
    };
    let insert = sample::runs([RunChange::Insert(Box::new(begun))]);
    done(writer.commit(&numbered(insert, session, 1)));
    let mut then = prune(now.plus(2 * DAY_MS));
    done(writer.commit(&numbered(then.clone(), session, 2)));
    let finish = sample::runs([RunChange::Finish(Box::new(late.clone()))]);
    done(writer.commit(&numbered(finish, session, 3)));
    assert_eq!(reader.run(late.id).expect("it is read"), Some(late.clone()));
    let of_job = RunFilter {
        job: Some(late.job),
        ..RunFilter::default()
    };
    assert_eq!(all_runs(&reader, &of_job, 5), std::slice::from_ref(&late));
    then.prune = prune(now.plus(2 * DAY_MS)).prune;
    done(writer.commit(&numbered(then, session, 4)));
    assert_eq!(reader.run(late.id).expect("it is read"), None);
    assert_eq!(reader.pruned().expect("they are read")[0].failed, 1);
    assert_eq!(sql(&target, "SELECT count(*) FROM history_tally"), "0");
}

#[test]
fn a_job_that_runs_rarely_is_listed_across_partitions_and_empty_parts() {
    let (_, mut writer, reader) = opened();
    let session = begin(&mut writer);
    let now = writer.clock().expect("there is a clock");
    let runs = (0..40u64).map(|n| {
        let at = now.plus(-(n as i64) * 5 * 3_600_000);
        let class = Retention::ALL[(n % 4) as usize];
        Run {
            job: job_id(n % 2),
            ..run(at, n, class, RunState::Completed)
        }
    });
    let runs: Vec<Run> = runs.collect();
    done(writer.commit(&numbered(sample::finished(runs.clone()), session, 1)));
    for job in [0, 1] {
        let filter = RunFilter {
            job: Some(job_id(job)),
            ..RunFilter::default()
        };
        let mut wanted: Vec<Run> = runs
            .iter()
            .filter(|run| run.job == job_id(job))
            .cloned()
            .collect();
        wanted.sort_by_key(|run| std::cmp::Reverse(run.id));
        for limit in [1, 7, 100] {
            assert_eq!(
                all_runs(&reader, &filter, limit),
                wanted,
                "in pages of {limit}"
            );
        }
    }
}

#[test]
fn retention_that_takes_too_long_holds_up_no_commit() {
    let (target, mut writer, reader) = opened();
    let session = begin(&mut writer);
    let now = writer.clock().expect("there is a clock");
    sql(
        &target,
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$;
         CREATE TRIGGER slow BEFORE DELETE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION slow()",
    );
    for seq in [1, 2] {
        let mut wanted =
            sample::runs([RunChange::Insert(Box::new(sample::run(0, seq, job_id(1))))]);
        wanted.prune = prune(now).prune;
        let wanted = numbered(wanted, session, seq);
        let first = writer.commit(&wanted);
        assert!(matches!(first, Err(Error::Busy(_))), "{first:?}");
        done(writer.commit(&wanted));
    }
    let active = reader.active_runs(&SegmentSet::ALL, None, 10);
    assert_eq!(active.expect("they are read").len(), 2);
}
