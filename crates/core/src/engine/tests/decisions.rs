//! Which pending times make runs, against the same rules applied to a plain list of them.

use proptest::prelude::*;
use serde_json::json;

use super::super::decide::{COUNT_CAP, Decision, Fate, Pending};
use crate::model::*;
use crate::schedule::{AnyDay, Schedule};

#[derive(Clone, Debug)]
struct Case {
    period: i64,
    jitter: i64,
    /// How many times lie above the cursor, and how many of them in a pause.
    pending: i64,
    paused: i64,
    /// How far past the last of them it is.
    late: i64,
    misfire: CatchUp,
    on_resume: CatchUp,
}

fn catch_up() -> impl Strategy<Value = CatchUp> {
    use MisfirePolicy::{All, Latest, Skip};
    let policy = prop_oneof![Just(Skip), Just(Latest), Just(All)];
    (
        policy,
        0_i64..200_000,
        1_u32..8,
        prop_oneof![Just(0), 1_i64..5_000],
    )
        .prop_map(|(policy, window_ms, max, gap_ms)| CatchUp {
            policy,
            window_ms,
            max,
            gap_ms,
        })
}

fn case() -> impl Strategy<Value = Case> {
    let times = (500_i64..90_000, 0_i64..60_000, 1_i64..30, 0_i64..30);
    (times, 0_i64..90_000, catch_up(), catch_up()).prop_map(
        |((period, jitter, pending, paused), late, misfire, on_resume)| Case {
            period,
            jitter,
            pending,
            paused: paused.min(pending),
            late: late % period,
            misfire,
            on_resume,
        },
    )
}

fn compile(case: &Case) -> Schedule {
    let spec = json!({"kind": "Job", "name": "a", "task": {"handler": {"name": "noop"}},
        "schedule": [{"every": format!("{}ms", case.period)}], "jitter": format!("{}ms", case.jitter.max(1))});
    let spec: JobSpec = serde_json::from_value(spec).expect("a manifest");
    spec.compiled_schedule(&AnyDay)
        .expect("valid")
        .expect("some")
}

const JOB: JobId = JobId(77);

/// The rules once more: what each pending time comes to, as (time, made a run, reason otherwise).
fn plainly(
    case: &Case,
    schedule: &Schedule,
    times: &[i64],
    paused_through: i64,
    now: i64,
) -> Decision {
    let due = |at: i64| schedule.due_of(JOB.0, at);
    let due_times: Vec<i64> = times.iter().copied().filter(|at| due(*at) <= now).collect();
    let mut decision = Decision::default();
    let (of_pause, missed): (Vec<i64>, Vec<i64>) =
        due_times.iter().partition(|at| **at <= paused_through);
    let newest_on_time = |at: i64| now - due(at) <= case.period.min(60_000);
    for (group, policy, reason) in [
        (of_pause, case.on_resume, UnfiredReason::Paused),
        (missed, case.misfire, UnfiredReason::Misfire),
    ] {
        if group.is_empty() || decision.wait_until.is_some() {
            continue;
        }
        let newest = group[group.len() - 1];
        let fits = |rank: usize, at: i64| {
            let counted = match policy.policy {
                MisfirePolicy::Skip => false,
                MisfirePolicy::Latest => rank == 0,
                MisfirePolicy::All => rank < policy.max as usize,
            };
            let on_time = reason == UnfiredReason::Misfire && at == newest && newest_on_time(at);
            counted && now - due(at) <= policy.window_ms || on_time
        };
        let kept: Vec<i64> = (0..group.len())
            .filter(|index| fits(group.len() - 1 - index, group[*index]))
            .map(|index| group[index])
            .collect();
        let dropped: Vec<i64> = group
            .iter()
            .copied()
            .filter(|at| !kept.contains(at))
            .collect();
        if let (Some(first), Some(last)) = (dropped.first(), dropped.last()) {
            decision.fates.push(Fate::Unfired {
                first: WallMs(*first),
                last: WallMs(*last),
                count: (dropped.len() as u64).min(COUNT_CAP),
                reason,
            });
        }
        let spaced = policy.gap_ms > 0 && kept.len() > 1;
        let runs = if spaced { &kept[..1] } else { &kept[..] };
        decision
            .fates
            .extend(runs.iter().map(|at| Fate::Run(WallMs(*at))));
        decision.wait_until = spaced.then(|| WallMs(now + policy.gap_ms));
    }
    decision
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decisions_follow_the_rules(case in case()) {
        let schedule = compile(&case);
        let first = (1_800_000_000_000 / case.period + 1) * case.period;
        let times: Vec<i64> = (0..case.pending).map(|n| first + n * case.period).collect();
        let newest = times[times.len() - 1];
        let now = newest + case.late;
        let paused_through = first - 1 + case.paused * case.period;
        let pending = Pending {
            job: JOB,
            schedule: &schedule,
            oldest: WallMs(first),
            paused_through: Some(WallMs(paused_through)),
            misfire: case.misfire,
            on_resume: case.on_resume,
            now: WallMs(now),
        };
        prop_assert_eq!(pending.decide(), plainly(&case, &schedule, &times, paused_through, now));
    }
}
