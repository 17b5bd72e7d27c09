//! Backups that the server makes: asked for, one at a time, and by its timetable.

use drumtower_store::sqlite::backup::{self, Reason};
use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn a_backup_is_made_listed_and_sound() {
    let server = Server::start().await;
    let admin = server.admin();
    let nothing = admin.get("/api/v1/backups").await.expect(200);
    assert_eq!(nothing["items"], json!([]));
    let made = admin.post("/api/v1/backups", &json!({"logs": true})).await;
    let made = made.expect(201);
    assert_eq!(
        (&made["reason"], &made["logs"]),
        (&json!("asked"), &json!(true))
    );
    let listed = admin.get("/api/v1/backups").await.expect(200);
    assert_eq!(listed["items"], json!([made]));
    let path = std::path::PathBuf::from(made["path"].as_str().unwrap());
    assert!(path.starts_with(server.file("backups")));
    backup::verify(&path, &mut |_| {}).expect("it is sound");
    let refused = admin.post("/api/v1/backups", &json!({"log": true})).await;
    assert_eq!(refused.expect(400)["code"], "unknown_field");
    server.stop().await;
}

#[tokio::test]
async fn a_second_one_at_once_is_refused() {
    let server = Server::start().await;
    let directory = server.file("backups");
    std::fs::create_dir_all(&directory).unwrap();
    let lock = std::fs::File::create(directory.join(".lock")).unwrap();
    lock.lock().unwrap();
    let refused = server.admin().post("/api/v1/backups", &json!({})).await;
    assert_eq!(refused.expect(409)["code"], "backup_under_way");
    drop(lock);
    server
        .admin()
        .post("/api/v1/backups", &json!({}))
        .await
        .expect(201);
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_made_says_why() {
    let server = Server::start().await;
    std::fs::write(server.file("backups"), "in the way").unwrap();
    let failed = server.admin().post("/api/v1/backups", &json!({})).await;
    let failed = failed.expect(503);
    assert_eq!(failed["code"], "backup_failed");
    assert!(failed["detail"].as_str().unwrap().contains("backups"));
    server.stop().await;
}

#[tokio::test]
async fn made_and_failed_ones_are_counted() {
    let server = Server::start().await;
    let admin = server.admin();
    let figures = async || admin.get("/metrics").await.text();
    let last = "\ndrumtower_backup_last_success_timestamp_seconds ";
    assert!(!figures().await.contains(last));
    std::fs::write(server.file("backups"), "in the way").unwrap();
    admin.post("/api/v1/backups", &json!({})).await.expect(503);
    std::fs::remove_file(server.file("backups")).unwrap();
    let made = admin.post("/api/v1/backups", &json!({})).await.expect(201);
    let figures = figures().await;
    for outcome in ["made", "failed"] {
        let series = format!("\ndrumtower_backups_total{{outcome=\"{outcome}\"}} 1\n");
        assert!(figures.contains(&series), "{figures}");
    }
    let created: jiff::Timestamp = made["created"].as_str().unwrap().parse().unwrap();
    let (_, told) = figures.split_once(last).expect("it is told");
    let told: f64 = told.lines().next().unwrap().parse().unwrap();
    assert_eq!(told, created.as_millisecond() as f64 / 1e3);
    server.stop().await;
}

#[tokio::test]
async fn by_timetable_the_first_is_made_at_once() {
    let server = Server::start_with(tempfile::tempdir().unwrap(), |options| {
        options.backup.every = Some("6h".parse().unwrap());
        options.backup.keep = 1;
    })
    .await;
    let directory = server.file("backups");
    let made = tokio::time::timeout(crate::server::PATIENCE, async {
        loop {
            let found = backup::list(&directory).unwrap();
            if !found.is_empty() {
                return found;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
    let made = made.await.expect("one is made");
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].manifest.reason, Reason::Scheduled);
    server.stop().await;
}

#[tokio::test]
async fn by_timetable_the_newest_are_kept_and_those_asked_for_stay() {
    let server = Server::start_with(tempfile::tempdir().unwrap(), |options| {
        options.backup.every = Some("* * * * * *".parse().unwrap());
        options.backup.keep = 1;
    })
    .await;
    let directory = server.file("backups");
    let scheduled = || -> Vec<String> {
        let found = backup::list(&directory).unwrap().into_iter();
        let found = found.filter(|it| it.manifest.reason == Reason::Scheduled);
        found.map(|it| it.name).collect()
    };
    let first = crate::server::eventually("a first one", async || scheduled().pop()).await;
    // Only now: one that is under way puts the timetable off by minutes. The next look comes in a quarter of one.
    let asked = crate::server::eventually("the first has ended", async || {
        let answer = server.admin().post("/api/v1/backups", &json!({})).await;
        (answer.status == 201).then(|| answer.json()["name"].as_str().unwrap().to_owned())
    })
    .await;
    crate::server::eventually("a later one takes its place", async || {
        let found = scheduled();
        (!found.is_empty() && !found.contains(&first)).then_some(())
    })
    .await;
    let found = backup::list(&directory).unwrap();
    assert!(found.iter().any(|it| it.name == asked), "{found:?}");
    server.stop().await;
}
