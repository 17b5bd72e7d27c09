//! What becomes of a crontab, and what is said about it.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Given {
    #[command(flatten)]
    options: Options,
}

fn imported(text: &str, system: bool, flags: &[&str]) -> Imported {
    let given = Given::parse_from([&["import"], flags].concat());
    let source = Source {
        name: "tab".into(),
        text: text.into(),
    };
    import(&source, system, &given.options).expect("an import")
}

const BERLIN: &[&str] = &["--timezone", "Europe/Berlin"];

fn bodies(imported: &Imported) -> Vec<Value> {
    assert_eq!(imported.faults, []);
    let bodies = imported.documents.iter().map(|document| document.body());
    bodies.collect::<Result<_>>().expect("bodies")
}

#[test]
fn a_line_keeps_its_meaning() {
    let made = imported(
        "# Saves it all.\n# Every night.\n30 2 * * *\t/usr/local/bin/backup.sh --all\n",
        false,
        BERLIN,
    );
    assert_eq!(
        bodies(&made),
        [json!({
            "kind": "Job",
            "name": "backup",
            "namespace": "default",
            "description": "Saves it all.\nEvery night.",
            "schedule": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dst_gap": "at_transition"}],
            "overlap": "allow",
            "misfire": {"policy": "skip"},
            "retry": {"max_attempts": 1, "max_lost": 1},
            "timeout": "24h",
            "task": {"exec": {"shell": "/usr/local/bin/backup.sh --all"}},
        })]
    );
    let notes: Vec<String> = made
        .notes
        .iter()
        .filter(|note| note.line > 0)
        .map(|note| note.at("tab"))
        .collect();
    assert_eq!(
        notes,
        [
            "tab:3: backup: at a time that clocks skip it runs when they change, as with cron (dst_gap: at_transition)"
        ]
    );
}

#[test]
fn settings_hold_for_the_lines_below_them() {
    let text = "PATH=/opt/bin:/bin\nMAILTO=ops\n@hourly sync\nSHELL=/bin/bash\nHOME=/srv\nCRON_TZ=Asia/Tokyo\n0 9 13 * fri mail joe%Hi\\%%Bye\n";
    let made = imported(text, false, &[]);
    let bodies = bodies(&made);
    assert_eq!(
        bodies[0]["task"]["exec"],
        json!({"shell": "sync", "env": {"PATH": "/opt/bin:/bin"}})
    );
    assert_eq!(
        bodies[1]["schedule"],
        json!([{"cron": "0 9 13 * fri", "timezone": "Asia/Tokyo"}])
    );
    assert_eq!(
        bodies[1]["task"]["exec"],
        json!({
            "argv": ["/bin/bash", "-c", "mail joe"],
            "env": {"HOME": "/srv", "PATH": "/opt/bin:/bin"},
            "cwd": "/srv",
            "stdin": "Hi%\nBye\n",
        })
    );
    let said: Vec<String> = made.notes.iter().map(|note| note.at("tab")).collect();
    assert!(
        said.iter()
            .any(|note| note.starts_with("tab:2: MAILTO is not carried over")),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|note| note.starts_with("tab:7: mail: both days are given")),
        "{said:?}"
    );
}

#[test]
fn names_are_unique_and_lines_out_of_use_are_no_description() {
    let text = "# m h  dom mon dow   command\n# 5 * * * * old\n* * * * * curl a\n\n# About b\n\n* * * * * curl b\n";
    let made = imported(
        text,
        false,
        &[
            "--timezone",
            "UTC",
            "--prefix",
            "web1-",
            "--label",
            "host=web1",
        ],
    );
    let bodies = bodies(&made);
    assert_eq!(
        (&bodies[0]["name"], &bodies[1]["name"]),
        (&json!("web1-curl"), &json!("web1-curl-2"))
    );
    for body in &bodies {
        assert_eq!(body.get("description"), None);
        assert_eq!(body["labels"], json!({"host": "web1"}));
        assert_eq!(body["schedule"], json!([{"cron": "* * * * *"}]));
    }
}

#[test]
fn the_systems_own_format_names_a_user() {
    let made = imported(
        "17 * * * * root cd / && run-parts /etc/cron.hourly\n",
        true,
        BERLIN,
    );
    let bodies = bodies(&made);
    assert_eq!(bodies[0]["name"], "run-parts");
    assert_eq!(bodies[0]["task"]["exec"]["user"], "root");
}

