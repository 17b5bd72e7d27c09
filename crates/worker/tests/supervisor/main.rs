//! Real processes under real supervisors. This binary is also the supervisor that it tests, and the programs that
//! its tests run: see `main`. Every test has its own scratch root and its own marker, by which all processes that it
//! started are found in `/proc`.

#[cfg(target_os = "linux")]
mod agent_death;
#[cfg(target_os = "linux")]
mod attempt;
#[cfg(target_os = "linux")]
mod ending;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod surroundings;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod user;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(drumtower_worker::supervisor::ENTRY) => drumtower_worker::supervisor::supervise_main(),
        Some(programs::AGENT) => programs::agent(),
        Some(programs::BURN) => programs::burn(),
        Some(programs::HOLD) => programs::hold(),
        Some(programs::SWAP) => programs::swap(),
        _ => {
            surroundings::raise_open_files();
            let arguments = libtest_mimic::Arguments::from_args();
            let trials = [
                ending::trials(),
                surroundings::trials(),
                user::trials(),
                output::trials(),
                tree::trials(),
                agent_death::trials(),
            ];
            libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
