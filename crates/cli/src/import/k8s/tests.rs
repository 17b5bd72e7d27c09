//! What becomes of a CronJob, and what is said about it.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Given {
    #[command(flatten)]
    options: Options,
}

fn imported(text: &str, flags: &[&str]) -> Imported {
    let given = Given::parse_from([&["import"], flags].concat());
    let source = Source {
        name: "cj.yaml".into(),
        text: text.into(),
    };
    import(&source, &given.options).expect("an import")
}

fn notes(imported: &Imported) -> Vec<String> {
    imported
        .notes
        .iter()
        .map(|note| note.at(&imported.source))
        .collect()
}

const REPORT: &str = r#"apiVersion: batch/v1
kind: CronJob
metadata:
  name: report
  namespace: billing
  labels: {app.kubernetes.io/name: report}
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  suspend: true
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  successfulJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 600
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: report
              image: registry/report:1.2
              command: [/bin/report]
              args: ["--day", "$(DAY)"]
              workingDir: /srv
              env:
                - {name: DAY, value: today}
                - {name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}
              volumeMounts: [{name: data, mountPath: /data}]
          volumes: [{name: data, emptyDir: {}}]
"#;

#[test]
fn what_has_a_counterpart_is_carried_over() {
    let made = imported(REPORT, &[]);
    assert_eq!(made.faults, []);
    let document = &made.documents[0];
    assert!(document.paused);
    assert_eq!(
        document.body().expect("a body"),
        json!({
            "kind": "Job",
            "name": "report",
            "namespace": "billing",
            "labels": {"app.kubernetes.io/name": "report"},
            "schedule": [{"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dst_gap": "skip", "dst_fold": "both"}],
            "overlap": {"on_full": "queue", "depth": 1, "keep": "newest"},
            "misfire": {"policy": "latest", "window": "200s"},
            "retry": {"max_attempts": 3, "initial": "10s", "max": "6m"},
            "timeout": "600s",
            "task": {"exec": {"argv": ["/bin/report", "--day", "$(DAY)"], "cwd": "/srv", "env": {"DAY": "today"}}},
        })
    );
}

#[test]
fn what_has_none_is_named_with_its_line() {
    let said = notes(&imported(REPORT, &[]));
    let expected = [
        "cj.yaml:8: report: a time that clocks skip is left out, as there (dst_gap: skip)",
        "cj.yaml:8: report: a time that clocks show twice runs twice, as there (dst_fold: both)",
        "cj.yaml:13: report: successfulJobsHistoryLimit 3 is not carried over",
        "cj.yaml:31: report: volumes is not carried over: the command sees the files of the worker",
        "cj.yaml:24: report: `$(NAME)` is not filled in here: use a shell and $NAME",
        "cj.yaml:29: report: PASSWORD is not carried over: its value comes from elsewhere in the cluster",
        "cj.yaml:23: report: image \"registry/report:1.2\" is not carried over: the command runs on a worker as it is; what it needs must be there",
        "cj.yaml:30: report: volumeMounts is not carried over: the command sees the files of the worker",
        "cj.yaml:10: report: a manifest cannot say it: pause the job with `drumtower job pause report -n billing`, or import with --apply",
    ];
    assert_eq!(said, expected);
}

#[test]
fn what_cannot_be_done_is_refused_with_a_remedy() {
    let faults = |text: String| {
        let made = imported(&text, &[]);
        let faults = made.faults.iter();
        faults
            .map(|fault| fault.at(&made.source))
            .collect::<Vec<_>>()
    };
    let never = faults(REPORT.replace("Forbid", "Never"));
    assert_eq!(never.len(), 1);
    assert!(
        never[0].starts_with("cj.yaml:11: report: concurrencyPolicy: unknown value `Never`"),
        "{never:?}"
    );
    let bare = faults(REPORT.replace("              command: [/bin/report]\n", ""));
    assert!(bare[0].contains("`command` is missing"), "{bare:?}");
    let odd = faults(REPORT.replace("30 2 * * *", "99 2 * * *"));
    assert!(
        odd[0].starts_with("cj.yaml:4: schedule[0].cron: "),
        "{odd:?}"
    );
    assert_eq!(
        faults("kind: Deployment\n".to_owned()),
        ["cj.yaml: there is no CronJob in it"]
    );
}

