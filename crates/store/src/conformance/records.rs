//! Settings, queues, rates, locks and the audit log.

use drumtower_core::change::{ChangeSet, Prune};
use drumtower_core::model::{
    Actor, AuditAction, AuditEntry, AuditId, AuditKind, AuditObject, Change, DrainRow, Fence,
    GateKey, JsonText, LockName, LockRef, LockRow, Pause, QueueKind, QueueName, QueueRow,
    QueueSpec, RateRow, SettingKey, SettingName, SettingRow, WallMs, WorkerName, WorkerRef,
};

use super::World;
use super::sample::{T0, namespace};
use crate::AuditFilter;

pub fn settings(world: &mut World) {
    let setting = |of: Option<&str>, revision, value: Option<&str>| SettingRow {
        key: SettingKey {
            namespace: of.map(namespace),
            name: SettingName::Notify,
        },
        revision,
        value: value.map(|text| JsonText::parse("value", text).expect("JSON")),
        updated: T0,
        actor: Actor::new("admin"),
    };
    let set = |rows: Vec<SettingRow>| ChangeSet {
        settings: rows.into_iter().map(|row| (row.key.clone(), row)).collect(),
        ..ChangeSet::default()
    };
    world.commit(set(vec![
        setting(Some("b"), 1, Some("{}")),
        setting(None, 1, Some(r#"{"rules":[]}"#)),
    ]));
    world.commit(set(vec![
        setting(Some("b"), 2, None),
        setting(Some("a"), 1, Some("{}")),
    ]));
    assert_eq!(
        world.read().settings().expect("they are read"),
        [
            setting(None, 1, Some(r#"{"rules":[]}"#)),
            setting(Some("a"), 1, Some("{}")),
            setting(Some("b"), 2, None),
        ]
    );
}

pub fn queues(world: &mut World) {
    let queue = |of: &str, name: &str, revision| QueueRow {
        spec: QueueSpec {
            kind: QueueKind::Queue,
            name: QueueName::new(name).expect("a name"),
            namespace: namespace(of),
            description: "ä".to_owned(),
            concurrency: Some(3),
            key: Some("/customer".to_owned()),
            per_key: Some(1),
            rate: Some("100/1m".to_owned()),
            burst: None,
        },
        revision,
        paused: Some(Pause {
            at: T0,
            actor: Actor::new("ann"),
        }),
        deleted: revision == 2,
        created: T0,
        updated: T0.plus(1),
        actor: Actor::new("bob"),
    };
    let set = |rows: &[QueueRow]| ChangeSet {
        queues: rows.iter().map(|row| (row.queue(), row.clone())).collect(),
        ..ChangeSet::default()
    };
    world.commit(set(&[queue("b", "x", 1), queue("a", "y", 1)]));
    world.commit(set(&[queue("b", "x", 2), queue("a", "x", 1)]));
    assert_eq!(
        world.read().queues().expect("they are read"),
        [queue("a", "x", 1), queue("a", "y", 1), queue("b", "x", 2)]
    );
    let mut wrong = set(&[queue("a", "x", 2)]);
    wrong
        .queues
        .insert(queue("b", "z", 1).queue(), queue("b", "x", 3));
    world.refuse(wrong);
}

pub fn rates(world: &mut World) {
    let gate = |text: &str| GateKey::parse(text).expect("a gate");
    let row = |reached_ns| RateRow {
        reached_ns,
        span_ns: i64::MAX,
    };
    let set = |rates: Vec<(GateKey, Option<RateRow>)>| ChangeSet {
        rates: rates.into_iter().collect(),
        ..ChangeSet::default()
    };
    let (one, two, three) = (gate("@job/9"), gate("@job/10"), gate("@queue/a/b"));
    world.commit(set(vec![
        (one.clone(), Some(row(-1))),
        (two.clone(), Some(row(2))),
        (three.clone(), Some(row(i64::MAX))),
    ]));
    world.commit(set(vec![
        (one.clone(), Some(row(5))),
        (two, None),
        (gate("@job/11"), None),
    ]));
    assert_eq!(
        world.read().rates().expect("they are read"),
        [(one, row(5)), (three, row(i64::MAX))]
    );
}

pub fn locks(world: &mut World) {
    let lock = |of: &str, name: &str, fence| LockRow {
        lock: LockRef {
            namespace: namespace(of),
            name: LockName::new(name).expect("a name"),
        },
        owner: "a holder".to_owned(),
        fence: Fence(fence),
        ttl_ms: 30_000,
        acquired: T0,
        actor: Actor::new("operator"),
    };
    let taken = |rows: &[LockRow]| ChangeSet {
        locks: rows
            .iter()
            .map(|row| (row.lock.clone(), Some(row.clone())))
            .collect(),
        ..ChangeSet::default()
    };
    let (one, two, other) = (lock("a", "x", 1), lock("a", "y", 2), lock("b", "x", 3));
    world.commit(taken(&[one.clone(), two.clone(), other.clone()]));
    let again = lock("a", "x", 4);
    world.commit(taken(std::slice::from_ref(&again)));
    world.commit(ChangeSet {
        locks: [two.lock.clone(), lock("c", "never", 9).lock]
            .map(|lock| (lock, None))
            .into(),
        ..ChangeSet::default()
    });
    let read = world.read();
    let page = |of: Option<&str>, after: Option<&LockRef>, limit| {
        let of = of.map(namespace);
        read.locks(of.as_ref(), after, limit)
            .expect("they are read")
    };
    assert_eq!(page(None, None, 10), [again.clone(), other.clone()]);
    let (first, second) = (std::slice::from_ref(&again), std::slice::from_ref(&other));
    assert_eq!(page(None, None, 1), first);
    assert_eq!(page(None, Some(&again.lock), 10), second);
    assert_eq!(page(Some("a"), None, 10), first);
    assert_eq!(read.lock(&again.lock).expect("it is read"), Some(again));
    assert_eq!(read.lock(&two.lock).expect("it is read"), None);
}

pub fn drains(world: &mut World) {
    let drain = |name: &str, of: Option<&str>, deadline| DrainRow {
        worker: WorkerRef {
            name: WorkerName::new(name).expect("a name"),
            namespace: of.map(namespace),
        },
        since: T0,
        actor: Actor::new("operator"),
        deadline,
        forced: None,
    };
    let begun = |rows: &[DrainRow]| ChangeSet {
        drains: rows
            .iter()
            .map(|row| (row.worker.clone(), Some(row.clone())))
            .collect(),
        ..ChangeSet::default()
    };
    let rows = [
        drain("b", None, None),
        drain("a", Some("x"), None),
        drain("a", None, Some(T0.plus(1))),
    ];
    world.commit(begun(&rows));
    let mut forced = rows[2].clone();
    forced.forced = Some(T0.plus(2));
    world.commit(begun(std::slice::from_ref(&forced)));
    let all = |world: &World| world.read().drains().expect("they are read");
    let [b, of_x, _] = rows;
    assert_eq!(all(world), [forced, of_x.clone(), b.clone()]);
    world.commit(ChangeSet {
        drains: [drain("a", None, None).worker, drain("c", None, None).worker]
            .map(|workers| (workers, None))
            .into(),
        ..ChangeSet::default()
    });
    assert_eq!(all(world), [of_x, b.clone()]);
    world.refuse(ChangeSet {
        drains: [(drain("d", None, None).worker, Some(b))].into(),
        ..ChangeSet::default()
    });
}

const MINUTE_MS: i64 = 60_000;

fn entry(number: i64, name: &str) -> AuditEntry {
    let at = T0.plus(number * MINUTE_MS);
    let value = |text| JsonText::parse("value", text).expect("JSON");
    AuditEntry {
        id: AuditId(AuditId::first_at(at).0 + 7),
        at,
        actor: Actor::new(if number % 2 == 0 { "ann" } else { "bob" }),
        action: AuditAction::ALL[number as usize % 3],
        object: AuditObject {
            kind: AuditKind::ALL[number as usize % 2],
            namespace: (number % 4 != 0).then(|| namespace("team-a")),
            name: name.to_owned(),
        },
        version: Some(number as u64),
        changes: vec![Change {
            field: "weight".to_owned(),
            before: None,
            after: Some(value("[1, \"ä\"]")),
        }],
    }
}

fn set(entries: &[AuditEntry]) -> ChangeSet {
    ChangeSet {
        audit: entries
            .iter()
            .map(|entry| (entry.id, entry.clone()))
            .collect(),
        ..ChangeSet::default()
    }
}

pub fn audit(world: &mut World) {
    let all: Vec<AuditEntry> = (0..12)
        .map(|n| entry(n, if n % 3 == 0 { "x" } else { "y" }))
        .collect();
    world.commit(set(&all[..5]));
    world.commit(set(&all[5..]));
    let listed = |filter: &AuditFilter, limit: usize| {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = world
                .read()
                .audit(filter, before, limit)
                .expect("it is read");
            assert!(page.entries.len() <= limit);
            found.extend(page.entries);
            match page.next {
                Some(next) => before = Some(next),
                None => return found,
            }
        }
    };
    let newest: Vec<AuditEntry> = all.iter().rev().cloned().collect();
    for limit in [1, 5, 12, 100] {
        assert_eq!(listed(&AuditFilter::default(), limit), newest);
    }
    let only = |takes: &dyn Fn(&AuditEntry) -> bool| -> Vec<AuditEntry> {
        newest
            .iter()
            .filter(|entry| takes(entry))
            .cloned()
            .collect()
    };
    let filter = AuditFilter {
        name: Some("x".to_owned()),
        ..AuditFilter::default()
    };
    assert_eq!(listed(&filter, 3), only(&|it| it.object.name == "x"));
    let filter = AuditFilter {
        namespace: Some(namespace("team-a")),
        kind: Some(AuditKind::Calendar),
        actor: Some("bob".to_owned()),
        ..AuditFilter::default()
    };
    assert_eq!(listed(&filter, 2).len(), 6);
    let filter = AuditFilter {
        action: Some(AuditAction::Changed),
        since: Some(T0.plus(4 * MINUTE_MS)),
        until: Some(T0.plus(10 * MINUTE_MS)),
        ..AuditFilter::default()
    };
    let within = |at: WallMs| at >= T0.plus(4 * MINUTE_MS) && at < T0.plus(10 * MINUTE_MS);
    let expected = only(&|it| it.action == AuditAction::Changed && within(it.at));
    assert_eq!(expected.len(), 2);
    assert_eq!(listed(&filter, 2), expected);
    world.refuse(set(&all[3..4]));
}

pub fn old_entries_go(world: &mut World) {
    let all: Vec<AuditEntry> = (0..5).map(|n| entry(n, "x")).collect();
    world.commit(set(&all));
    let prune = |minutes: i64, limit| ChangeSet {
        prune: Some(Prune {
            now: T0.plus(AuditEntry::KEPT_MS + minutes * MINUTE_MS),
            limit,
        }),
        ..ChangeSet::default()
    };
    let left = |world: &World| {
        let page = world.read().audit(&AuditFilter::default(), None, 100);
        page.expect("it is read").entries.len()
    };
    world.commit(prune(3, 2));
    assert_eq!(left(world), 3, "no more than the limit at once");
    world.commit(prune(3, 2));
    assert_eq!(left(world), 2, "those that are young enough stay");
}
