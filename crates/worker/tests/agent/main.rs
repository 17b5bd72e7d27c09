//! The agent over real sockets and with real processes, against a server whose part the test plays. This binary is also
//! the supervisor of its commands: see `main`.

#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
#[path = "../../../sdk/tests/tiny_server/mod.rs"]
mod tiny_server;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    if std::env::args().nth(1).as_deref() == Some(drumtower_worker::supervisor::ENTRY) {
        return drumtower_worker::supervisor::supervise_main();
    }
    let arguments = libtest_mimic::Arguments::from_args();
    libtest_mimic::run(&arguments, cases::trials()).exit_code()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
