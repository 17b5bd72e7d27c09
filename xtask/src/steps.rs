//! Steps run one after another, each announced and timed; the last line says how it went.
//!
//! The first step that fails ends the sequence: what follows would report the same fault in other words.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cargo::{run, shown};

pub struct Step {
    pub name: &'static str,
    pub command: Command,
}

impl Step {
    pub fn new(name: &'static str, command: Command) -> Step {
        Step { name, command }
    }
}

/// Runs the steps in order. `what` names the whole in the summary line.
pub fn run_all(what: &str, steps: Vec<Step>) -> Result<()> {
    let count = steps.len();
    let began = Instant::now();
    for (index, step) in steps.into_iter().enumerate() {
        let position = format!("[{}/{count}] {}", index + 1, step.name);
        eprintln!("\n==> {position}: {}", shown(&step.command));
        let step_began = Instant::now();
        let outcome = run(step.command);
        let took = seconds(step_began.elapsed());
        if let Err(error) = outcome {
            eprintln!("<== {position}: FAILED after {took}");
            bail!(
                "{what}: FAILED at step {position} after {}: {error}",
                seconds(began.elapsed())
            );
        }
        eprintln!("<== {position}: ok in {took}");
    }
    eprintln!(
        "\n{what}: PASSED, {count} steps in {}",
        seconds(began.elapsed())
    );
    Ok(())
}

fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    if whole >= 60 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(argument: &str) -> Command {
        let mut command = crate::cargo::cargo();
        command.arg(argument);
        command
    }

    #[test]
    fn a_failing_step_ends_the_sequence_and_is_named() {
        let steps = vec![
            Step::new("version", cargo("--version")),
            Step::new("nonsense", cargo("no-such-subcommand")),
            Step::new("unreached", cargo("--version")),
        ];
        let error = run_all("test", steps).unwrap_err().to_string();
        assert!(
            error.starts_with("test: FAILED at step [2/3] nonsense"),
            "{error}"
        );
    }

    #[test]
    fn passing_steps_pass() {
        run_all("test", vec![Step::new("version", cargo("--version"))]).unwrap();
    }

    #[test]
    fn durations_read_well() {
        assert_eq!(seconds(Duration::from_millis(1_240)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(725)), "12 min 05 s");
    }
}