#[test]
fn what_cannot_be_is_said_with_its_line() {
    let made = imported("@reboot /usr/bin/agent\n* * * * * true\n", false, BERLIN);
    assert_eq!(made.documents.len(), 1);
    assert!(
        made.notes
            .iter()
            .any(|note| note.line == 1 && note.text.starts_with("@reboot makes no job")),
        "{:?}",
        made.notes
    );
    let made = imported(
        "* * * * * true\n61 * * * * true\nhello\nCRON_TZ=Mars\n",
        false,
        BERLIN,
    );
    let faults: Vec<String> = made.faults.iter().map(|fault| fault.at("tab")).collect();
    assert_eq!(made.documents.len(), 1, "the rest is made");
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(
        faults[0].starts_with("tab:2: cron `61 * * * *`: minute field"),
        "{faults:?}"
    );
    assert_eq!(
        faults[1],
        "tab:3: expected five fields of times and a command, or NAME=value"
    );
    assert!(
        faults[2].starts_with("tab:4: `Mars` is not in the time-zone database"),
        "{faults:?}"
    );
}

fn notes(made: &Imported) -> Vec<String> {
    made.notes.iter().map(|note| note.at("tab")).collect()
}

#[test]
fn a_line_that_follows_the_clock_needs_no_rule_for_clock_changes() {
    let made = imported("*/15 2 * * * sync\n30 2 * * * save\n", false, BERLIN);
    let bodies = bodies(&made);
    assert_eq!(
        bodies[0]["schedule"],
        json!([{"cron": "*/15 2 * * *", "timezone": "Europe/Berlin"}])
    );
    assert_eq!(bodies[1]["schedule"][0]["dst_gap"], "at_transition");
}

#[test]
fn only_cron_tz_moves_the_times() {
    let made = imported(
        "TZ=Asia/Tokyo\n0 9 * * * a\nCRON_TZ=Asia/Seoul\n0 9 * * * b\n",
        false,
        BERLIN,
    );
    let bodies = bodies(&made);
    assert_eq!(bodies[0]["schedule"][0]["timezone"], "Europe/Berlin");
    assert_eq!(bodies[0]["task"]["exec"]["env"]["TZ"], "Asia/Tokyo");
    assert_eq!(bodies[1]["schedule"][0]["timezone"], "Asia/Seoul");
    let said = notes(&made);
    assert!(
        said.iter()
            .any(|note| note.starts_with("tab:1: TZ is handed to the commands")),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|note| note.starts_with("tab:3: CRON_TZ is the zone") && note.contains("Debian")),
        "{said:?}"
    );
}

#[test]
fn lines_below_an_unknown_zone_are_left_out() {
    let made = imported(
        "0 9 * * * a\nCRON_TZ=Mars\n0 9 * * * b\nCRON_TZ=UTC\n0 9 * * * c\n",
        false,
        BERLIN,
    );
    let names: Vec<String> = made
        .documents
        .iter()
        .map(|document| document.title())
        .collect();
    assert_eq!(names, ["job default/a", "job default/c"]);
    assert_eq!(
        made.faults[1].at("tab"),
        "tab:3: its zone is that of line 2, which is not known"
    );
}

#[test]
fn a_user_before_the_command_is_suspicious() {
    let said = notes(&imported(
        "17 * * * * root run-parts /etc/cron.hourly\n",
        false,
        BERLIN,
    ));
    assert!(
        said.iter().any(
            |note| note.starts_with("tab:1: root: the command begins with `root`")
                && note.contains("--system")
        ),
        "{said:?}"
    );
    let said = notes(&imported(
        "17 * * * * root run-parts\n0 1 * * * root true\n",
        true,
        BERLIN,
    ));
    assert!(
        !said.iter().any(|note| note.contains("--system")),
        "{said:?}"
    );
}

#[test]
fn only_a_percent_is_escaped() {
    let made = imported("0 1 * * * printf 'a\\\\b\\%c'\n", false, BERLIN);
    assert_eq!(
        bodies(&made)[0]["task"]["exec"]["shell"],
        r"printf 'a\\b%c'"
    );
    let said = notes(&made);
    assert!(
        said.iter()
            .any(|note| note.starts_with("tab:1: printf: both backslashes")),
        "{said:?}"
    );
}
