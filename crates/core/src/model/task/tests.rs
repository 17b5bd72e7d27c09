//! Tasks as people write them: what is refused, in which words, and what comes back as it was.

use serde_json::{Value, json};

use super::*;

fn task(value: Value) -> Task {
    serde_json::from_value(value).expect("a task")
}

fn fault(value: Value) -> String {
    task(value).check("task").expect_err("a fault").to_string()
}

#[test]
fn what_is_wrong_is_named_with_its_field() {
    let cases = [
        (json!({"exec": {}}), "task.exec.argv: is empty"),
        (
            json!({"exec": {"argv": ["a"], "shell": "b"}}),
            "task.exec.shell: stands beside `argv`",
        ),
        (json!({"exec": {"shell": " "}}), "task.exec.shell: is empty"),
        (
            json!({"exec": {"argv": ["a"], "env": {"DRUMTOWER_RUN": "x"}}}),
            "task.exec.env.DRUMTOWER_RUN: names that begin",
        ),
        (
            json!({"exec": {"argv": ["a"], "env": {"A=B": "x"}}}),
            "task.exec.env.A=B: `A=B` cannot name",
        ),
        (
            json!({"exec": {"argv": ["a"], "env": {"KEY": "x${secret:db}"}}}),
            "task.exec.env.KEY: `${secret:…}` is reserved",
        ),
        (
            json!({"exec": {"argv": ["a"], "cwd": "here"}}),
            "task.exec.cwd: `here` is not an absolute path",
        ),
        (
            json!({"exec": {"argv": ["a"], "cwd": "/srv/\u{1b}[2J"}}),
            "task.exec.cwd: holds the control character '\\u{1b}'",
        ),
        (
            json!({"script": {"body": "true", "cwd": "/srv\n"}}),
            "task.script.cwd: holds the control character '\\n'",
        ),
        (
            json!({"exec": {"argv": ["a"], "user": "a b"}}),
            "task.exec.user: `a b` is not the name",
        ),
        (
            json!({"exec": {"argv": ["a"], "success_codes": [256]}}),
            "task.exec.success_codes: `256` is not an exit code",
        ),
        (
            json!({"exec": {"argv": ["a"], "success_codes": []}}),
            "task.exec.success_codes: may have 1 to 32",
        ),
        (
            json!({"exec": {"argv": ["a"], "limits": {"memory": "12"}}}),
            "task.exec.limits.memory: `12` has no unit",
        ),
        (
            json!({"exec": {"argv": ["a"], "limits": {"memory": "1KiB"}}}),
            "task.exec.limits.memory: `1KiB` is not between 4 MiB",
        ),
        (
            json!({"exec": {"argv": ["a"], "limits": {"cpu": 0}}}),
            "task.exec.limits.cpu: `0` is not between",
        ),
        (
            json!({"exec": {"argv": ["a"], "limits": {"open_files": 3}}}),
            "task.exec.limits.open_files: `3` is not between 16",
        ),
        (
            json!({"script": {"body": "", "interpreter": ["sh"]}}),
            "task.script.body: is empty",
        ),
        (
            json!({"script": {"body": "x", "interpreter": []}}),
            "task.script.interpreter: is empty",
        ),
        (
            json!({"http": {"url": "ftp://x"}}),
            "task.http.url: `ftp://x` is no address",
        ),
        (
            json!({"http": {"url": "http://u:p@x/"}}),
            "holds a user or a password",
        ),
        (json!({"http": {"url": "http:///x"}}), "names no host"),
        (
            json!({"http": {"url": "http://x:0/"}}),
            "has a port that is not between",
        ),
        (
            json!({"http": {"url": "http://x", "body": "b"}}),
            "task.http.body: GET carries no body",
        ),
        (
            json!({"http": {"url": "http://x", "headers": {"Host": "y"}}}),
            "task.http.headers.Host: is set by the worker",
        ),
        (
            json!({"http": {"url": "http://x", "headers": {"X": "a\r\nB: c"}}}),
            "task.http.headers.X: holds a line break",
        ),
        (
            json!({"http": {"url": "http://x", "headers": {"X": "${secret:a}"}}}),
            "is reserved",
        ),
        (
            json!({"http": {"url": "http://x", "expect": {"body": "("}}}),
            "task.http.expect.body: `(` is not a regular expression",
        ),
        (
            json!({"http": {"url": "http://x", "timeout": "0s"}}),
            "task.http.timeout: `0s` is not longer than 0",
        ),
        (
            json!({"http": {"url": "http://x", "follow_redirects": 11}}),
            "task.http.follow_redirects: `11` is not between 0 and 10",
        ),
    ];
    for (value, expected) in cases {
        let said = fault(value.clone());
        assert!(said.contains(expected), "{value}: {said}");
    }
}

#[test]
fn what_is_written_comes_back_and_defaults_stay_out() {
    let cases = [
        json!({"exec": {"argv": ["true"]}}),
        json!({"exec": {
            "shell": "df -h | sort", "env": {"A": "b"}, "cwd": "/srv", "user": "nobody", "stdin": "x",
            "success_codes": [0, 3],
            "limits": {"memory": "512MiB", "cpu": 1.5, "open_files": 1024, "processes": 64},
        }}),
        json!({"script": {"body": "echo hi"}}),
        json!({"script": {"body": "print(1)", "interpreter": ["python3", "-u"], "limits": {"cpu": 2}}}),
        json!({"http": {"url": "https://example.org/x?y=z"}}),
        json!({"http": {
            "method": "POST", "url": "http://[::1]:8080", "headers": {"X-A": "b"}, "body": "{}",
            "expect": {"status": [200, "3xx"], "body": "ok"}, "timeout": "5s", "follow_redirects": 0,
        }}),
    ];
    for value in cases {
        let task = task(value.clone());
        assert_eq!(task.check("task"), Ok(()), "{value}");
        assert_eq!(serde_json::to_value(&task).unwrap(), value);
    }
}

#[test]
fn a_shell_may_use_its_own_expansions() {
    for value in [
        json!({"exec": {"shell": "echo ${secret:-none}"}}),
        json!({"script": {"body": "echo ${secret:-none}"}}),
    ] {
        assert_eq!(task(value).check("task"), Ok(()));
    }
}

#[test]
fn statuses_and_sizes_are_read_as_written() {
    let of = |value: Value| serde_json::from_value::<StatusPattern>(value);
    assert_eq!(of(json!("2xx")).unwrap().range(), (200, 299));
    assert_eq!(of(json!("404")).unwrap().range(), (404, 404));
    assert_eq!(of(json!(503)).unwrap().range(), (503, 503));
    for odd in [
        json!("6xx"),
        json!(99),
        json!(600),
        json!("2x"),
        json!(-1),
        json!(true),
    ] {
        assert!(of(odd.clone()).is_err(), "{odd}");
    }
    let bytes = |text: &str| {
        let limits = ResourceLimits {
            memory: Some(text.to_owned()),
            ..ResourceLimits::default()
        };
        limits.memory_bytes()
    };
    assert_eq!(bytes("512MiB"), Some(512 << 20));
    assert_eq!(bytes("2 GB"), Some(2_000_000_000));
    assert_eq!(bytes("1.5GiB"), None);
    assert_eq!(bytes("99999999999TiB"), None);
    assert_eq!(format_bytes(512 << 20), "512 MiB");
    assert_eq!(format_bytes(1000), "1000 B");
}
