//! What people are told about a manifest that cannot be understood.

use super::{Document, Source, Spec, parse};

fn faults(text: &str) -> Vec<String> {
    let (_, faults) = parse(&Source {
        name: "jobs.yaml".into(),
        text: text.into(),
    });
    faults.iter().map(ToString::to_string).collect()
}

const GOOD: &str = "kind: Job\nname: good\nschedule:\n  - cron: \"*/5 * * * *\"\n    timezone: Europe/Berlin\n\
                    task:\n  exec:\n    argv: [echo, hello]\nparams: {a: 1, b: [x, null]}\n";

#[test]
fn a_good_file_gives_its_documents_in_order() {
    let other = GOOD.replace("good", "other");
    let (documents, faults) = parse(&Source {
        name: "jobs.yaml".into(),
        text: format!("---\n{GOOD}---\n{other}"),
    });
    assert_eq!(faults, []);
    let titles: Vec<String> = documents.iter().map(Document::title).collect();
    assert_eq!(titles, ["job default/good", "job default/other"]);
    let places: Vec<String> = documents.iter().map(Document::place).collect();
    assert_eq!(places, ["jobs.yaml:2", "jobs.yaml:12"]);
    let Spec::Job(job) = &documents[0].spec else {
        panic!("a job");
    };
    assert_eq!(
        job.params.as_ref().map(|params| params.as_str()),
        Some(r#"{"a":1,"b":["x",null]}"#)
    );
}

#[test]
fn each_fault_names_its_place_its_key_and_the_nearest_name() {
    let cases = [
        (
            "kind: Job\nname: a\nshedule:\n  - every: 5s\ntask: {exec: {argv: [a]}}\n",
            "jobs.yaml:3:1: unknown key `shedule`: did you mean `schedule`?",
        ),
        (
            "kind: Job\nname: a\ntask:\n  exec:\n    arg: [a]\n",
            "jobs.yaml:5:5: task.exec: unknown key `arg`: did you mean `argv`?",
        ),
        (
            "kind: Job\nname: a\ntask:\n  exce: {argv: [a]}\n",
            "jobs.yaml:4:3: task: unknown key `exce`: did you mean `exec`?",
        ),
        (
            "kind: Job\nname: a\ntask: {exec: {argv: [a]}}\nweight: heavy\n",
            "jobs.yaml:4:9: weight: expected a whole number",
        ),
        (
            "kind: Job\nname: a\ntask: {exec: {argv: [a]}}\nweight: 0\n",
            "jobs.yaml:4:1: weight: `0` is not between 1 and 10000",
        ),
        (
            "kind: Job\nname: Not a name\ntask: {exec: {argv: [a]}}\n",
            "jobs.yaml:2:7: name: `Not a name` is not a job name: `N` at character 1 is not one of a-z 0-9 . _ -",
        ),
        (
            "kind: Job\nname: a\ntask:\n  exec:\n    argv: []\n",
            "jobs.yaml:5:5: task.exec.argv: is empty: give the program and its arguments, such as [\"echo\", \"hello\"]",
        ),
        (
            "kind: Job\nname: a\n",
            "jobs.yaml:2:1: `task` is missing: add it",
        ),
        (
            "kind: Job\nname: a\ntask:\n  exec: {}\n",
            "jobs.yaml:4:3: task.exec.argv: is empty: give the program and its arguments, such as [\"echo\", \"hello\"]",
        ),
        (
            "kind: Job\nname: a\nname: b\ntask: {exec: {argv: [a]}}\n",
            "jobs.yaml:3:1: `name` is given twice: remove one",
        ),
    ];
    let found: Vec<Vec<String>> = cases.iter().map(|(text, _)| faults(text)).collect();
    assert_eq!(found, cases.map(|(_, expected)| vec![expected.to_owned()]));
}

#[test]
fn faults_of_every_document_are_found_and_counted_from_the_top_of_the_file() {
    let text =
        format!("kind: Jobs\nname: a\ntask: {{exec: {{argv: [a]}}}}\n---\n{GOOD}timeuot: 5s\n");
    let found = faults(&text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        found[0],
        "jobs.yaml:1:7: kind: unknown value `Jobs`: did you mean `Job`?"
    );
    assert_eq!(
        found[1],
        "jobs.yaml:14:1: unknown key `timeuot`: did you mean `timeout`?"
    );
}

const HOLIDAYS: &str = "kind: Calendar\nname: holidays\nweekly: [sat, sun]\ninclude: [12-25, 2026-10-01..2026-10-07]\n";

#[test]
fn jobs_and_calendars_may_stand_in_one_file() {
    let (documents, faults) = parse(&Source {
        name: "jobs.yaml".into(),
        text: format!("{GOOD}---\n{HOLIDAYS}"),
    });
    assert_eq!(faults, []);
    let titles: Vec<String> = documents.iter().map(Document::title).collect();
    assert_eq!(titles, ["job default/good", "calendar default/holidays"]);
}

#[test]
fn faults_of_calendars_name_their_place_too() {
    let cases = [
        (
            HOLIDAYS.replace("12-25", "12-32"),
            "jobs.yaml:4:11: include[0]: `12-32` is not a day of any year: write month and day, as in `12-25`",
        ),
        (
            HOLIDAYS.replace("sat", "samstag"),
            "jobs.yaml:3:10: weekly[0]: unknown value `samstag`: there is mon, tue, wed, thu, fri, sat, sun",
        ),
        (
            HOLIDAYS.replace("include", "includes"),
            "jobs.yaml:4:1: unknown key `includes`: did you mean `include`?",
        ),
        (
            HOLIDAYS.replace("kind: Calendar", "kind: Workflow"),
            "jobs.yaml:1:7: kind: unknown value `Workflow`: there is Job, Calendar, Queue",
        ),
        (
            HOLIDAYS.replace("kind: Calendar\n", ""),
            "jobs.yaml:1:1: `kind` is missing: write `kind: Job`, `kind: Calendar` or `kind: Queue`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(faults(&text), [expected]);
    }
}

#[test]
fn a_bad_schedule_points_at_the_schedule() {
    let found = faults(&GOOD.replace("*/5 *", "*/5 24"));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("jobs.yaml:4:5: schedule[0].cron: cron `*/5 24 * * *`: hour field"),
        "{}",
        found[0]
    );
}

#[test]
fn what_is_not_yaml_at_all_is_one_fault() {
    for text in [
        "a: [",
        "\t- x: {",
        "kind: Job\n  name: a\n",
        "just words\n",
        "- a\n- b\n",
        "&a [*a]\n",
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text:?}: {found:?}");
        assert!(found[0].starts_with("jobs.yaml:"), "{found:?}");
    }
}

