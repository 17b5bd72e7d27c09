//! `cargo xtask`: reads the arguments and runs one command of the table in [`xtask::command`].

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Result, anyhow, bail};

use xtask::cargo::{
    BIN_ENV, LONG_ENV, Profile, TEST_FEATURES, become_program, binary_in, binary_path,
    build_binary, build_test_binary, cargo, run,
};
use xtask::steps::{Step, run_all};
use xtask::{bench_compare, command, console, dist, generators, needs, schemathesis};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        bail!("{}", command::overview());
    };
    if ["--help", "-h", "help"].contains(&name.as_str()) {
        println!("{}", command::overview());
        return Ok(());
    }
    let Some(command) = command::find(name) else {
        bail!(
            "cargo xtask knows no command {name:?}\n\n{}",
            command::overview()
        );
    };
    if rest.first().is_some_and(|it| it == "--help" || it == "-h") {
        println!("{}", command.page());
        return Ok(());
    }
    let (own, passed) = command.split(rest).map_err(|refusal| anyhow!(refusal))?;
    match command.name {
        "dev" => dev(own.iter().any(|flag| flag == "--debug"), passed),
        "test" => test(own.iter().any(|flag| flag == "--long")),
        "lint" => lint(),
        "bench" => bench(passed),
        "bench-compare" => bench_compare::run(&bench_compare::Options::parse(&own)?),
        "schemathesis" => schemathesis::run(&own),
        "sim" => sim(&own),
        "codegen" => generators::write_all(),
        "console" => console::provide(),
        "dist" => make_packages(&own),
        other => bail!("cargo xtask {other} is in the table and does nothing; give it an arm"),
    }
}

fn make_packages(own: &[String]) -> Result<()> {
    let value = |name: &str| {
        let pair = own.chunks_exact(2).find(|pair| pair[0] == name);
        pair.map(|pair| pair[1].clone())
    };
    if value("--binary").is_none() {
        console::provide()?;
    }
    dist::make(&dist::Choice {
        binary: value("--binary").map(Into::into),
        target: value("--target"),
        out: value("--out").map(Into::into),
    })
}

fn dev(debug: bool, passed: Vec<String>) -> Result<()> {
    let profile = if debug {
        Profile::Debug
    } else {
        Profile::Release
    };
    console::provide_if_possible()?;
    start(profile, &["dev", "--demo"], passed)
}

fn bench(passed: Vec<String>) -> Result<()> {
    start(Profile::Release, &["bench"], passed)
}

/// The exit code is the simulator's own: a broken promise is told by it, not by cargo.
fn sim(own: &[String]) -> Result<()> {
    let mut build = cargo();
    build.args([
        "build",
        "--quiet",
        "--profile",
        "sim",
        "--package",
        "drumtower-sim",
    ]);
    run(build)?;
    become_program(&binary_in("sim", "drumtower-sim"), own)
}

fn start(profile: Profile, verbs: &[&str], passed: Vec<String>) -> Result<()> {
    run(build_binary(profile))?;
    let arguments: Vec<String> = verbs
        .iter()
        .map(|it| (*it).to_owned())
        .chain(passed)
        .collect();
    become_program(&binary_path(profile), &arguments)
}

fn test(long: bool) -> Result<()> {
    needs::provide()?;
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--no-fail-fast"]);
    tests.args(["--features", TEST_FEATURES]);
    tests.env(BIN_ENV, binary_path(Profile::Debug));
    if long {
        tests.env(LONG_ENV, "1");
    }
    let steps = vec![
        Step::new("format", format_check()),
        Step::new("clippy", clippy()),
        Step::new("packages of the console", console::install()?),
        Step::new("console", console::build()),
        Step::new("parts of the console", console::unit_tests()),
        Step::new("build", build_test_binary()),
        Step::new("tests", tests),
        Step::new("browser", console::browser_tests()),
        Step::new("api", schemathesis::step()?),
    ];
    run_all(
        if long {
            "cargo xtask test --long"
        } else {
            "cargo xtask test"
        },
        steps,
    )
}

fn lint() -> Result<()> {
    let mut tidy = cargo();
    tidy.args(["test", "--package", "xtask", "--test", "tidy"]);
    let steps = vec![
        Step::new("format", format_check()),
        Step::new("clippy", clippy()),
        Step::new("tidy", tidy),
    ];
    run_all("cargo xtask lint", steps)
}

fn format_check() -> Command {
    let mut command = cargo();
    command.args(["fmt", "--all", "--check"]);
    command
}

fn clippy() -> Command {
    let mut command = cargo();
    command.args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]);
    command
}
