//! The client against real servers on this machine. Names come from a table; addresses are checked and dialled for real.

mod place;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use drumtower_outbound::{Client, Error, Kind, Limits, Policy, Request, Response};
use http::{HeaderMap, Method};

use place::{Names, Place, reply};

fn policy(allow: &[&str]) -> Policy {
    Policy {
        allow: allow
            .iter()
            .map(|text| text.parse().expect("a network"))
            .collect(),
        ..Policy::default()
    }
}

fn client(policy: Policy, names: &[(&str, SocketAddr)]) -> Client {
    Client::with_resolver(policy, Arc::new(Names::new(names))).expect("a client")
}

fn get(url: &str) -> Request {
    Request {
        method: Method::GET,
        url: url.to_owned(),
        headers: HeaderMap::new(),
        body: Vec::new(),
    }
}

async fn send(client: &Client, request: Request) -> Result<Response, Error> {
    client.send(request, Limits::default()).await
}

#[tokio::test]
async fn loopback_is_refused_in_every_spelling_and_reached_when_listed() {
    let place = Place::start(|_| reply(200, &[], "hello")).await;
    let port = place.address.port();
    let closed = client(Policy::default(), &[("inner", place.address)]);
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]", "inner"] {
        let error = send(&closed, get(&format!("http://{host}:{port}/")))
            .await
            .expect_err(host);
        match &error {
            Error::Refused { refusal, .. } => assert_eq!(refusal.kind, Kind::Loopback, "{host}"),
            other => panic!("{host}: {other}"),
        }
        assert!(error.to_string().contains("--allow-outbound"), "{error}");
    }
    // The system's own resolver knows more spellings.
    let system = Client::new(Policy::default()).unwrap();
    for host in ["localhost", "127.1", "2130706433", "0x7f.0.0.1"] {
        let error = send(&system, get(&format!("http://{host}:{port}/")))
            .await
            .expect_err(host);
        assert!(
            matches!(error, Error::Refused { .. } | Error::Unresolved { .. }),
            "{host}: {error}"
        );
    }
    assert_eq!(place.count(), 0, "nothing was dialled");
    let open = client(policy(&["127.0.0.1"]), &[("inner", place.address)]);
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "inner"] {
        let answer = send(&open, get(&format!("http://{host}:{port}/"))).await;
        let answer = answer.unwrap_or_else(|error| panic!("{host}: {error}"));
        assert_eq!(
            (answer.status.as_u16(), &*answer.body),
            (200, &b"hello"[..])
        );
    }
}

#[tokio::test]
async fn a_name_with_good_and_bad_addresses_reaches_the_good_ones_only() {
    let good = Place::start(|_| reply(200, &[], "good")).await;
    let bad = SocketAddr::from(([10, 0, 0, 1], good.address.port()));
    let names = Names::new(&[("mixed", bad), ("mixed", good.address)]);
    let client = Client::with_resolver(policy(&["127.0.0.1"]), Arc::new(names)).unwrap();
    let url = format!("http://mixed:{}/", good.address.port());
    assert_eq!(send(&client, get(&url)).await.unwrap().body, b"good");
}

#[tokio::test]
async fn a_redirect_is_checked_like_a_first_address() {
    let inner = Place::start(|_| reply(200, &[], "secret")).await;
    let to = format!("http://inner:{}/x", inner.address.port());
    let outer = Place::start(move |_| reply(302, &[("location", &to)], "")).await;
    let inner_elsewhere = SocketAddr::from(([127, 0, 0, 2], inner.address.port()));
    let client = client(policy(&["127.0.0.1"]), &[("inner", inner_elsewhere)]);
    let url = format!("http://{}/", outer.address);
    let error = send(&client, get(&url)).await.expect_err("a refusal");
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert_eq!(inner.count(), 0);
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let other = Place::start(|_| reply(200, &[], "other")).await;
    let to_other = format!("http://{}/landing", other.address);
    let first = Place::start(move |request| {
        if request.starts_with("GET /away") {
            reply(302, &[("location", &to_other)], "")
        } else if request.starts_with("GET /here") {
            reply(302, &[("location", "/landed")], "")
        } else {
            reply(200, &[], "same")
        }
    })
    .await;
    let client = client(policy(&["127.0.0.1"]), &[]);
    let with_headers = |path: &str| {
        let mut request = get(&format!("http://{}{path}", first.address));
        for (name, value) in [
            ("authorization", "Bearer hush"),
            ("cookie", "a=b"),
            ("x-api-key", "hush"),
            ("accept", "text/plain"),
        ] {
            request.headers.insert(name, value.parse().unwrap());
        }
        request
    };
    assert_eq!(
        send(&client, with_headers("/here")).await.unwrap().body,
        b"same"
    );
    let kept = first.last();
    assert!(kept.contains("x-api-key: hush") && kept.contains("authorization: Bearer hush"));
    let answer = send(&client, with_headers("/away")).await.unwrap();
    assert_eq!(
        (&*answer.body, &*answer.url),
        (&b"other"[..], &*format!("http://{}/landing", other.address))
    );
    let seen = other.last();
    for gone in ["hush", "cookie"] {
        assert!(!seen.contains(gone), "{seen}");
    }
    assert!(seen.contains("accept: text/plain"), "{seen}");
}

