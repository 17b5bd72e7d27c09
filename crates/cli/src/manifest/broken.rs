//! Manifests that people get wrong, and every word that they are told. A change of a message shows here.

use super::{Source, parse};

/// Stands where `TASK` is written.
const TASK: &str = "task: {exec: {argv: [a]}}";

/// What is written below `kind` and `name`, and what is said.
const BELOW_NAME: &[(&str, &str)] = &[
    (
        "schedule:\n  - corn: '* * * * *'\nTASK\n",
        "j.yaml:4:5: schedule[0]: unknown key `corn`: did you mean `cron`?",
    ),
    (
        "schedule:\n  - cron: '* * * * *'\n  - cron: '99 * * * *'\nTASK\n",
        "j.yaml:5:5: schedule[1].cron: cron `99 * * * *`: minute field, position 1: `99` is out of range: use 0-59",
    ),
    (
        "schedule:\n  - every: 5s\n    cron: '* * * * *'\nTASK\n",
        "j.yaml:4:5: schedule[0]: give exactly one of `cron`, `every`, `at` and `after_end`; found `cron` and `every`",
    ),
    (
        "schedule:\n  - cron: '0 2 * * *'\n    timezone: Europe/Berln\nTASK\n",
        "j.yaml:5:5: schedule[0].timezone: timezone `Europe/Berln` is not in the time-zone database: use an IANA name such as `Europe/Berlin`, or `UTC`",
    ),
    (
        "schedule:\n  - cron: */5 * * * *\nTASK\n",
        "j.yaml:4:11: a value that begins with `*` must be quoted, as in \"*/5 * * * *\"",
    ),
    (
        "schedule:\n  - at: 2026-13-01\nTASK\n",
        "j.yaml:4:5: schedule[0].at: at `2026-13-01` is not an instant: use RFC 3339 with an offset and at most milliseconds, such as `2026-01-31T08:00:00Z`",
    ),
    (
        "schedule:\n  - every: 5 parsecs\nTASK\n",
        "j.yaml:4:5: schedule[0]: duration `5 parsecs`: a unit is missing: use whole numbers followed by d, h, m, s or ms",
    ),
    (
        "schedule: 5s\nTASK\n",
        "j.yaml:3:11: schedule: expected a list: begin each entry with `- `, or write [a, b]",
    ),
    (
        "schedule:\n  every: 5s\nTASK\n",
        "j.yaml:4:3: schedule: expected a list: begin each entry with `- `, or write [a, b]",
    ),
    (
        "overlap: skpi\nTASK\n",
        "j.yaml:3:10: overlap: unknown value `skpi`: did you mean `skip`?",
    ),
    (
        "labels: [a, b]\nTASK\n",
        "j.yaml:3:9: labels: expected keys with values, such as `key: value`",
    ),
    (
        "labels:\n  a=b: c\nTASK\n",
        "j.yaml:4:3: labels.a=b: a label has a key without `=` and `,` and a value, each up to 256 printable characters",
    ),
    (
        "misfire:\n  polcy: all\nTASK\n",
        "j.yaml:4:3: misfire: unknown key `polcy`: did you mean `policy`?",
    ),
    (
        "misfire:\n  policy: al\nTASK\n",
        "j.yaml:4:11: misfire.policy: unknown value `al`: did you mean `all`?",
    ),
    (
        "misfire:\n  window: 5 minutes\nTASK\n",
        "j.yaml:4:3: misfire.window: duration `5 minutes`: a unit is missing: use whole numbers followed by d, h, m, s or ms",
    ),
    (
        "misfire:\n  window: 5m\n  window: 6m\nTASK\n",
        "j.yaml:5:3: `window` is given twice: remove one",
    ),
    (
        "bounds:\n  max_fires: 1.5\nTASK\n",
        "j.yaml:4:14: bounds.max_fires: expected a whole number",
    ),
    (
        "schedule:\n  - every: 5s\nbounds:\n  start: tomorrow\nTASK\n",
        "j.yaml:6:3: bounds.start: start `tomorrow` is not an instant: use RFC 3339 with an offset and at most milliseconds, such as `2026-01-31T08:00:00Z`",
    ),
    (
        "calendar: {only: holidays}\nTASK\n",
        "j.yaml:3:18: calendar.only: expected a list: begin each entry with `- `, or write [a, b]",
    ),
    (
        "retention: 2d\nTASK\n",
        "j.yaml:3:12: retention: unknown value `2d`: there is 1d, 7d, 30d, keep",
    ),
    (
        "priority: 10\nTASK\n",
        "j.yaml:3:1: priority: `10` is not between 0 and 9",
    ),
    (
        "timeout: 5\nTASK\n",
        "j.yaml:3:1: timeout: duration `5`: a unit is missing: use whole numbers followed by d, h, m, s or ms",
    ),
    (
        "description: \"open\nTASK\n",
        "j.yaml:4:1: invalid indentation in multiline quoted scalar: is a quote left open above?",
    ),
    (
        "description: yes: no\nTASK\n",
        "j.yaml:3:17: mapping values are not allowed in this context: quote a text that holds `: `, or check how far the line is indented",
    ),
    (
        "params: {a: 1\nTASK\n",
        "j.yaml:4:5: while parsing a flow mapping, did not find expected ',' or '}': is a bracket left open?",
    ),
    (
        "\ttimeout: 5s\nTASK\n",
        "j.yaml:3:1: a tab: indent with spaces",
    ),
    (
        "task:\n  exec: {argv: [a]}\n  handler: {name: b}\n",
        "j.yaml:5:3: task: takes one key, and `handler` is one too many: remove it, or indent it further if it belongs to the key above",
    ),
    (
        "task:\n  exec:\n    argv: echo hello\n",
        "j.yaml:5:11: task.exec.argv: expected a list: begin each entry with `- `, or write [a, b]",
    ),
    (
        "task: [exec]\n",
        "j.yaml:3:7: task: found a list, expected one key with its value",
    ),
    (
        "task:\n  exce: {argv: [a]}\n",
        "j.yaml:4:3: task: unknown key `exce`: did you mean `exec`?",
    ),
    (
        "task:\n  handler: {nmae: b}\n",
        "j.yaml:4:13: task.handler: unknown key `nmae`: did you mean `name`?",
    ),
    (
        "task:\n  handler:\n    name:\n",
        "j.yaml:5:9: task.handler.name: is empty: give it a value",
    ),
];

