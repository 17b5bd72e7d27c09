//! `bench wheel`: the timing wheel against other ways to keep timers.
//!
//! All of them carry the same timers in one process, in turn, round after round, so that a noisy machine is noisy to all
//! alike. A round inserts every timer, cancels half of them in random order and fires the rest. What counts is the CPU time
//! of the one thread that does it, and the median over the rounds.

mod subjects;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::machine;
use super::random::Random;
use crate::failure::{Failure, Result};
use crate::output::Output;
use subjects::{Delays, Heap, Ours, Timers, Tree};

/// Timers lie this far apart at most, in milliseconds: the near future that a wheel holds.
const SPREAD_MS: u64 = 10_000;

#[derive(Args, Debug)]
pub struct Wheel {
    /// How many timers are pending at once, one measurement for each number
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000000,10000000",
        value_name = "COUNT"
    )]
    timers: Vec<u32>,
    /// How often each is measured; the median counts
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: u32,
    #[command(flatten)]
    output: Output,
}

/// What one round costs: nanoseconds an operation, bytes a pending timer.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cost {
    insert_ns: f64,
    cancel_ns: f64,
    fire_ns: f64,
    /// Growth of the process's resident memory; `None` where the system does not tell.
    bytes_per_timer: Option<f64>,
}

const SUBJECTS: [&str; 4] = ["wheel", "delay_queue", "binary_heap", "btree_map"];

/// The same work for every subject.
struct Workload {
    deadlines: Vec<u64>,
    /// Which timers are cancelled, in this order.
    cancelled: Vec<u32>,
    end: u64,
}

impl Workload {
    fn new(count: u32, random: &mut Random) -> Self {
        // The real clock must not reach the first deadline while timers are still inserted and cancelled.
        let lead = 500 + u64::from(count) / 1000;
        let deadlines = (0..count).map(|_| lead + random.below(SPREAD_MS)).collect();
        let mut cancelled: Vec<u32> = (0..count).collect();
        random.shuffle(&mut cancelled);
        cancelled.truncate(count as usize / 2);
        Self {
            deadlines,
            cancelled,
            end: lead + SPREAD_MS,
        }
    }

    fn round<T: Timers>(&self, timers: T) -> Result<Cost> {
        let mut timers = timers;
        machine::return_free_memory();
        let before = machine::resident_bytes();
        let mut keys: Vec<T::Key> = Vec::with_capacity(self.deadlines.len());
        let begun = machine::thread_cpu_ns();
        for (value, at) in self.deadlines.iter().enumerate() {
            keys.push(timers.insert(*at, value as u64));
        }
        let insert_ns = per(begun, self.deadlines.len());
        machine::return_free_memory();
        let grown = before
            .zip(machine::resident_bytes())
            .map(|(before, after)| after.saturating_sub(before));
        let begun = machine::thread_cpu_ns();
        for index in &self.cancelled {
            timers.cancel(keys[*index as usize].clone());
        }
        let cancel_ns = per(begun, self.cancelled.len());
        timers.wait(self.end);
        let begun = machine::thread_cpu_ns();
        let fired = timers.fire(self.end);
        let left = self.deadlines.len() - self.cancelled.len();
        let fire_ns = per(begun, left);
        if fired != left as u64 {
            return Err(Failure::failed(format!(
                "{left} timers were due and {fired} fired"
            )));
        }
        // The keys are the caller's, not the timers'.
        let of_keys = (keys.len() * size_of::<T::Key>()) as u64;
        let bytes_per_timer =
            grown.map(|grown| grown.saturating_sub(of_keys) as f64 / keys.len() as f64);
        Ok(Cost {
            insert_ns,
            cancel_ns,
            fire_ns,
            bytes_per_timer,
        })
    }

    fn round_of(&self, subject: &str) -> Result<Cost> {
        match subject {
            "wheel" => self.round(Ours::new()),
            "binary_heap" => self.round(Heap::default()),
            "btree_map" => self.round(Tree::default()),
            _ => self.round(
                Delays::new().map_err(|error| Failure::failed(format!("no runtime: {error}")))?,
            ),
        }
    }
}

fn per(begun_ns: u64, count: usize) -> f64 {
    machine::thread_cpu_ns().saturating_sub(begun_ns) as f64 / count.max(1) as f64
}

