//! `cargo xtask sim`: lets worlds happen and says what broke.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use drumtower_core::fault::{self, Fault};
use drumtower_sim::campaign::{Campaign, Result};
use drumtower_sim::{Story, simulate};

struct Arguments {
    campaign: Campaign,
    trace: bool,
    coverage: bool,
    fault: Option<Fault>,
}

fn main() -> ExitCode {
    let arguments = match read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(refusal) => {
            eprintln!("{refusal}");
            return ExitCode::from(2);
        }
    };
    // A broken invariant is a finding and is told as one; its backtrace only hides it.
    std::panic::set_hook(Box::new(|_| {}));
    fault::arm(arguments.fault);
    if arguments.trace {
        return one(arguments.campaign.start, arguments.fault);
    }
    many(&arguments)
}

fn read(mut given: impl Iterator<Item = String>) -> std::result::Result<Arguments, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut arguments = Arguments {
        campaign: Campaign {
            start: 0,
            seeds: 1_000,
            threads,
            failures: 20,
        },
        trace: false,
        coverage: false,
        fault: None,
    };
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{name} needs a value"));
        let number = |text: String| {
            let parsed = text.parse::<u64>();
            parsed.map_err(|_| format!("`{text}` is not a number: give {name} one"))
        };
        match name.as_str() {
            "--seeds" => arguments.campaign.seeds = number(value()?)?,
            "--start" => arguments.campaign.start = number(value()?)?,
            "--threads" => arguments.campaign.threads = number(value()?)? as usize,
            "--fault" => arguments.fault = Some(fault_named(&value()?)?),
            "--trace" => arguments.trace = true,
            "--coverage" => arguments.coverage = true,
            _ => {
                return Err(format!(
                    "`{name}` is not known; see `cargo xtask sim --help`"
                ));
            }
        }
    }
    Ok(arguments)
}

fn fault_named(name: &str) -> std::result::Result<Fault, String> {
    let known = Fault::ALL.iter().find(|fault| fault.name() == name);
    known.copied().ok_or_else(|| {
        let names: Vec<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        format!(
            "there is no fault `{name}`; there are: {}",
            names.join(", ")
        )
    })
}

/// One world with every line of what happened.
fn one(seed: u64, fault: Option<Fault>) -> ExitCode {
    let story = simulate(seed, true);
    let mut out = std::io::stdout().lock();
    for line in &story.trace {
        // Whoever reads only the beginning closes the pipe.
        if writeln!(out, "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    let _ = writeln!(out, "trace {:016x} of {} lines", story.hash, story.lines);
    drop(out);
    tell(&story, fault);
    exit(story.findings.is_empty())
}

fn many(arguments: &Arguments) -> ExitCode {
    let campaign = arguments.campaign;
    let began = Instant::now();
    let bar = std::io::stderr().is_terminal();
    let result = campaign.run(|done, story| {
        if bar && (done % 16 == 0 || done == campaign.seeds) {
            draw(done, campaign.seeds, began);
        }
        if !story.findings.is_empty() && bar {
            eprintln!();
        }
    });
    if bar {
        eprintln!();
    }
    for story in &result.failed {
        tell(story, arguments.fault);
    }
    println!("{}", summary(&result, began.elapsed().as_secs_f64()));
    if arguments.coverage || result.worlds >= 1_000 {
        println!("\n{}", result.coverage.table());
        let blind = result.coverage.blind_spots();
        match blind.is_empty() {
            true => println!("\neverything was tried under every trouble"),
            false => println!("\nnever tried\n  {}", blind.join("\n  ")),
        }
    }
    exit(result.failed.is_empty())
}

fn draw(done: u64, seeds: u64, began: Instant) {
    const WIDTH: u64 = 40;
    let filled = (done * WIDTH / seeds.max(1)).min(WIDTH) as usize;
    let rate = done as f64 / began.elapsed().as_secs_f64().max(0.001);
    eprint!(
        "\r[{}{}] {done}/{seeds}  {rate:.1} seeds/s ",
        "#".repeat(filled),
        "-".repeat(WIDTH as usize - filled)
    );
}

fn summary(result: &Result, seconds: f64) -> String {
    let hours = result.virtual_us as f64 / 3.6e9;
    format!(
        "{} worlds in {seconds:.1} s: {:.1} seeds/s, {:.1} virtual hours/s, {} runs, {} attempts, {} worlds failed",
        result.worlds,
        result.worlds as f64 / seconds.max(0.001),
        hours / seconds.max(0.001),
        result.runs,
        result.tasks,
        result.failed.len()
    )
}

fn tell(story: &Story, fault: Option<Fault>) {
    for finding in &story.findings {
        eprintln!(
            "seed {}: {}: {}",
            story.seed, finding.promise, finding.words
        );
    }
    if !story.findings.is_empty() {
        let fault = fault.map_or(String::new(), |fault| format!(" --fault {}", fault.name()));
        eprintln!(
            "replay: cargo xtask sim --start {} --seeds 1 --trace{fault}\n",
            story.seed
        );
    }
}

fn exit(clean: bool) -> ExitCode {
    if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
