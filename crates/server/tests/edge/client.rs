//! A plain HTTP client.

use std::io::{BufRead, BufReader};

use http::{Method, Request, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

#[derive(Clone)]
pub struct Client {
    url: String,
    token: Option<String>,
    agent: ureq::Agent,
}

#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: http::HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The body, which must have come with this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self.json()
    }

    /// Checks that it worked, in whichever way.
    #[track_caller]
    pub fn success(self) {
        assert!(self.status.is_success(), "{}", self.text());
    }

    /// Checks that this is a problem as the contract has it, and returns it.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{}",
            self.text()
        );
        let problem = self.expect(status);
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert!(
            problem["title"]
                .as_str()
                .is_some_and(|title| !title.is_empty()),
            "{problem}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| !detail.is_empty()),
            "{problem}"
        );
        problem
    }
}

impl Client {
    pub fn new(url: &str, token: Option<&str>) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build();
        Self {
            url: url.to_owned(),
            token: token.map(str::to_owned),
            agent: config.into(),
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], None).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, &[], None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, &[], Some(body.to_string())).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call("PUT", path, &[], Some(body.to_string())).await
    }

    pub async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<String>,
    ) -> Answer {
        let request = self.request(method, path, headers);
        let agent = self.agent.clone();
        let work = move || {
            let answered = match body {
                Some(body) => agent.run(request.body(body).unwrap()),
                None if request.method_ref() == Some(&Method::POST) => {
                    agent.run(request.body(String::new()).unwrap())
                }
                None => agent.run(request.body(()).unwrap()),
            };
            let (parts, body) = answered.unwrap().into_parts();
            let body = body
                .into_with_config()
                .limit(64 << 20)
                .read_to_vec()
                .unwrap();
            Answer {
                status: parts.status,
                headers: parts.headers,
                body,
            }
        };
        tokio::task::spawn_blocking(work).await.unwrap()
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> http::request::Builder {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        })
    }

    /// The status of an answer whose body is not read.
    pub async fn status(&self, path: &str) -> u16 {
        let (request, agent) = (self.request("GET", path, &[]), self.agent.clone());
        let work = move || agent.run(request.body(()).unwrap()).unwrap().status();
        tokio::task::spawn_blocking(work).await.unwrap().as_u16()
    }

    /// Lines of a body as they come; the channel closes at its end.
    pub fn lines(&self, path: &str) -> mpsc::UnboundedReceiver<String> {
        self.lines_with(path, &[])
    }

    pub fn lines_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> mpsc::UnboundedReceiver<String> {
        let (request, agent) = (self.request("GET", path, headers), self.agent.clone());
        let (out, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let answer = agent.run(request.body(()).unwrap()).unwrap();
            assert_eq!(answer.status(), 200);
            for line in BufReader::new(answer.into_body().into_reader()).lines() {
                // A server that cuts a stream off and a test that has seen enough both end it.
                let Ok(line) = line else { return };
                if out.send(line).is_err() {
                    return;
                }
            }
        });
        lines
    }
}
