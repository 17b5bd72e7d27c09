//! The REST API, spoken over HTTP with or without TLS.
//!
//! Every answer that is not a success becomes a [`Failure`] whose exit code says what kind it is.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::Value;
use ureq::http::{Method, Request, Response, StatusCode, header};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, TcpConnector};
use ureq::{Agent, Body};

use crate::connect::{Connect, Target};
use crate::failure::{Exit, Failure, Result};
use crate::secure::{Secure, distrust};

/// An answer may take as long as the longest wait that the server offers, and a bit.
const PATIENCE: Duration = Duration::from_secs(330);
const CONNECT: Duration = Duration::from_secs(5);
/// The largest answer that is read whole.
const ANSWER_BYTES: u64 = 64 * 1024 * 1024;

pub struct Client {
    agent: Agent,
    target: Target,
}

/// One request, put together piece by piece.
pub struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Option<Value>,
    endless: bool,
}

/// A page or a whole listing.
pub type Items = Vec<Value>;

impl Call {
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            endless: false,
        }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub fn query(mut self, key: &'static str, value: impl ToString) -> Self {
        self.query.push((key, value.to_string()));
        self
    }

    pub fn maybe(self, key: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(key, value),
            None => self,
        }
    }

    pub fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    pub fn json(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// The answer is a stream that may go on for ever.
    pub fn endless(mut self) -> Self {
        self.endless = true;
        self
    }

    fn url(&self, base: &str) -> String {
        let mut url = format!("{base}{}", self.path);
        for (index, (key, value)) in self.query.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(key);
            url.push('=');
            escape(value, &mut url);
        }
        url
    }
}

/// One piece of a path, whatever a user typed.
pub fn segment(text: &str) -> String {
    let mut escaped = String::new();
    escape(text, &mut escaped);
    escaped
}

fn escape(text: &str, url: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
}

impl Client {
    pub fn new(connect: &Connect) -> Result<Self> {
        Ok(Self::to(connect.target()?))
    }

    pub fn to(target: Target) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT))
            .user_agent(concat!("drumtower/", env!("CARGO_PKG_VERSION")))
            .build();
        let connector = ().chain(TcpConnector::default()).chain(Secure::new(target.trust.clone()));
        Self {
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            target,
        }
    }

    /// Sends a call and gives its status and body; `Null` when there is no body.
    pub fn send(&self, call: Call) -> Result<(StatusCode, Value)> {
        let mut response = self.start(&call)?;
        let text = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES)
            .read_to_string();
        let text = text.map_err(|error| self.unreachable(&error))?;
        if text.is_empty() {
            return Ok((response.status(), Value::Null));
        }
        let value =
            serde_json::from_str(&text).map_err(|error| self.foreign(&error.to_string()))?;
        Ok((response.status(), value))
    }

    pub fn value(&self, call: Call) -> Result<Value> {
        self.send(call).map(|(_, value)| value)
    }

    /// The items of a listing that has one page.
    pub fn items(&self, call: Call) -> Result<Items> {
        self.value(call)
            .and_then(|mut answer| self.take_items(&mut answer))
    }

    fn take_items(&self, answer: &mut Value) -> Result<Items> {
        match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Err(self.foreign("a listing without `items`")),
        }
    }

    /// Every item of a listing, or the first `limit`, page after page.
    pub fn list(&self, page: impl Fn() -> Call, limit: Option<usize>) -> Result<Items> {
        let mut items = Items::new();
        let mut cursor: Option<String> = None;
        loop {
            let wanted = limit.map_or(1000, |limit| (limit - items.len()).clamp(1, 1000));
            let mut answer =
                self.value(page().query("limit", wanted).maybe("cursor", cursor.take()))?;
            items.extend(self.take_items(&mut answer)?);
            if let Some(limit) = limit.filter(|limit| items.len() >= *limit) {
                items.truncate(limit);
                return Ok(items);
            }
            match answer.get("next").and_then(Value::as_str) {
                Some(next) => cursor = Some(next.to_owned()),
                None => return Ok(items),
            }
        }
    }

    /// The lines of a streamed answer, each a JSON value.
    pub fn lines(&self, call: Call) -> Result<impl Iterator<Item = Result<Value>> + '_> {
        let response = self.start(&call.endless())?;
        let lines = BufReader::new(response.into_body().into_reader()).lines();
        Ok(lines.map(|line| {
            let line = line.map_err(|error| self.unreachable(&error))?;
            serde_json::from_str(&line).map_err(|error| self.foreign(&error.to_string()))
        }))
    }

    /// The lines of a streamed answer as they are.
    pub fn text_lines(&self, call: Call) -> Result<impl Iterator<Item = Result<String>> + '_> {
        let response = self.start(&call.endless())?;
        let lines = BufReader::new(response.into_body().into_reader()).lines();
        Ok(lines.map(|line| line.map_err(|error| self.unreachable(&error))))
    }

    fn start(&self, call: &Call) -> Result<Response<Body>> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.url(&self.target.url));
        if let Some(token) = &self.target.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let patience = (!call.endless).then_some(PATIENCE);
        let answer = match &call.body {
            Some(body) => {
                let request = request
                    .header(header::CONTENT_TYPE, "application/json")
                    .body(body.to_string());
                let request = request.map_err(|error| Failure::usage(error.to_string()))?;
                self.agent.run(
                    self.agent
                        .configure_request(request)
                        .timeout_global(patience)
                        .build(),
                )
            }
            None => {
                let request = request
                    .body(())
                    .map_err(|error| Failure::usage(error.to_string()))?;
                self.agent.run(
                    self.agent
                        .configure_request(request)
                        .timeout_global(patience)
                        .build(),
                )
            }
        };
        let mut response = answer.map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let text = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES)
            .read_to_string()
            .unwrap_or_default();
        Err(self.problem(status, &text))
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> Failure {
        if let Some(words) = distrust(error) {
            return Failure::new(Exit::Unavailable, format!("{}: {words}", self.target.url));
        }
        let message = format!("no answer from {}: {error}", self.target.url);
        Failure::new(Exit::Unavailable, message).remedy(
            "start a server with `drumtower dev` or `drumtower serve`, or name another with --url or DRUMTOWER_URL",
        )
    }

    fn foreign(&self, what: &str) -> Failure {
        Failure::failed(format!(
            "{} does not speak as a Drumtower server does: {what}",
            self.target.url
        ))
    }

    /// Turns a problem document into words and an exit code.
    fn problem(&self, status: StatusCode, text: &str) -> Failure {
        // The one answer that does not come from the API itself.
        if text.starts_with("this port speaks TLS") {
            let message = format!("{}: {}", self.target.url, text.trim_end());
            return Failure::new(Exit::Unavailable, message);
        }
        let problem: Value = serde_json::from_str(text).unwrap_or_default();
        let field = |name: &str| problem.get(name).and_then(Value::as_str);
        let detail = field("detail")
            .or(field("title"))
            .unwrap_or(status.canonical_reason().unwrap_or("no reason given"));
        let message = match field("field") {
            Some(field) if !detail.starts_with(field) => format!("{field}: {detail}"),
            _ => detail.to_owned(),
        };
        let mut failure = Failure::new(exit_of(status), message);
        failure.code = field("code").map(str::to_owned);
        failure.status = Some(status.as_u16());
        match status {
            StatusCode::UNAUTHORIZED if self.target.token.is_none() => {
                failure.remedy("give a token with --token or DRUMTOWER_TOKEN, or --data DIR of a server on this machine")
            }
            StatusCode::UNAUTHORIZED => failure.remedy("ask an administrator for a valid token: `drumtower token create`"),
            _ => match failure.code.as_deref().and_then(listing) {
                Some(remedy) => failure.remedy(remedy),
                None => failure,
            },
        }
    }
}

