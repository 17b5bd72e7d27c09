//! What the next request is after an answer that points elsewhere.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE,
    HeaderName, LOCATION, USER_AGENT,
};
use http::{HeaderMap, Method, StatusCode};

use crate::client::Request;
use crate::error::Error;
use crate::target::Target;

/// Headers that say nothing about anybody: all that crosses over to another origin.
const HARMLESS: [HeaderName; 4] = [ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, USER_AGENT];

/// Headers of a body that is left behind.
const OF_BODY: [HeaderName; 3] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE];

/// Where an answer points; `None` when it is not a redirect, or not one that can be read.
pub fn location(status: StatusCode, headers: &HeaderMap) -> Option<&str> {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
        .then(|| headers.get(LOCATION)?.to_str().ok())
        .flatten()
}

/// Changes the request into the one that follows the redirect, and gives its target.
pub fn follow(
    request: &mut Request,
    from: &Target,
    status: StatusCode,
    location: &str,
) -> Result<Target, Error> {
    let to = from.join(location)?;
    let refuse = |why| Error::Redirect {
        url: to.to_string(),
        why,
    };
    if from.https && !to.https {
        return Err(refuse("it leads from https to http"));
    }
    let to_get = match status.as_u16() {
        303 => request.method != Method::HEAD,
        301 | 302 => request.method == Method::POST,
        _ => false,
    };
    if to_get {
        request.method = Method::GET;
        request.body = Vec::new();
        OF_BODY
            .iter()
            .for_each(|name| drop(request.headers.remove(name)));
    }
    if !from.same_origin(&to) {
        if !request.body.is_empty() {
            return Err(refuse("it would send the body to another host"));
        }
        let kept = HARMLESS.iter().filter_map(|name| {
            let value = request.headers.get(name)?;
            Some((name.clone(), value.clone()))
        });
        request.headers = kept.collect();
    }
    Ok(to)
}
