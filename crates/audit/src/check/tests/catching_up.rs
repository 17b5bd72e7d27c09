//! V10, and when a run may be due: what one decision makes up for, how old, and how many there are in all.

use drumtower_core::model::{Actor, Misfire, MisfirePolicy, Pause};
use drumtower_core::schedule::Bounds;

use super::breaks;
use super::world::{START, World, step};

fn policy(policy: MisfirePolicy) -> Misfire {
    Misfire {
        policy: Some(policy),
        ..Misfire::default()
    }
}

/// The runs of these steps were made by one decision, at the last of them and so much later.
fn together(world: &mut World, steps: std::ops::RangeInclusive<i64>, late_ms: i64) {
    let made = step(*steps.end()).plus(late_ms);
    for run in world.runs.iter_mut() {
        if run
            .nominal
            .is_some_and(|at| steps.clone().any(|number| step(number) == at))
        {
            run.created = made;
        }
    }
}

#[test]
fn a_policy_of_none_makes_nothing_late() {
    breaks(&[], |world| {
        world.spec().misfire = policy(MisfirePolicy::Skip);
        together(world, 3..=3, 9_999);
    });
    breaks(&["V10"], |world| {
        world.spec().misfire = policy(MisfirePolicy::Skip);
        together(world, 3..=3, 10_001);
    });
    breaks(&["V10"], |world| {
        world.spec().misfire = policy(MisfirePolicy::Skip);
        together(world, 2..=3, 0);
    });
    // The next time is an hour away: a minute is the grace.
    let hourly = |late| {
        move |world: &mut World| {
            world.restart(serde_json::json!([{"every": "1h"}]));
            world.spec().misfire = policy(MisfirePolicy::Skip);
            world.scheduled(360);
            world.fired_through = step(360);
            world.options.now = Some(step(370));
            together(world, 360..=360, late);
        }
    };
    breaks(&[], hourly(60_000));
    breaks(&["V10"], hourly(60_001));
}

#[test]
fn the_newest_policy_makes_one_up() {
    breaks(&[], |world| together(world, 3..=4, 5_000));
    breaks(&["V10"], |world| together(world, 2..=4, 0));
    breaks(&[], |world| together(world, 4..=4, 3_600_000));
    breaks(&["V10"], |world| together(world, 3..=4, 10_001));
}

#[test]
fn the_policy_of_all_makes_up_as_many_as_it_says() {
    let all = |steps: std::ops::RangeInclusive<i64>| {
        move |world: &mut World| {
            world.spec().misfire = Misfire {
                max: Some(2),
                ..policy(MisfirePolicy::All)
            };
            together(world, steps, 0);
        }
    };
    breaks(&[], all(2..=4));
    let report = breaks(&["V10"], all(1..=5));
    assert_eq!(report.counts.violations["V10"], 2);
    breaks(&[], |world| {
        world.spec().misfire = policy(MisfirePolicy::All);
        together(world, 1..=6, 600_000);
    });
}

#[test]
fn nothing_older_than_the_window_is_made() {
    let late = |ms| {
        move |world: &mut World| {
            world.spec().misfire.window = Some("15s".to_owned());
            together(world, 3..=3, ms);
        }
    };
    breaks(&[], late(15_000));
    breaks(&["V10"], late(15_001));
    breaks(&["V10"], |world| {
        world.spec().misfire = Misfire {
            window: Some("15s".to_owned()),
            ..policy(MisfirePolicy::All)
        };
        together(world, 3..=5, 0);
    });
}

#[test]
fn an_edit_in_the_same_millisecond_has_its_own_decision() {
    // The first version makes up for everything, the second for nothing older than a second.
    let edited = |window: &'static str| {
        move |world: &mut World| {
            world.spec().misfire = policy(MisfirePolicy::All);
            together(world, 2..=6, 0);
            let mut later = world.versions[0].clone();
            (later.version, later.created) = (2, step(6));
            later.spec.misfire.window = Some(window.to_owned());
            world.versions.push(later);
            (world.rows[0].version, world.rows[0].revision) = (2, 2);
            for run in world
                .runs
                .iter_mut()
                .filter(|run| run.nominal >= Some(step(5)))
            {
                run.job_version = 2;
            }
        }
    };
    breaks(&[], edited("10s"));
    breaks(&["V10"], edited("9s"));
}