/// Where to look for what there is, when what was named is not there.
fn listing(code: &str) -> Option<&'static str> {
    match code {
        "no_such_job" => {
            Some("`drumtower job list` shows the jobs with their namespaces; -n names one")
        }
        "no_such_letter" => {
            Some("`drumtower deadletter list` shows the dead letters that are kept")
        }
        "no_such_run" => Some("`drumtower run list` shows the runs that are kept"),
        "no_such_queue" => {
            Some("`drumtower queue list` shows the queues with their namespaces; -n names one")
        }
        "no_such_calendar" => Some(
            "`drumtower calendar list` shows the calendars with their namespaces; -n names one",
        ),
        "no_such_setting" => Some(
            "`drumtower notify set -f FILE` sets who is told, as docs/notifications.md shows; -n names a namespace",
        ),
        "no_such_token" => Some("`drumtower token list` shows the tokens"),
        _ => None,
    }
}

fn exit_of(status: StatusCode) -> Exit {
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Exit::NotFound,
        // The second and third are what a load balancer says for a server that is gone.
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT
        | StatusCode::SERVICE_UNAVAILABLE => Exit::Unavailable,
        status if status.is_client_error() => Exit::Refused,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drumtower_sdk::tls::Trust;

    fn client(token: Option<&str>) -> Client {
        Client::to(Target {
            url: "http://127.0.0.1:1".into(),
            token: token.map(Into::into),
            trust: Trust::default(),
        })
    }

    #[test]
    fn what_is_typed_cannot_leave_its_place_in_the_address() {
        let call =
            Call::get(format!("/api/v1/runs/{}", segment("../a b?c"))).query("state", "A&b=c");
        assert_eq!(
            call.url("http://x"),
            "http://x/api/v1/runs/..%2Fa%20b%3Fc?state=A%26b%3Dc"
        );
    }

    #[test]
    fn each_kind_of_problem_has_its_exit_code() {
        let cases = [
            (404, Exit::NotFound),
            (410, Exit::NotFound),
            (401, Exit::Refused),
            (403, Exit::Refused),
            (409, Exit::Refused),
            (412, Exit::Refused),
            (422, Exit::Refused),
            (429, Exit::Unavailable),
            (502, Exit::Unavailable),
            (503, Exit::Unavailable),
            (504, Exit::Unavailable),
            (500, Exit::Failed),
        ];
        for (status, exit) in cases {
            let status = StatusCode::from_u16(status).expect("a status");
            let failure = client(Some("t")).problem(status, r#"{"detail":"words","field":"a.b"}"#);
            assert_eq!(failure.exit, exit, "{status}");
            assert!(
                failure.to_string().starts_with("error: a.b: words\n"),
                "{failure}"
            );
        }
    }

    #[test]
    fn an_answer_that_is_no_problem_document_still_has_words() {
        let failure = client(None).problem(StatusCode::UNAUTHORIZED, "<html>");
        assert_eq!(
            failure.to_string(),
            "error: Unauthorized\n  try: give a token with --token or DRUMTOWER_TOKEN, or --data DIR of a server on this machine\n"
        );
    }

    #[test]
    fn a_server_that_is_not_there_is_unavailable() {
        let failure = client(None)
            .value(Call::get("/healthz"))
            .expect_err("nobody listens on port 1");
        assert_eq!(failure.exit, Exit::Unavailable);
    }
}
