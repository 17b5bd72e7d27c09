//! Locks over the API: held by one, renewed, given back, waited for, kept over a restart.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::server::{Server, eventually};

const LOCK: &str = "/api/v1/namespaces/default/locks/import";

fn at(verb: &str) -> String {
    format!("{LOCK}/{verb}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_taken_renewed_and_given_back() {
    let server = Server::start().await;
    let one = server.client("operator", Some("default")).await;
    let two = server.client("operator", None).await;
    one.get(LOCK).await.problem(404, "no_such_lock");
    let held = one
        .post(&at("acquire"), &json!({"owner": "one", "ttl": "1m"}))
        .await
        .expect(200);
    assert_eq!(
        (&held["owner"], &held["ttl_ms"]),
        (&json!("one"), &json!(60_000))
    );
    let fence = json!({"fence": held["fence"]});
    let again = one
        .post(&at("acquire"), &json!({"owner": "one"}))
        .await
        .expect(200);
    assert_eq!(
        (&again["fence"], &again["ttl_ms"]),
        (&held["fence"], &json!(60_000))
    );
    let refused = two
        .post(&at("acquire"), &json!({"owner": "two"}))
        .await
        .problem(409, "lock_held");
    assert!(
        refused["detail"].as_str().unwrap().contains("`one`"),
        "{refused}"
    );
    assert_eq!(two.get(LOCK).await.expect(200)["owner"], "one");
    let listed = two.get("/api/v1/locks").await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    one.post(&at("renew"), &fence).await.expect(200);
    one.post(&at("renew"), &json!({"fence": "1"}))
        .await
        .problem(409, "lock_lost");
    one.post(&at("release"), &json!({"fence": "1"}))
        .await
        .problem(409, "lock_lost");
    assert_eq!(one.post(&at("release"), &fence).await.status, 204);
    one.post(&at("renew"), &fence)
        .await
        .problem(409, "lock_lost");
    let next = two
        .post(&at("acquire"), &json!({"owner": "two"}))
        .await
        .expect(200);
    let number = |held: &Value| held["fence"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(number(&next) > number(&held));
    assert_eq!(one.delete(LOCK).await.status, 204, "by force");
    one.delete(LOCK).await.problem(404, "no_such_lock");
    let told = server
        .admin()
        .get("/api/v1/audit?kind=lock")
        .await
        .expect(200);
    assert_eq!(
        told["items"].as_array().unwrap().len(),
        1,
        "only what was done by force"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_gets_it_when_it_is_free() {
    let server = Server::start().await;
    let (one, two) = (server.admin(), server.admin());
    let held = one
        .post(&at("acquire"), &json!({"owner": "one"}))
        .await
        .expect(200);
    let body = json!({"owner": "two", "wait": "4m"});
    let path = at("acquire");
    let waiting = two.post(&path, &body);
    let short = json!({"owner": "three", "wait": "10ms"});
    let refused = async {
        one.post(&at("acquire"), &short)
            .await
            .problem(409, "lock_held")
    };
    let release = async {
        refused.await;
        one.post(&at("release"), &json!({"fence": held["fence"]}))
            .await
    };
    let (got, released) = tokio::join!(waiting, release);
    assert_eq!(released.status, 204);
    assert_eq!(got.expect(200)["owner"], "two");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gave_up_waiting_is_not_given_it() {
    let server = Server::start().await;
    let (one, three) = (server.admin(), server.admin());
    let held = one
        .post(&at("acquire"), &json!({"owner": "one"}))
        .await
        .expect(200);
    // It waits, and hangs up.
    let address = server.url.trim_start_matches("http://").to_owned();
    let body = json!({"owner": "two", "ttl": "24h", "wait": "4m"}).to_string();
    let request = format!(
        "POST {} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        at("acquire"),
        server.local,
        body.len()
    );
    let mut two = tokio::net::TcpStream::connect(address).await.unwrap();
    two.write_all(request.as_bytes()).await.unwrap();
    let path = at("acquire").replace("/acquire", "");
    let waiting = async |count: u64| {
        eventually(&format!("{count} wait"), async || {
            let shown = one.get(&path).await.expect(200);
            (shown["waiting"] == count).then_some(())
        })
        .await;
    };
    waiting(1).await;
    let listed = one.get("/api/v1/locks").await.expect(200);
    assert_eq!(listed["items"][0]["waiting"], 1);
    drop(two);
    waiting(0).await;
    let fence = json!({"fence": held["fence"]});
    assert_eq!(one.post(&at("release"), &fence).await.status, 204);
    let body = json!({"owner": "three", "wait": "20s"});
    let got = three.post(&at("acquire"), &body).await.expect(200);
    assert_eq!(got["owner"], "three");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_refused_with_its_field() {
    let server = Server::start().await;
    let admin = server.admin();
    for (body, field) in [
        (json!({"owner": ""}), "owner"),
        (json!({"owner": "x", "ttl": "10ms"}), "ttl"),
        (json!({"owner": "x", "ttl": "soon"}), "ttl"),
        (json!({"owner": "x", "wait": "6m"}), "wait"),
    ] {
        let refused = admin
            .post(&at("acquire"), &body)
            .await
            .problem(422, "invalid_field");
        assert_eq!(refused["field"], field, "{refused}");
    }
    let refused = admin
        .post(&at("renew"), &json!({"fence": "x"}))
        .await
        .problem(422, "invalid_field");
    assert_eq!(refused["field"], "fence");
    server
        .client("viewer", None)
        .await
        .post(&at("acquire"), &json!({"owner": "x"}))
        .await
        .problem(403, "forbidden_role");
    server
        .client("operator", Some("b"))
        .await
        .post(&at("acquire"), &json!({"owner": "x"}))
        .await
        .problem(403, "forbidden_namespace");
    server.stop().await;
}
