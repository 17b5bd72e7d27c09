//! What this binary is when a test runs it as a program.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use drumtower_worker::exec;
use drumtower_worker::supervisor::BootMs;

/// An agent: runs the attempt that its environment describes and passes the output on, until it is killed.
pub const AGENT: &str = "__agent";
pub const AGENT_SCRIPT: &str = "TEST_SCRIPT";
pub const AGENT_SCRATCH: &str = "TEST_SCRATCH";
pub const AGENT_LEASE_MS: &str = "TEST_LEASE_MS";
pub const AGENT_CGROUP: &str = "TEST_CGROUP";

pub fn agent() -> ExitCode {
    drumtower_worker::supervisor::forbid_inspection();
    let get = |name| std::env::var(name).expect("the test sets it");
    let spec = exec::Spec {
        argv: ["/bin/sh", "-c", &get(AGENT_SCRIPT)]
            .map(String::from)
            .into(),
        env: Vec::new(),
        scratch: get(AGENT_SCRATCH).into(),
        timeout: None,
        timeout_grace: Duration::ZERO,
        cgroup: get(AGENT_CGROUP) == "true",
        groups: None,
        cwd: None,
        user: None,
        stdin: None,
        script: None,
        resume: false,
        limits: exec::Limits::default(),
    };
    let lease = Duration::from_millis(get(AGENT_LEASE_MS).parse().expect("a number"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut running = exec::spawn(spec, BootMs::now().plus(lease)).expect("a supervisor");
        let mut output = running.output().expect("not taken yet");
        while let Some(chunk) = output.recv().await {
            let mut stdout = std::io::stdout();
            stdout
                .write_all(&chunk.bytes)
                .and_then(|()| stdout.flush())
                .expect("the test reads");
        }
        running.wait().await;
    });
    ExitCode::SUCCESS
}

/// Uses so many milliseconds of CPU time.
pub const BURN: &str = "__burn";

pub fn burn() -> ExitCode {
    let ms = std::env::args()
        .nth(2)
        .and_then(|ms| ms.parse::<u64>().ok())
        .expect("milliseconds");
    // User and system time in ticks of 10 ms, in the 12th and 13th field after the name.
    let used_ms = || {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
        let fields = stat
            .rsplit_once(')')
            .expect("a name")
            .1
            .split_ascii_whitespace();
        fields
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().expect("ticks") * 10)
            .sum::<u64>()
    };
    while used_ms() < ms {
        std::hint::black_box((0..100_000u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum)));
    }
    ExitCode::SUCCESS
}

/// Holds so many MiB of memory, says so by making a file, and waits to be killed.
pub const HOLD: &str = "__hold";

pub fn hold() -> ExitCode {
    let mut arguments = std::env::args().skip(2);
    let mib = arguments
        .next()
        .and_then(|mib| mib.parse::<usize>().ok())
        .expect("MiB");
    let held = std::hint::black_box(vec![1u8; mib << 20]);
    std::fs::write(arguments.next().expect("a file"), "").expect("a scratch directory");
    loop {
        std::thread::park();
        std::hint::black_box(&held);
    }
}

/// Puts links to a file in the place of what the supervisor makes in a directory, again and again, until it is killed.
pub const SWAP: &str = "__swap";

pub fn swap() -> ExitCode {
    let mut arguments = std::env::args().skip(2);
    let secret = arguments.next().expect("a file");
    let place = std::path::PathBuf::from(arguments.next().expect("a directory"));
    let targets = [".drumtower-script", ".drumtower-stdin"].map(|name| place.join(name));
    loop {
        for target in &targets {
            // Mostly there is nothing to remove, and no directory to put a link in.
            let _ = std::fs::remove_file(target);
            let _ = std::os::unix::fs::symlink(&secret, target);
        }
    }
}