#[test]
fn lists_prefixes_labels_and_zones_are_understood() {
    let item = REPORT
        .replace("  timeZone: Europe/Berlin\n", "")
        .replace('\n', "\n    ");
    let list = format!("apiVersion: v1\nkind: List\nitems:\n  - {item}\n  - {item}");
    let made = imported(
        &list,
        &[
            "--prefix",
            "k-",
            "--label",
            "from=k8s",
            "-n",
            "moved",
            "--timezone",
            "Asia/Tokyo",
        ],
    );
    assert_eq!(made.faults, []);
    let titles: Vec<String> = made
        .documents
        .iter()
        .map(|document| document.title())
        .collect();
    assert_eq!(titles, ["job moved/k-report", "job moved/k-report-2"]);
    let body = made.documents[1].body().expect("a body");
    assert_eq!(body["labels"]["from"], "k8s");
    assert_eq!(body["schedule"][0]["timezone"], "Asia/Tokyo");
}

#[test]
fn a_stepped_star_restricts_its_day() {
    let cron = |line: &str| {
        let made = imported(&REPORT.replace("30 2 * * *", line), &[]);
        assert_eq!(made.faults, []);
        made.documents[0].body().expect("a body")["schedule"][0]["cron"].clone()
    };
    assert_eq!(cron("0 0 */2 * mon"), "0 0 1-31/2 * mon");
    assert_eq!(cron("0 0 1,*/10 * */3"), "0 0 1,1-31/10 * 0-6/3");
    for plain in ["0 0 */2 * *", "0 0 * * */2", "0 0 */1 * mon", "@daily"] {
        assert_eq!(cron(plain), plain);
    }
    let said = notes(&imported(
        &REPORT.replace("30 2 * * *", "0 0 */2 * mon"),
        &[],
    ));
    assert!(
        said.iter().any(|note| note
            .starts_with("cj.yaml:8: report: `0 0 */2 * mon` is written `0 0 1-31/2 * mon`")),
        "{said:?}"
    );
}

#[test]
fn names_are_unique_where_they_live_and_other_kinds_are_told() {
    let item = |namespace: &str| {
        let item = REPORT.replace("namespace: billing", &format!("namespace: {namespace}"));
        item.replace('\n', "\n    ")
    };
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n  - {}\n  - {}\n  - {{kind: Secret, metadata: {{name: s}}}}\n",
        item("billing"),
        item("audit")
    );
    let made = imported(&list, &[]);
    let titles: Vec<String> = made
        .documents
        .iter()
        .map(|document| document.title())
        .collect();
    assert_eq!(titles, ["job billing/report", "job audit/report"]);
    let said = notes(&made);
    assert!(
        said.iter()
            .any(|note| note.ends_with(": `Secret` is not a CronJob and is passed over")),
        "{said:?}"
    );
}

#[test]
fn values_of_another_type_are_faults_and_not_lost() {
    let cases = [
        ("suspend: true", "suspend: yes", "suspend: `\"yes\"`"),
        ("value: today", "value: true", "value: `true`"),
        ("\"--day\"", "7", "args: `7`"),
        (
            "backoffLimit: 2",
            "backoffLimit: two",
            "backoffLimit: `\"two\"`",
        ),
        ("name: DAY,", "nmae: DAY,", "env[0]: `name` is missing"),
    ];
    for (from, to, said) in cases {
        let made = imported(&REPORT.replace(from, to), &[]);
        let faults: Vec<&str> = made
            .faults
            .iter()
            .map(|fault| fault.text.as_str())
            .collect();
        assert!(
            faults.len() == 1 && faults[0].contains(said),
            "{to}: {faults:?}"
        );
    }
    let long = REPORT.replace("restartPolicy: Never", "terminationGracePeriodSeconds: 90");
    let said = notes(&imported(&long, &[]));
    assert!(
        said.iter()
            .any(|note| note.contains("terminationGracePeriodSeconds 90 is not carried over")),
        "{said:?}"
    );
}
