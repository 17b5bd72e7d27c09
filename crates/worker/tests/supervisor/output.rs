//! Output on its way: live, bounded, complete.

use drumtower_worker::exec::{CHUNK_MAX, KillReason, OUTPUT_MAX, Reason, Stream, TRUNCATED};
use std::time::Duration;

use crate::attempt::{Attempt, Output, end, process, trials, until};

trials![
    streams_are_live_and_told_apart,
    unfinished_line_is_seen,
    long_line_is_cut_and_complete,
    too_much_is_truncated_and_does_not_block,
    output_at_the_bound_is_whole,
    slow_reader_stalls_the_command,
    reader_that_leaves_does_not_stall_the_command,
    last_words_before_a_kill_arrive,
    straggler_does_not_keep_the_output_open,
];

async fn streams_are_live_and_told_apart() {
    // It goes on only when the test, having seen the line, makes the file.
    let attempt =
        Attempt::shell("echo out; echo err >&2; while [ ! -e go ]; do sleep 0.01; done; echo end");
    let mut running = attempt.spawn();
    let mut output = Output::of(&mut running);
    output.until("out\n").await;
    output.until("err\n").await;
    std::fs::write(attempt.scratch().join("go"), "").unwrap();
    output.rest().await;
    assert_eq!(output.of_stream(Stream::Stdout), "out\nend\n");
    assert_eq!(output.of_stream(Stream::Stderr), "err\n");
    assert!(output.chunks.is_sorted_by_key(|chunk| chunk.wall_ms));
    assert_eq!(end(&mut running).await.exit_code, Some(0));
}

async fn unfinished_line_is_seen() {
    let attempt =
        Attempt::shell("printf 'one\\n50%%'; while [ ! -e go ]; do sleep 0.01; done; echo ' 100%'");
    let mut running = attempt.spawn();
    let mut output = Output::of(&mut running);
    output.until("one\n50%").await;
    std::fs::write(attempt.scratch().join("go"), "").unwrap();
    output.rest().await;
    assert_eq!(output.text(), "one\n50% 100%\n");
}

async fn long_line_is_cut_and_complete() {
    let (_, output) = Attempt::shell("head -c 200000 /dev/zero | tr '\\0' x; echo; echo short")
        .run()
        .await;
    assert_eq!(output.text(), format!("{}\nshort\n", "x".repeat(200_000)));
    assert!(
        output
            .chunks
            .iter()
            .all(|chunk| chunk.bytes.len() <= CHUNK_MAX)
    );
}

async fn too_much_is_truncated_and_does_not_block() {
    let (outcome, output) = Attempt::shell("yes 0123456789abcde | head -c 12000000; exit 5")
        .run()
        .await;
    assert_eq!(outcome.exit_code, Some(5));
    let bytes = output.bytes();
    assert_eq!(bytes.len(), OUTPUT_MAX);
    assert!(bytes.ends_with(TRUNCATED));
    assert!(bytes.starts_with(b"0123456789abcde\n0123"));
}

async fn output_at_the_bound_is_whole() {
    let len = OUTPUT_MAX - TRUNCATED.len();
    let (_, output) = Attempt::shell(&format!("head -c {len} /dev/zero"))
        .run()
        .await;
    assert!(output.bytes() == vec![0; len]);
}

async fn slow_reader_stalls_the_command() {
    const WRITTEN: usize = 8 << 20;
    let mut attempt = Attempt::shell("");
    attempt.spec.argv = ["head", "-c", &WRITTEN.to_string(), "/dev/zero"]
        .map(String::from)
        .into();
    let mut running = attempt.spawn();
    let started = running.started().await.unwrap();
    let written = || {
        let io = std::fs::read_to_string(format!("/proc/{}/io", started.pid)).ok()?;
        io.lines()
            .find_map(|line| line.strip_prefix("wchar: ")?.parse::<usize>().ok())
    };
    // Stalled: much was written and for many looks nothing more. (Were it never stalled, it would end: no file.)
    let mut looks = (0, 0);
    let stalled_at = until("the command waits for its reader", || {
        let now = written().expect("the command ended although nobody read");
        looks = if now == looks.0 {
            (now, looks.1 + 1)
        } else {
            (now, 0)
        };
        (now > CHUNK_MAX && looks.1 == 40).then_some(now)
    })
    .await;
    assert!(
        stalled_at < WRITTEN / 4,
        "{stalled_at} bytes were taken with no reader"
    );
    let mut output = Output::of(&mut running);
    output.rest().await;
    assert_eq!(output.bytes().len(), WRITTEN);
    assert_eq!(end(&mut running).await.exit_code, Some(0));
}

async fn reader_that_leaves_does_not_stall_the_command() {
    let attempt = Attempt::shell("head -c 4000000 /dev/zero; exit 6");
    let mut running = attempt.spawn();
    drop(running.output());
    assert_eq!(end(&mut running).await.exit_code, Some(6));
}

async fn last_words_before_a_kill_arrive() {
    let attempt = Attempt::shell("yes | head -c 60000; echo ready >&2; sleep MARKER");
    let mut running = attempt.spawn();
    let mut output = Output::of(&mut running);
    output.until("ready").await;
    running.kill(Duration::ZERO, KillReason::Cancelled);
    let outcome = end(&mut running).await;
    output.rest().await;
    assert_eq!(outcome.reason, Reason::Killed(KillReason::Cancelled));
    assert_eq!(output.of_stream(Stream::Stdout).len(), 60_000);
}

async fn straggler_does_not_keep_the_output_open() {
    let attempt = Attempt::shell(
        "echo early; setsid sh -c 'echo late; : > up; sleep MARKER' & \
        while [ ! -e up ]; do sleep 0.01; done; echo $!",
    );
    let (outcome, output) = attempt.run().await;
    assert_eq!(
        (outcome.reason, outcome.exit_code),
        (Reason::Exited, Some(0))
    );
    let text = output.text();
    assert!(text.starts_with("early\nlate\n"), "{text:?}");
    let straggler = text.lines().nth(2).unwrap().parse().unwrap();
    assert!(
        process(straggler).is_none_or(|process| !process.command_line.contains(&attempt.marker))
    );
    attempt.assert_nothing_left();
}
