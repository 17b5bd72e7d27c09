//! What a command finds around itself: environment, directory, descriptors, signals.

use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, chown};

use drumtower_worker::exec;

use crate::attempt::{Attempt, patient, trials};
use crate::programs::{AGENT, AGENT_CGROUP, AGENT_LEASE_MS, AGENT_SCRATCH, AGENT_SCRIPT};

trials![
    environment_is_exactly_as_defined,
    working_directory_is_private_and_removed,
    standard_input_is_empty,
    descriptors_do_not_leak,
    signals_are_at_their_defaults,
    process_group_is_its_own,
    open_files_are_as_before_the_worker_raised_them,
    agent_and_supervisor_are_closed_to_the_command,
];

const NOBODY: u32 = 65_534;

/// The soft limit that this process pretends to have been started with.
const OPEN_FILES: u64 = 900;

/// As a worker does at its start.
pub fn raise_open_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is live and writable.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = OPEN_FILES;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
    drumtower_worker::open_files::raise();
}

async fn open_files_are_as_before_the_worker_raised_them() {
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    let own = own.lines().find(|line| line.starts_with("Max open files"));
    let own: Vec<&str> = own.unwrap().split_ascii_whitespace().skip(3).collect();
    assert!(own[0].parse::<u64>().unwrap() > OPEN_FILES, "{own:?}");
    let (_, output) = Attempt::shell("ulimit -Sn; ulimit -Hn").run().await;
    assert_eq!(output.text(), format!("{OPEN_FILES}\n{}\n", own[1]));
    let mut limited = Attempt::shell("ulimit -Sn; ulimit -Hn");
    limited.spec.limits.open_files = Some(40);
    assert_eq!(limited.run().await.1.text(), "40\n40\n");
}

/// An agent that is not root, whoever runs the tests, and its command, which is of the same user.
async fn agent_and_supervisor_are_closed_to_the_command() {
    let place = tempfile::tempdir().unwrap();
    let script = "for who in $PPID $(cut -d ' ' -f 4 /proc/$PPID/stat) $$; do \
                  cat /proc/$who/environ >/dev/null 2>&1 && echo open || echo closed; done";
    let mut agent = tokio::process::Command::new("/proc/self/exe");
    agent
        .arg(AGENT)
        .env(AGENT_SCRIPT, script)
        .env(AGENT_SCRATCH, place.path().join("attempt"))
        .env(AGENT_LEASE_MS, "60000")
        .env(AGENT_CGROUP, "false")
        .kill_on_drop(true);
    let own = place.path().metadata().unwrap().uid();
    if own == 0 {
        chown(place.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        agent.uid(NOBODY).gid(NOBODY);
    }
    let output = patient(agent.output()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "closed\nclosed\nopen\n", "{output:?}");
}

async fn environment_is_exactly_as_defined() {
    let mut attempt = Attempt::shell("");
    attempt.spec.argv = vec!["/usr/bin/env".into()];
    let given = [
        ("DRUMTOWER_RUN", "run_1"),
        ("DRUMTOWER_PARAMS", "{\"a\": \"two\\nlines\"}"),
    ];
    attempt.spec.env = given
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let (_, output) = attempt.run().await;
    let scratch = attempt.scratch();
    let mut expected = vec![
        format!("PATH={}", exec::PATH),
        format!("HOME={}", scratch.display()),
        "LANG=C.UTF-8".to_owned(),
        "TZ=UTC".to_owned(),
        format!("DRUMTOWER_SCRATCH={}", scratch.display()),
        format!(
            "DRUMTOWER_RESULT_FILE={}/.drumtower-result.json",
            scratch.display()
        ),
        format!(
            "DRUMTOWER_PROGRESS={}/.drumtower-progress",
            scratch.display()
        ),
        format!(
            "DRUMTOWER_CHECKPOINT={}/.drumtower-checkpoint",
            scratch.display()
        ),
    ];
    expected.extend(given.map(|(name, value)| format!("{name}={value}")));
    expected.sort();
    let text = output.text();
    let mut found = text.lines().collect::<Vec<_>>();
    found.sort();
    assert_eq!(found, expected);
}

async fn working_directory_is_private_and_removed() {
    let attempt = Attempt::shell(
        "pwd; stat -c %a .; umask; mkdir -p deep/er; echo x > deep/er/file; chmod 0 deep",
    );
    let (_, output) = attempt.run().await;
    assert_eq!(
        output.text(),
        format!("{}\n700\n0022\n", attempt.scratch().display())
    );
    attempt.assert_nothing_left();
    assert!(
        attempt.scratch().parent().unwrap().exists(),
        "the root is shared and stays"
    );
}

async fn standard_input_is_empty() {
    let (_, output) = Attempt::shell("readlink /proc/$$/fd/0; cat").run().await;
    assert_eq!(output.text(), "/dev/null\n");
}

async fn descriptors_do_not_leak() {
    let attempt = Attempt::shell("ls -l /proc/$$/fd");
    let leak = std::fs::File::create(attempt.outside().join("leaked")).unwrap();
    // SAFETY: 300 is not in use; the copy has no close-on-exec flag, like one inherited from a careless parent.
    assert_eq!(unsafe { libc::dup2(leak.as_raw_fd(), 300) }, 300);
    let (_, output) = attempt.run().await;
    let text = output.text();
    assert!(text.contains("/dev/null"), "{text}");
    for foreign in ["leaked", "socket:", "anon_inode", "cgroup"] {
        assert!(!text.contains(foreign), "{foreign} in {text}");
    }
}

async fn signals_are_at_their_defaults() {
    let mut attempt = Attempt::shell("");
    attempt.spec.argv = vec![
        "grep".into(),
        "-E".into(),
        "^Sig(Blk|Ign)".into(),
        "/proc/self/status".into(),
    ];
    let (_, output) = attempt.run().await;
    // The C library keeps signals 32 and 33 for itself and lets nobody change them.
    const RESERVED: u64 = 0b11 << 31;
    for line in output.text().lines() {
        let mask = u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap();
        assert_eq!(mask & !RESERVED, 0, "{line}");
    }
    assert_eq!(output.text().lines().count(), 2);
}

async fn process_group_is_its_own() {
    let (_, output) = Attempt::shell("cut -d ' ' -f 5 /proc/$$/stat; echo $$")
        .run()
        .await;
    let text = output.text();
    let lines = text.lines().collect::<Vec<_>>();
    assert_eq!(lines[0], lines[1]);
}