#[test]
fn times_of_a_pause_have_a_policy_of_their_own() {
    let resumed = |revision| {
        move |world: &mut World| {
            world.rows[0].revision = revision;
            world.spec().on_resume = policy(MisfirePolicy::Latest);
            together(world, 2..=4, 0);
        }
    };
    breaks(&[], resumed(3));
    // Never paused.
    breaks(&["V10"], resumed(1));
}

#[test]
fn a_paused_job_makes_no_runs() {
    let paused = |world: &mut World| {
        let (at, actor) = (step(9).plus(5_000), Actor::new("ann"));
        world.rows[0].paused = Some(Pause { at, actor });
        world.rows[0].revision = 2;
    };
    breaks(&["V10"], paused);
    breaks(&[], |world| {
        paused(world);
        world.erase(7);
    });
    breaks(&[], |world| {
        paused(world);
        world.options.clock_step_ms = 60_000;
    });
}

#[test]
fn a_schedule_ends_with_its_last_run() {
    let bounded = |max| {
        move |world: &mut World| {
            world.spec().bounds = Some(Bounds {
                max_fires: Some(max),
                ..Bounds::default()
            });
            world.next_due = None;
            world.options.now = Some(step(60));
        }
    };
    breaks(&[], bounded(8));
    let report = breaks(&["V10"], bounded(6));
    assert_eq!(report.counts.violations["V10"], 2);
    // It may still make one.
    breaks(&["V1"], bounded(9));
    breaks(&["V1"], |world| {
        bounded(8)(world);
        world.erase(3);
        world.fires_off = 1;
    });
}

#[test]
fn a_schedule_counts_the_runs_it_made() {
    breaks(&[], |world| world.fires_off = 3);
    breaks(&["V8"], |world| world.fires_off = -1);
}

#[test]
fn a_run_is_due_at_its_time_or_within_the_jitter() {
    let jitter = |jitter: &'static str, late| {
        move |world: &mut World| {
            world.spec().jitter = Some(jitter.to_owned());
            world.put_off(4, late);
        }
    };
    breaks(&[], jitter("5s", 4_999));
    breaks(&["V4"], jitter("5s", 5_000));
    breaks(&[], jitter("1h", 9_999));
    breaks(&["V4"], jitter("1h", 10_000));
    breaks(&["V4"], |world| world.put_off(4, 1));
    let report = breaks(&["V3"], |world| world.put_off(4, -1));
    assert_eq!(report.early, 1);
}

#[test]
fn a_time_is_not_lost_before_it_is_due() {
    let pending = |jitter: Option<&str>| {
        let jitter = jitter.map(str::to_owned);
        move |world: &mut World| {
            world.spec().jitter = jitter;
            world.erase(7);
            world.fired_through = step(9);
            world.options.now = Some(step(11).plus(2_000));
        }
    };
    breaks(&["V1"], pending(None));
    breaks(&[], pending(Some("5s")));
}

#[test]
fn no_run_is_made_before_it_is_due() {
    let report = breaks(&["V3"], |world| {
        let due = world.runs[2].due;
        world.runs[2].created = due.plus(-1);
    });
    assert_eq!(report.early, 1);
}

#[test]
fn times_that_wait_for_their_turn_are_not_lost() {
    let spaced = |gap: Option<&str>| {
        let gap = gap.map(str::to_owned);
        move |world: &mut World| {
            world.restart(serde_json::json!([{"every": "10s"}]));
            world.spec().misfire = Misfire {
                gap,
                ..policy(MisfirePolicy::All)
            };
            world.options.now = Some(START.plus(600_000));
        }
    };
    breaks(&["V1"], spaced(None));
    breaks(&[], spaced(Some("1m")));
}
