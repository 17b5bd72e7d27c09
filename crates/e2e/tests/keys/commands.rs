//! Keys of commands and scripts. What the two share is checked for both.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::world::{World, id, world};

/// A task of either kind that runs this text in a shell, with more keys.
fn tasks(text: &str, keys: Value) -> [Value; 2] {
    [("exec", "shell"), ("script", "body")].map(|(kind, key)| {
        let mut task = keys.clone();
        task[key] = json!(text);
        json!({kind: task})
    })
}

/// What the run of a task printed, after it completed.
#[track_caller]
fn printed(world: &World, task: Value) -> String {
    let run = world.ended(json!({"task": task}));
    assert_eq!(run["state"], "COMPLETED", "{run:#}");
    world.api.output(id(&run))
}

/// The error of a run that failed.
#[track_caller]
fn error(world: &World, task: Value) -> String {
    let run = world.ended(json!({"task": task}));
    assert_eq!(run["state"], "FAILED", "{run:#}");
    run["error"].as_str().expect("an error").to_owned()
}

/// A shell reads the line: pipes and variables work.
pub fn shell() {
    let world = world().agent(4);
    let task = json!({"exec": {"shell": "A=b; printf '2\n1\n' | sort | tr '\n' $A"}});
    assert_eq!(printed(&world, task), "1b2b");
}

/// The interpreter reads the script from a private file, which goes with the attempt.
pub fn script() {
    let world = world().agent(4);
    let body = "echo body; stat -c %a \"$0\"; echo \"$0\"";
    let text = printed(&world, json!({"script": {"body": body}}));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["body", "500"]);
    assert!(!std::path::Path::new(lines[2]).exists(), "{text}");
    let other = json!({"script": {"body": "s/a/b/p", "interpreter": ["sed", "-n", "-f"], "stdin": "aaa\n"}});
    // The file is the last argument: here it is the program, and standard input what it works on.
    assert_eq!(printed(&world, other), "baa\n");
}

pub fn env() {
    let world = world().agent(4);
    for task in tasks(
        "echo $GREETING $PATH",
        json!({"env": {"GREETING": "hello", "PATH": "/bin"}}),
    ) {
        assert_eq!(printed(&world, task), "hello /bin\n");
    }
}

pub fn cwd() {
    let world = world().agent(4);
    for task in tasks("pwd", json!({"cwd": "/usr"})) {
        assert_eq!(printed(&world, task), "/usr\n");
    }
    for task in tasks("pwd", json!({"cwd": "/nowhere/at-all"})) {
        let error = error(&world, task);
        assert!(
            error.contains("working directory /nowhere/at-all"),
            "{error}"
        );
    }
}

pub fn stdin() {
    let world = world().agent(4);
    for task in tasks("cat; cat", json!({"stdin": "one\ntwo"})) {
        assert_eq!(printed(&world, task), "one\ntwo");
    }
}

pub fn success_codes() {
    let world = world().agent(4);
    for task in tasks("exit 3", json!({"success_codes": [0, 3]})) {
        printed(&world, task);
    }
    for task in tasks("exit 4", json!({"success_codes": [0, 3]})) {
        let error = error(&world, task);
        assert_eq!(error, "the command exited with code 4, expected 0, 3");
    }
}

/// Root becomes the user; anybody else says why not.
pub fn user() {
    let world = world();
    // Other users have to come through to their working directory.
    let open = std::fs::Permissions::from_mode(0o711);
    std::fs::set_permissions(world.site.path(), open).expect("the site is the test's");
    let world = world.agent(4);
    // SAFETY: no arguments, cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    for task in tasks(
        "id -un; echo $USER; touch mine; stat -c %U mine; echo 1 > $DRUMTOWER_RESULT_FILE",
        json!({"user": "nobody"}),
    ) {
        if is_root {
            assert_eq!(printed(&world, task), "nobody\nnobody\nnobody\n");
        } else {
            let error = error(&world, task);
            assert!(error.contains("only root can change users"), "{error}");
        }
    }
    for task in tasks("id", json!({"user": "no-such-user"})) {
        let error = error(&world, task);
        assert!(error.contains("there is no user `no-such-user`"), "{error}");
    }
}

pub fn limits() {
    let world = world();
    for task in tasks("true", json!({"limits": {"memory": "1"}})) {
        let answer = world.try_job(json!({"task": task}));
        assert_eq!(
            (answer.status, answer.code()),
            (422, "invalid_field"),
            "{answer:?}"
        );
    }
}

/// More than the limit is not to be had, or is the end.
pub fn memory() {
    let world = world().agent(4);
    let children = "for i in 1 2 3 4; do (s=x; while :; do s=$s$s; done) & done; wait; exit 1";
    for task in tasks(children, json!({"limits": {"memory": "48MiB"}})) {
        let error = error(&world, task);
        assert!(error.contains("48 MiB of memory"), "{error}");
    }
}

pub fn open_files() {
    let world = world().agent(4);
    for task in tasks("ulimit -n", json!({"limits": {"open_files": 99}})) {
        assert_eq!(printed(&world, task).trim(), "99");
    }
}

pub fn processes() {
    let world = world().agent(4);
    let marker = world.site.marker();
    let fork = format!("for i in 1 2 3 4 5 6 7 8; do sleep {marker} & done; wait; exit 1");
    for task in tasks(&fork, json!({"limits": {"processes": 5}})) {
        let error = error(&world, task);
        assert!(error.contains("5 processes"), "{error}");
    }
}

/// With control groups two busy loops get the time of one; else they are kept to one processor.
pub fn cpu() {
    let world = world().agent(4);
    let worker = world.api.get("/api/v1/workers/agent");
    let by = worker["limits"]["by"].as_str().expect("a way");
    let text = if by == "cgroup2" {
        "cat /sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.max"
    } else {
        "nproc"
    };
    for task in tasks(text, json!({"limits": {"cpu": 0.5}})) {
        let printed = printed(&world, task);
        let expected = if by == "cgroup2" { "50000 100000" } else { "1" };
        assert_eq!(printed.trim(), expected, "{by}");
    }
}
