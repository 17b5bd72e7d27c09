//! Drumtower in one binary: server, worker and command line.
//!
//! One file or directory per noun; each holds its arguments and what they do. [`failure`] says what the exit codes mean.

// They panic when nobody reads: `output::say` does not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod apply;
mod ask;
mod audit;
mod backfill;
mod backup;
mod bench;
mod calendar;
mod client;
mod cluster;
mod completions;
mod config;
mod connect;
mod data;
mod deadletter;
mod dev;
mod diff;
mod doctor;
mod duration;
mod export;
mod failure;
mod foreign;
mod import;
mod job;
mod lock;
mod logging;
mod man;
mod manifest;
mod moment;
mod namespace;
mod notify;
mod output;
mod params;
mod queue;
mod ready;
mod restore;
mod run;
mod schema;
mod secure;
mod serve;
mod settings;
mod state_machine;
mod store;
mod token;
mod top;
mod watch;
mod work;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use drumtower_worker::{open_files, supervisor};
use mimalloc::MiMalloc;

// Batches are made in one thread and let go in another, which the system's allocator pays dearly for.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// A distributed job scheduler
///
/// Start with everything in one process and a few jobs to look at:
///
///     drumtower dev --demo
///
/// Then, in another terminal:
///
///     drumtower job list
///     drumtower run list
///     drumtower job trigger greet --params '{"name": "Ada"}' --wait
///
/// On the machine of the server no address and no token are needed. Elsewhere give them with
/// --url and --token, or set DRUMTOWER_URL and DRUMTOWER_TOKEN.
///
/// Exit codes: 0 it worked, 1 it failed, 2 the command line is not understood, 3 there is no
/// such thing, 4 the server refuses, 5 the server cannot be reached or is not ready. `run
/// wait` is 0 only if the run is COMPLETED.
///
/// DRUMTOWER_LOG sets what is logged to standard error, such as `debug` or
/// `drumtower_server=debug,warn`.
#[derive(Debug, Parser)]
#[command(
    name = "drumtower",
    version,
    verbatim_doc_comment,
    arg_required_else_help = true
)]
struct Cli {
    /// When to use colours: auto, always or never
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = true
    )]
    color: output::Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dev(dev::Dev),
    Serve(serve::Serve),
    Work(work::Work),
    /// Make jobs, calendars and queues what files say
    ///
    /// First prints the plan: `+` is made, `~` is changed (each key before → after), `-` is
    /// deleted, `=` stays. Everything is read and checked before the first change. Files may
    /// hold several documents, separated by `---`, of kind Job, Calendar and Queue in any order; a
    /// directory stands for all .yaml and .yml files in it and below; `-` is standard input.
    ///
    ///     drumtower apply -f jobs/
    ///     drumtower apply -f jobs/ --dry-run
    ///     drumtower apply -f jobs/ --prune --label team=billing -n billing
    ///
    /// --prune deletes the jobs with a label that are in none of the files, in the namespaces that
    /// the files name; -n or -A say otherwise. It asks first; in a pipe it needs --yes. If a change is refused, those before it stay, and the message says
    /// which they are.
    #[command(verbatim_doc_comment)]
    Apply(apply::Apply),
    Diff(diff::Diff),
    Export(export::Export),
    /// Make jobs of a crontab or of Kubernetes CronJobs
    #[command(subcommand)]
    Import(import::Command),
    /// Jobs: create, edit, list, show, next, explain, trigger, pause, resume, versions, diff, restore, delete, apply
    #[command(subcommand)]
    Job(job::Command),
    /// Backfills, runs of times that have passed: create, list, show, pause, resume, cancel, wait
    #[command(subcommand)]
    Backfill(backfill::Command),
    /// Dead letters: list, show, requeue, discard
    #[command(subcommand)]
    Deadletter(deadletter::Command),
    /// Calendars: apply, list, show, versions, delete
    #[command(subcommand)]
    Calendar(calendar::Command),
    /// Queues: apply, list, show, pause, resume, delete
    #[command(subcommand)]
    Queue(queue::Command),
    /// Runs: list, show, logs, cancel, wait, rerun
    #[command(subcommand)]
    Run(run::Command),
    Watch(watch::Watch),
    Ready(ready::Ready),
    /// Workers: list, show
    #[command(subcommand)]
    Worker(worker::Command),
    /// The servers that share a database: status
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Locks, for what only one may do at a time: run, acquire, renew, release, list, show
    #[command(subcommand)]
    Lock(lock::Command),
    /// Tokens: create, list, revoke
    #[command(subcommand)]
    Token(token::Command),
    /// Who is told of failures: show, set, unset, test, log, key
    #[command(subcommand)]
    Notify(notify::Command),
    /// What holds for the jobs of the installation: show, set, unset
    #[command(subcommand)]
    Settings(settings::Command),
    /// The configuration in force: check, show
    #[command(subcommand)]
    Config(config::command::Command),
    /// The database that servers share: migrate
    #[command(subcommand)]
    Store(store::Command),
    Backup(backup::Backup),
    Restore(restore::Restore),
    /// The data directory: path, reset
    #[command(subcommand)]
    Data(data::Command),
    /// Schemas of manifests, and of the API
    #[command(subcommand)]
    Schema(schema::Command),
    /// Who changed what; journals of what happened, and the check of what should have
    #[command(subcommand)]
    Audit(audit::Command),
    /// Figures to measure again: throughput, latency, precision, growth, soak, start, wheel
    #[command(subcommand)]
    Bench(bench::Bench),
    Top(top::Top),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Pages),
}

