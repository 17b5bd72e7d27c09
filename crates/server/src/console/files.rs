//! The embedded files of the console, each in the smallest form that a browser takes.
//!
//! Everything but the page itself has a hash in its name and may be kept for ever. The page may load scripts, styles,
//! images and data from this server only, and no script that stands in a page.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::api::no_such_route;

struct File {
    name: &'static str,
    whole: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));
const PAGE: &str = "index.html";
const ABSENT: &str = include_str!("absent.html");

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page that every address of the console shows.
pub async fn page(headers: HeaderMap) -> Response {
    page_of(FILES, &headers)
}

fn page_of(files: &'static [File], headers: &HeaderMap) -> Response {
    let answer = match files.iter().find(|file| file.name == PAGE) {
        Some(file) => packed(file, headers),
        None => ABSENT.into_response(),
    };
    let mut answer = secured(answer, "text/html; charset=utf-8");
    set(&mut answer, header::CACHE_CONTROL, "no-cache");
    answer
}

/// One file under `/assets/`.
pub async fn file(Path(name): Path<String>, headers: HeaderMap, uri: Uri) -> Response {
    let Some(file) = find(&name).filter(|file| file.name != PAGE) else {
        return no_such_route(uri).await.into_response();
    };
    let mut answer = secured(packed(file, &headers), kind(file.name));
    let forever = "public, max-age=31536000, immutable";
    set(&mut answer, header::CACHE_CONTROL, forever);
    answer
}

/// Whether a browser asks for an address that the console itself understands.
pub fn wants_page(method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT);
    let accepts = accepts.and_then(|value| value.to_str().ok());
    method == Method::GET
        && !uri.path().starts_with("/api/")
        && !uri.path().starts_with("/assets/")
        && accepts.is_some_and(|kinds| kinds.contains("text/html"))
}

fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

fn packed(file: &'static File, headers: &HeaderMap) -> Response {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let accepted: Vec<&str> = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .collect();
    // A weight of zero refuses a coding; a browser sends none of these.
    let takes = |coding: &str| accepted.contains(&coding);
    let (coding, bytes) = match (file.brotli, file.gzip) {
        (Some(bytes), _) if takes("br") => (Some("br"), bytes),
        (_, Some(bytes)) if takes("gzip") => (Some("gzip"), bytes),
        _ => (None, file.whole),
    };
    let mut answer = bytes.into_response();
    set(&mut answer, header::VARY, "accept-encoding");
    if let Some(coding) = coding {
        set(&mut answer, header::CONTENT_ENCODING, coding);
    }
    answer
}

fn secured(mut answer: Response, kind: &'static str) -> Response {
    set(&mut answer, header::CONTENT_TYPE, kind);
    set(&mut answer, header::CONTENT_SECURITY_POLICY, POLICY);
    set(&mut answer, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut answer, header::REFERRER_POLICY, "no-referrer");
    let opener = header::HeaderName::from_static("cross-origin-opener-policy");
    set(&mut answer, opener, "same-origin");
    answer
}

fn set(answer: &mut Response, name: header::HeaderName, value: &'static str) {
    answer
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(coding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(coding))])
    }

    #[test]
    fn the_smallest_form_that_is_taken_is_sent() {
        let file: &'static File = &File {
            name: "a.js",
            whole: b"whole",
            brotli: Some(b"br"),
            gzip: Some(b"gz"),
        };
        let coding = |accepted: &'static str| {
            let answer = packed(file, &accepting(accepted));
            assert_eq!(answer.headers()[header::VARY], "accept-encoding");
            let coding = answer.headers().get(header::CONTENT_ENCODING);
            coding.map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(coding("gzip, deflate, br, zstd").as_deref(), Some("br"));
        assert_eq!(coding("deflate,gzip").as_deref(), Some("gzip"));
        assert_eq!(coding("identity"), None);
    }

    #[tokio::test]
    async fn a_build_without_the_console_says_how_to_get_it() {
        let answer = page_of(&[], &HeaderMap::new());
        let headers = answer.headers();
        assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], POLICY);
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX);
        let text = String::from_utf8(body.await.unwrap().to_vec()).unwrap();
        assert!(text.contains("without its console"), "{text}");
        assert!(text.contains("cargo xtask console\ncargo build"), "{text}");
        // The policy of the page lets nothing of this through.
        assert!(!text.contains("<script") && !text.contains("style"));
        let page: &'static [File] = &[File {
            name: PAGE,
            whole: b"the console",
            brotli: None,
            gzip: None,
        }];
        let answer = page_of(page, &HeaderMap::new());
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
        assert_eq!(body.unwrap(), "the console");
    }

    #[test]
    fn only_a_browser_that_looks_for_a_page_gets_one() {
        let html = HeaderMap::from_iter([(
            header::ACCEPT,
            HeaderValue::from_static("text/html,application/xhtml+xml"),
        )]);
        let asks = |path: &str, headers: &HeaderMap| {
            wants_page(&Method::GET, &path.parse().unwrap(), headers)
        };
        assert!(asks("/jobs/default/greet", &html));
        assert!(!asks("/jobs/default/greet", &HeaderMap::new()));
        assert!(!asks("/api/v1/nothing", &html));
        assert!(!asks("/assets/old-1234.js", &html));
        assert!(!wants_page(&Method::POST, &"/jobs".parse().unwrap(), &html));
    }
}
