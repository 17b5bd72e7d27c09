//! The output of runs is found wherever it lies: with the server that owned the work when it was written.

use std::fs::File;
use std::path::Path;

use drumtower_e2e::{Api, Cli, Site, Worker, eventually, in_time, shell};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::world::{Database, Member, await_shared, jobs_in};

/// What a server answers for a run's output, as text.
fn logs(api: &Api, run: &str, query: &str) -> (u16, String) {
    let path = format!("/api/v1/runs/{run}/logs{query}");
    let answer = api.call_with(Method::GET, &path, None, &[("accept", "text/plain")]);
    let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
    let text = match answer.body {
        Value::String(text) => text,
        other => other.to_string(),
    };
    (answer.status, text)
}

#[track_caller]
fn await_output(api: &Api, run: &str, wanted: &str) {
    let mut last = None;
    let found = in_time(|| {
        last = Some(logs(api, run, ""));
        (last == Some((200, wanted.to_owned()))).then_some(())
    });
    assert!(found.is_some(), "the output is {last:?} and not {wanted:?}");
}

#[test]
fn output_is_read_through_any_server_after_the_owner_changed() {
    let (site, database) = (Site::new(), Database::start());
    let mut a = Member::launch(&site, &database, "a", "http", &[]);
    a.await_ready();
    let mut b = Member::launch(&site, &database, "b", "http", &[]);
    b.await_ready();
    let [old, spans, silent] = jobs_in(&await_shared(&[&a, &b]).of(&a));
    let agent = Worker::start_by(
        &site,
        &a.server,
        &b.server.url(),
        "agent",
        Default::default(),
    );
    let at_b = b.server.api();
    let signs = ["first", "second"].map(|name| site.path().join(name));
    let wait = |sign: usize| {
        let sign = signs[sign].display();
        format!("while [ ! -e {sign} ]; do sleep 0.05; done")
    };
    let script = format!("echo one; {}; echo two; {}; echo three", wait(0), wait(1));
    at_b.put_job(&shell(&old, "echo hello"));
    at_b.put_job(&shell(&spans, &script));
    at_b.put_job(&shell(&silent, "true"));
    let old = at_b.trigger(&old, &json!({}));
    assert_eq!(at_b.ended(&old)["state"], "COMPLETED");
    let spans = at_b.trigger(&spans, &json!({}));
    await_output(&at_b, &spans, "one\n");

    // The owner dies. What it wrote is with it, and that is said with its name.
    a.server.kill();
    await_shared(&[&b]);
    let problem = eventually("the output is known to be away", || {
        let (status, text) = logs(&at_b, &old, "");
        (status == 503).then_some(text)
    });
    assert!(
        problem.contains("output_away") && problem.contains(&a.address),
        "{problem}"
    );
    let (status, text) = logs(&at_b, &spans, "");
    assert!(
        status == 200 && text.contains(&a.address),
        "{status} {text}"
    );
    let silent = at_b.trigger(&silent, &json!({}));
    at_b.ended(&silent);
    std::fs::write(&signs[0], "").expect("written");
    eventually("what comes meanwhile is with the other", || {
        logs(&at_b, &spans, "").1.ends_with("two\n").then_some(())
    });

    // It comes back and has its share again: what each has is read through either.
    a.respawn();
    a.await_ready();
    await_shared(&[&a, &b]);
    let at_a = a.server.api();
    for api in [&at_a, &at_b] {
        await_output(api, &old, "hello\n");
        await_output(api, &spans, "one\ntwo\n");
        await_output(api, &silent, "");
    }
    let following = at_b.clone();
    let id = spans.clone();
    let followed = std::thread::spawn(move || {
        let lines = following.follow(&id).map(|line| line["text"].to_string());
        lines.collect::<Vec<_>>()
    });
    std::fs::write(&signs[1], "").expect("written");
    let ended = at_b.ended(&spans);
    assert_eq!(ended["state"], "COMPLETED", "{ended}");
    let attempts = ended["attempts"].as_array().expect("a list").len();
    assert_eq!(attempts, 1, "it ran on over two changes of its owner");
    assert_eq!(
        followed.join().expect("it ends"),
        [r#""one\n""#, r#""two\n""#, r#""three\n""#]
    );
    for api in [&at_a, &at_b] {
        let expected = |query: &str, wanted: &str| {
            assert_eq!(logs(api, &spans, query), (200, wanted.into()), "{query}");
        };
        await_output(api, &spans, "one\ntwo\nthree\n");
        expected("?tail=1", "three\n");
        expected("?tail=3", "one\ntwo\nthree\n");
        expected("?grep=one", "one\n");
        expected("?grep=o&tail=1", "two\n");
        expected("?stream=stderr", "");
    }
    let cli = Cli::new(site.path()).env("DRUMTOWER_DATA", a.server.data().display().to_string());
    assert_eq!(cli.ok(&["run", "logs", &spans]), "one\ntwo\nthree\n");

    // A token of one namespace sees through another server what it sees through the owner, and no more.
    let body = json!({"name": "elsewhere", "role": "viewer", "namespace": "other"});
    let token = at_b.post("/api/v1/tokens", &body)["secret"].clone();
    let stranger = Api::new(at_a.url(), token.as_str().map(str::to_owned));
    assert_eq!(logs(&stranger, &old, "").0, 404);

    // The other one leaves in good order: the middle of the output is with who left.
    assert!(b.server.stop().success());
    await_shared(&[&a]);
    await_output(&at_a, &old, "hello\n");
    let (status, text) = logs(&at_a, &spans, "");
    assert!(
        status == 200 && text.contains(&b.address),
        "{status} {text}"
    );
    assert!(text.contains("one\n") && !text.contains("two\n"), "{text}");
    b.respawn();
    b.await_ready();
    await_output(&at_a, &spans, "one\ntwo\nthree\n");
    drop(agent);
}

#[test]
fn the_command_line_follows_on_when_the_run_comes_to_another_server() {
    let (site, database) = (Site::new(), Database::start());
    let mut a = Member::launch(&site, &database, "a", "http", &[]);
    a.await_ready();
    let mut b = Member::launch(&site, &database, "b", "http", &[]);
    b.await_ready();
    let [job] = jobs_in(&await_shared(&[&a, &b]).of(&a));
    let url = b.server.url();
    let _agent = Worker::start_by(&site, &a.server, &url, "agent", Default::default());
    let at_b = b.server.api();
    let sign = site.path().join("sign");
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", sign.display());
    at_b.put_job(&shell(
        &job,
        &format!("seq 1 50; {wait}; echo last; echo err >&2"),
    ));
    let run = at_b.trigger(&job, &json!({}));
    let cli = Cli::new(site.path()).env("DRUMTOWER_DATA", b.server.data().display().to_string());
    let following = |arguments: &[&str], name: &str| {
        let path = site.path().join(name);
        let mut command = cli.command(arguments);
        command.stdout(File::create(&path).expect("a file"));
        command.stderr(File::create(path.with_extension("err")).expect("a file"));
        (command.spawn().expect("it starts"), path)
    };
    let shown = |path: &Path| std::fs::read_to_string(path).expect("it is there");
    let is_followed = |path: &Path| {
        eventually("it is followed", || {
            shown(path).ends_with("50\n").then_some(())
        });
    };
    let whole = following(&["run", "logs", "-f", &run], "whole");
    is_followed(&whole.1);
    // Not before: the last two of nothing are all that comes.
    let tail = following(&["run", "logs", "-f", &run, "--tail", "2"], "tail");
    is_followed(&tail.1);
    // What it wrote so far goes away with the one that leaves.
    assert!(a.server.stop().success());
    await_shared(&[&b]);
    std::fs::write(&sign, "").expect("written");
    assert_eq!(at_b.ended(&run)["state"], "COMPLETED");
    let numbers = |from: u32| (from..=50).map(|it| format!("{it}\n")).collect::<String>();
    for ((mut process, path), from) in [(whole, 1), (tail, 49)] {
        let ended = process.wait().expect("it ends");
        let errors = shown(&path.with_extension("err"));
        assert!(ended.success(), "{errors}");
        assert_eq!(shown(&path), format!("{}last\n", numbers(from)), "{errors}");
        assert!(errors.contains("err\n"), "{errors}");
        assert!(!errors.contains("follow"), "{errors}");
    }
}