impl Wheel {
    pub fn run(self) -> Result<()> {
        if self.rounds == 0 || self.timers.iter().any(|count| *count < 2) {
            return Err(Failure::usage(
                "--rounds must be at least 1 and --timers at least 2",
            ));
        }
        let mut random = Random::new(1);
        let mut measured = Vec::new();
        for count in &self.timers {
            measured.push(self.measure(*count, &mut random)?);
        }
        let value = json!({
            "scenario": "wheel",
            "rounds": self.rounds,
            "spread_ms": SPREAD_MS,
            "measured": measured,
            "machine": machine::facts(None),
        });
        self.output.one(&value, |_| words(&value))
    }

    fn measure(&self, count: u32, random: &mut Random) -> Result<Value> {
        let workload = Workload::new(count, random);
        let mut rounds: Vec<Vec<Cost>> = SUBJECTS.iter().map(|_| Vec::new()).collect();
        for round in 0..self.rounds {
            // Whoever comes first meets a colder cache: the order turns with the rounds.
            for turn in 0..SUBJECTS.len() {
                let subject = (turn + round as usize) % SUBJECTS.len();
                super::progress(|| {
                    format!(
                        "{count} timers, round {} of {}: {}",
                        round + 1,
                        self.rounds,
                        SUBJECTS[subject]
                    )
                });
                rounds[subject].push(workload.round_of(SUBJECTS[subject])?);
            }
        }
        super::progress_done();
        let costs: Vec<Cost> = rounds.iter().map(|rounds| median_cost(rounds)).collect();
        let rows: Vec<Value> = SUBJECTS
            .iter()
            .zip(&costs)
            .map(|(name, cost)| row(name, cost, &costs[0]))
            .collect();
        Ok(json!({ "timers": count, "subjects": rows }))
    }
}

/// A row, with how many times the wheel's cost it is.
fn row(name: &str, cost: &Cost, wheel: &Cost) -> Value {
    let times = |cost: f64, wheel: f64| (cost / wheel * 100.0).round() / 100.0;
    let memory = cost
        .bytes_per_timer
        .zip(wheel.bytes_per_timer)
        .map(|(cost, wheel)| times(cost, wheel));
    json!({
        "name": name,
        "insert_ns": tenth(cost.insert_ns),
        "cancel_ns": tenth(cost.cancel_ns),
        "fire_ns": tenth(cost.fire_ns),
        "bytes_per_timer": cost.bytes_per_timer.map(tenth),
        "times_the_wheel": {
            "insert": times(cost.insert_ns, wheel.insert_ns),
            "cancel": times(cost.cancel_ns, wheel.cancel_ns),
            "fire": times(cost.fire_ns, wheel.fire_ns),
            "bytes": memory,
        },
    })
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn median_cost(rounds: &[Cost]) -> Cost {
    let of = |cost: fn(&Cost) -> f64| median(rounds.iter().map(cost).collect());
    let bytes: Option<Vec<f64>> = rounds.iter().map(|round| round.bytes_per_timer).collect();
    Cost {
        insert_ns: of(|cost| cost.insert_ns),
        cancel_ns: of(|cost| cost.cancel_ns),
        fire_ns: of(|cost| cost.fire_ns),
        bytes_per_timer: bytes.map(median),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn words(value: &Value) -> String {
    let mut text = String::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for measured in list(&value["measured"]) {
        text.push_str(&format!("{} timers\n", measured["timers"]));
        text.push_str(&format!(
            "  {:<12} {:>10} {:>10} {:>10} {:>10}\n",
            "", "insert ns", "cancel ns", "fire ns", "bytes"
        ));
        for row in list(&measured["subjects"]) {
            let cell = |field: &str| {
                row[field]
                    .as_f64()
                    .map_or("-".to_owned(), |number| format!("{number:.1}"))
            };
            text.push_str(&format!(
                "  {:<12} {:>10} {:>10} {:>10} {:>10}\n",
                row["name"].as_str().unwrap_or_default(),
                cell("insert_ns"),
                cell("cancel_ns"),
                cell("fire_ns"),
                cell("bytes_per_timer"),
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_fires_exactly_what_was_not_cancelled() {
        let mut workload = Workload::new(1000, &mut Random::new(7));
        // The real clock is waited for: keep the deadlines near.
        workload.deadlines.iter_mut().for_each(|at| *at %= 50);
        workload.end = 50;
        for subject in SUBJECTS {
            workload
                .round_of(subject)
                .unwrap_or_else(|failure| panic!("{subject}: {failure}"));
        }
    }

    #[test]
    fn a_median_is_the_one_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
    }
}
