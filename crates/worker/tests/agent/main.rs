//! The agent over real sockets and with real processes, against a server whose part the test plays. This binary is also
//! the supervisor of its commands: see `main`.

#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod notes;
#[cfg(target_os = "linux")]
mod starved;
#[cfg(target_os = "linux")]
#[path = "../../../sdk/tests/tiny_server/mod.rs"]
mod tiny_server;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(drumtower_worker::supervisor::ENTRY) => drumtower_worker::supervisor::supervise_main(),
        Some(starved::ENTRY) => starved::agent(),
        _ => {
            let arguments = libtest_mimic::Arguments::from_args();
            let trials = [cases::trials(), notes::trials(), starved::trials()];
            libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
