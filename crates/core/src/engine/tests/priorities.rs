//! Who goes first when there is more to do than workers can take.

use serde_json::json;

use super::world::*;
use crate::model::*;

fn urgent(name: &str, priority: u32) -> serde_json::Value {
    let mut spec = noop(name);
    spec["priority"] = json!(priority);
    spec["schedule"] = json!([{"at": "2027-01-15T08:01:00Z"}]);
    spec
}

fn order(world: &World) -> Vec<u32> {
    let all = world.tables.active.values();
    let mut given: Vec<(Fence, u32)> = all
        .filter_map(|run| {
            let spec = &world.tables.versions[&(run.job, 1)].spec;
            Some((run.attempts.last()?.fence, spec.priority))
        })
        .collect();
    given.sort_unstable();
    given.into_iter().map(|(_, priority)| priority).collect()
}

#[test]
fn runs_due_at_once_are_given_out_in_the_order_of_priority() {
    let mut world = World::new();
    for n in 0..60 {
        world.put(urgent(&format!("j{n}"), n % 10));
    }
    world.tick_through(59_000, 1_000);
    for beat in 0..12 {
        let stream = beat + 1;
        world.worker(stream, stream, 1, Vec::new(), beat + 1);
    }
    world.pass(1_000);
    world.commit();
    let mut expected = vec![9; 6];
    expected.extend([8; 6]);
    let mut given = order(&world);
    given.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(
        given, expected,
        "twelve places go to the twelve most urgent"
    );
}

#[test]
fn a_storm_fires_the_most_urgent_first() {
    let mut world = World::new();
    for n in 0..3_000 {
        world.put(urgent(&format!("j{n}"), (n * 7) % 10));
    }
    world.tick_through(60_000, 10_000);
    let mut runs: Vec<&Run> = world.tables.active.values().collect();
    assert_eq!(runs.len(), 3_000);
    runs.sort_by_key(|run| run.created);
    let by_segment = |run: &&Run| run.id.segment();
    // Ids grow within a segment in the order of firing.
    runs.sort_by_key(|run| run.id);
    let mut last = std::collections::BTreeMap::new();
    for run in runs {
        let priority = world.tables.versions[&(run.job, 1)].spec.priority;
        let before = last.insert(by_segment(&run), priority);
        assert!(before.is_none_or(|before| before >= priority));
    }
}
