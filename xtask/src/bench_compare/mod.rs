//! Two builds of `drumtower`, measured in turn on this machine: is the working tree as fast as a commit before it?
//!
//! One figure after the other would compare two moods of a machine. Here each round measures both builds back to back, the
//! first of a round is the second of the next (A B, B A, A B, …), and what is compared is the ratio within each round: what
//! slows down a whole round slows down both. The median of the ratios is the answer, and its spread says how much it is
//! worth.
//!
//! The load offers more than the machine can take unless told otherwise, so that throughput is the server's own.

mod builds;
mod figures;
mod options;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use builds::Builds;
use figures::{Figures, Round};
pub use options::Options;

/// Which of the two builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

impl Side {
    /// Who is measured first and second in a round; the first round is number 0.
    fn order(round: u32) -> [Self; 2] {
        match round.is_multiple_of(2) {
            true => [Self::Old, Self::New],
            false => [Self::New, Self::Old],
        }
    }
}

pub fn run(options: &Options) -> Result<()> {
    let builds = Builds::make(&options.commit)?;
    let mut rounds = Vec::new();
    for number in 0..options.rounds {
        rounds.push(measure_round(options, &builds, number)?);
    }
    eprintln!("\n{}", figures::table(&builds.commit, &rounds));
    let summary = figures::summary(&rounds);
    let document = json!({
        "old": builds.commit,
        "new": builds.tree,
        "options": options.bench_arguments(None),
        "rounds": rounds.iter().map(Round::value).collect::<Vec<Value>>(),
        "ratio": summary,
    });
    println!("{}", serde_json::to_string_pretty(&document)?);
    verdict(options.at_least, figures::throughput_ratio(&rounds))
}

fn verdict(at_least: Option<f64>, ratio: f64) -> Result<()> {
    match at_least {
        Some(least) if ratio < least => {
            bail!("the median ratio of throughput is {ratio:.3}, and --at-least asks for {least}")
        }
        _ => Ok(()),
    }
}

fn measure_round(options: &Options, builds: &Builds, number: u32) -> Result<Round> {
    let mut figures = [None, None];
    for side in Side::order(number) {
        let binary = builds.binary(side);
        let measured = measure(options, binary, &builds.room)?;
        let name = match side {
            Side::Old => "old",
            Side::New => "new",
        };
        let position = format!("[round {}/{}] {name}", number + 1, options.rounds);
        eprintln!("{position}: {}", measured.line());
        figures[side as usize] = Some(measured);
    }
    let [Some(old), Some(new)] = figures else {
        bail!("a round measures both builds");
    };
    Ok(Round { old, new })
}

/// One bench of one build. A bench whose audit finds a lost or doubled run fails, and so does the comparison.
fn measure(options: &Options, binary: &Path, room: &Path) -> Result<Figures> {
    let mut bench = Command::new(binary);
    bench.args(options.bench_arguments(Some(room)));
    let output = bench
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", binary.display()))?;
    if !output.status.success() {
        bail!(
            "the bench of {} ended with {}",
            binary.display(),
            output.status
        );
    }
    let report: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the bench of {} printed no JSON", binary.display()))?;
    Figures::read(&report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builds_take_turns_in_going_first() {
        let order: Vec<Side> = (0..4).flat_map(Side::order).collect();
        use Side::{New, Old};
        assert_eq!(order, [Old, New, New, Old, Old, New, New, Old]);
    }

    #[test]
    fn a_ratio_below_what_was_asked_for_fails() {
        assert!(verdict(None, 0.1).is_ok());
        assert!(verdict(Some(0.9), 0.9).is_ok());
        let refused = verdict(Some(0.9), 0.899).unwrap_err().to_string();
        assert!(refused.contains("0.899"), "{refused}");
    }
}