/// Whole documents; what holds none says so where files are read.
const WHOLE: &[(&str, &str)] = &[
    ("# nothing\n", ""),
    ("---\n---\n", ""),
    (
        "kind: job\nname: a\nTASK\n",
        "j.yaml:1:7: kind: unknown value `job`: did you mean `Job`?",
    ),
    (
        "apiVersion: batch/v1\nkind: CronJob\n",
        "j.yaml:2:7: kind: this is a CronJob of Kubernetes: `drumtower import k8s-cronjob FILE` makes a job of it",
    ),
    (
        "name: a\nTASK\n",
        "j.yaml:1:1: `kind` is missing: write `kind: Job`, `kind: Calendar` or `kind: Queue`",
    ),
    (
        "kind: Job\nkind: Job\nname: a\nTASK\n",
        "j.yaml:2:1: `kind` is given twice: remove one",
    ),
    (
        "kind: Job\nname:\nTASK\n",
        "j.yaml:2:5: name: is empty: give it a value",
    ),
];

fn told(text: &str) -> String {
    let (_, faults) = parse(&Source {
        name: "j.yaml".into(),
        text: text.replace("TASK", TASK),
    });
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    faults.join(" | ")
}

#[test]
fn each_mistake_is_told_in_these_words() {
    for (text, expected) in BELOW_NAME {
        assert_eq!(
            told(&format!("kind: Job\nname: a\n{text}")),
            *expected,
            "{text}"
        );
    }
    for (text, expected) in WHOLE {
        assert_eq!(told(text), *expected, "{text}");
    }
}

#[test]
fn each_document_tells_of_its_own_mistakes() {
    let text =
        "kind: Job\nname: a\noverlap: skpi\nTASK\n---\nkind: Calendar\nname: c\nweekly: [mno]\n";
    assert_eq!(
        told(text),
        "j.yaml:3:10: overlap: unknown value `skpi`: did you mean `skip`? | j.yaml:8:10: weekly[0]: unknown value `mno`: did you mean `mon`?"
    );
}