#[test]
fn parameters_are_kept_as_they_are_written_or_refused() {
    let given = |value: &str| {
        let text = format!(
            "kind: Job\nname: a\ntask: {{exec: {{argv: [a]}}}}\nlabels: {{zip: 01234}}\nparams: {{list: [1, {value}]}}\n"
        );
        parse(&Source {
            name: "a.yaml".into(),
            text,
        })
    };
    let kept = |value: &str| {
        let (documents, faults) = given(value);
        assert_eq!(faults, [], "{value}");
        documents[0].body().expect("a body")["params"]["list"][1].clone()
    };
    for word in ["NO", "n", "on", "Yes", "'01234'"] {
        assert_eq!(kept(word), word.trim_matches('\''), "{word}");
    }
    assert_eq!(kept("true"), true);
    assert_eq!(kept("1.5"), 1.5);
    assert_eq!(kept("0.5"), 0.5);
    assert_eq!(kept("0"), 0);
    assert_eq!(kept("18446744073709551615"), u64::MAX);
    for number in ["01234", "-007", "123456789012345678901"] {
        let (_, faults) = given(number);
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let expected = format!(
            "a.yaml:5:20: params.list[1]: `{number}` would not be kept as it is written: put it in quotes to make it text"
        );
        assert_eq!(told, [expected]);
    }
}