#[tokio::test]
async fn methods_change_as_the_standard_says_and_bodies_stay_home() {
    let other = Place::start(|_| reply(200, &[], "other")).await;
    let away = format!("http://{}/", other.address);
    let place = Place::start(move |request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path.strip_prefix("/to/") {
            Some("away") => reply(307, &[("location", &away)], ""),
            Some(status) => reply(status.parse().unwrap(), &[("location", "/end")], ""),
            None => reply(200, &[], request),
        }
    })
    .await;
    let client = client(policy(&["127.0.0.1"]), &[]);
    let cases = [
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
    ];
    let post = |method: &str, to: &str| Request {
        method: method.parse().unwrap(),
        url: format!("http://{}/to/{to}", place.address),
        headers: HeaderMap::new(),
        body: b"the body".to_vec(),
    };
    for (method, status, expected) in cases {
        let answer = send(&client, post(method, &status.to_string()))
            .await
            .unwrap();
        let echoed = String::from_utf8(answer.body).unwrap();
        assert!(
            echoed.starts_with(&format!("{expected} /end ")),
            "{method} {status}: {echoed}"
        );
        assert_eq!(
            echoed.contains("the body"),
            expected == method,
            "{method} {status}: {echoed}"
        );
    }
    let error = send(&client, post("POST", "away"))
        .await
        .expect_err("a refusal");
    assert!(
        error.to_string().contains("body to another host"),
        "{error}"
    );
    assert_eq!(other.count(), 0);
}

#[tokio::test]
async fn redirects_are_counted_and_may_be_an_answer() {
    let place = Place::start(|_| reply(302, &[("location", "/again")], "moved")).await;
    let client = client(policy(&["127.0.0.1"]), &[]);
    let url = format!("http://{}/", place.address);
    let error = send(&client, get(&url)).await.expect_err("no end");
    assert!(
        matches!(error, Error::TooManyRedirects { most: 5, .. }),
        "{error}"
    );
    assert_eq!(place.count(), 6);
    let none = Limits {
        redirects: 0,
        ..Limits::default()
    };
    let answer = client.send(get(&url), none).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &*answer.body),
        (302, &b"moved"[..])
    );
}

#[tokio::test]
async fn what_comes_back_is_bounded() {
    let place = Place::start(|request| {
        if request.starts_with("GET /long") {
            reply(200, &[], &"x".repeat(3 << 20))
        } else {
            let long = "h".repeat(200_000);
            reply(200, &[("x-long", &long)], "")
        }
    })
    .await;
    let client = client(policy(&["127.0.0.1"]), &[]);
    let long = send(&client, get(&format!("http://{}/long", place.address)))
        .await
        .unwrap();
    assert_eq!((long.body.len(), long.truncated), (1 << 20, true));
    let error = send(&client, get(&format!("http://{}/head", place.address)))
        .await
        .expect_err("too long a head");
    assert!(matches!(error, Error::Exchange { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let client = client(policy(&["127.0.0.1"]), &[]);
    let short = Limits {
        total: Duration::from_millis(200),
        ..Limits::default()
    };
    let error = client.send(get(&url), short).await.expect_err("no answer");
    assert_eq!(error.to_string(), "no complete answer within 200 ms");
}

#[tokio::test]
async fn a_configured_proxy_gets_the_checked_address() {
    let place = Place::start(|_| reply(200, &[], "through")).await;
    let proxy = place::proxy().await;
    let mut policy = policy(&["127.0.0.1"]);
    policy.proxy = Some(format!("http://{}", proxy.address).parse().unwrap());
    let client = client(policy.clone(), &[("inner", place.address)]);
    let url = format!("http://inner:{}/", place.address.port());
    assert_eq!(send(&client, get(&url)).await.unwrap().body, b"through");
    assert!(
        proxy
            .last()
            .starts_with(&format!("CONNECT {} ", place.address)),
        "{}",
        proxy.last()
    );
    // The proxy does not loosen what may be reached.
    let error = send(&client, get("http://10.0.0.1/"))
        .await
        .expect_err("private");
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    policy.proxy = Some("ftp://x".parse().unwrap());
    assert!(Client::new(policy).is_err());
}

#[tokio::test]
async fn tls_is_checked_against_the_name_and_never_left_by_a_redirect() {
    let plain = Place::start(|_| reply(200, &[], "plain")).await;
    let to_plain = format!("http://{}/", plain.address);
    let (place, authority) = place::secure("inner", move |request| {
        if request.starts_with("GET /down") {
            reply(302, &[("location", &to_plain)], "")
        } else {
            reply(200, &[], "secure")
        }
    })
    .await;
    let mut policy = policy(&["127.0.0.1"]);
    let names = [("inner", place.address), ("other", place.address)];
    let at =
        |host: &str, path: &str| get(&format!("https://{host}:{}{path}", place.address.port()));
    let stranger = client(policy.clone(), &names);
    let error = send(&stranger, at("inner", "/"))
        .await
        .expect_err("unknown issuer");
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    policy.authorities = authority.into_bytes();
    let friend = client(policy, &names);
    assert_eq!(
        send(&friend, at("inner", "/")).await.unwrap().body,
        b"secure"
    );
    let error = send(&friend, at("other", "/"))
        .await
        .expect_err("another name");
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    let error = send(&friend, at("inner", "/down"))
        .await
        .expect_err("a step down");
    assert!(error.to_string().contains("from https to http"), "{error}");
    assert_eq!(plain.count(), 0);
}