fn main() -> ExitCode {
    // A supervisor must come to life before any thread does, and knows no flags.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == supervisor::ENTRY)
    {
        return supervisor::supervise_main();
    }
    // One provider of cryptography for the whole process; whoever came first may stay.
    let _ = rustls::crypto::ring::default_provider().install_default();
    completions::answer(<Cli as clap::CommandFactory>::command);
    let cli = Cli::try_parse().unwrap_or_else(|error| foreign::hinted(error).exit());
    cli.color.choose();
    if matches!(
        cli.command,
        Command::Dev(_) | Command::Serve(_) | Command::Work(_)
    ) {
        // These three log as their configuration says, once they know it. They hold many connections, and tokens that tasks
        // beside them have no business with.
        open_files::raise();
        supervisor::forbid_inspection();
    } else {
        logging::start_by_variable();
    }
    let done = match cli.command {
        Command::Dev(dev) => dev.run(),
        Command::Serve(serve) => serve.run(),
        Command::Work(work) => work.run(),
        Command::Apply(apply) => apply.run(apply::Telling::Plan),
        Command::Diff(diff) => diff.run(),
        Command::Export(export) => export.run(),
        Command::Import(command) => import::run(command),
        Command::Job(command) => job::run(command),
        Command::Backfill(command) => backfill::run(command),
        Command::Deadletter(command) => deadletter::run(command),
        Command::Calendar(command) => calendar::run(command),
        Command::Queue(command) => queue::run(command),
        Command::Run(command) => run::run(command),
        Command::Watch(watch) => watch.run(),
        Command::Ready(ready) => ready.run(),
        Command::Worker(command) => worker::run(command),
        Command::Cluster(command) => cluster::run(command),
        Command::Lock(command) => lock::run(command),
        Command::Token(command) => token::run(command),
        Command::Notify(command) => notify::run(command),
        Command::Settings(command) => settings::run(command),
        Command::Config(command) => config::command::run(command),
        Command::Store(command) => store::run(command),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Data(command) => data::run(command),
        Command::Schema(command) => schema::run(&command),
        Command::Audit(command) => audit::run(command),
        Command::Bench(bench) => bench.run(),
        Command::Top(top) => top.run(),
        Command::Doctor(doctor) => doctor.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(pages) => pages.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does() {
        fn walk(command: &clap::Command, path: &str) {
            for verb in command
                .get_subcommands()
                .filter(|verb| verb.get_name() != "help")
            {
                let path = format!("{path} {}", verb.get_name());
                assert!(verb.get_about().is_some(), "{path} has no help");
                for argument in verb.get_arguments() {
                    assert!(
                        argument.get_help().is_some(),
                        "{path} --{} has no help",
                        argument.get_id()
                    );
                }
                walk(verb, &path);
            }
        }
        walk(&Cli::command(), "drumtower");
    }
}
