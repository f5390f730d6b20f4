//! Who may ask, and what browsers may do with the answers.
//!
//! * Where a [`Token`] is set, everything but `/healthz` and `/readyz` needs it, as `Authorization: Bearer TOKEN`. A
//!   browser cannot send that for a page, so it gets a cookie for it: `/` shows a form, which posts it to `/signin`.
//!   The token is never in an address, where histories, logs and referrers would keep it; and the cookie is not the
//!   token but a digest of it, which opens nothing but this, cannot be read by scripts, is not sent from other sites,
//!   and goes on working after a restart with the same token.
//! * On a loopback address, which needs no token, the `Host` header has to name a loopback address: otherwise a page
//!   from elsewhere whose name is resolved anew to 127.0.0.1 (DNS rebinding) could read the answers as its own.
//! * No answer allows another origin to read it, to embed it or to frame it, and the content security policy allows no
//!   script, style or connection but the server's own.

use std::{fmt, net::IpAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{Form, Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode, Uri,
        header::{self, AUTHORIZATION, COOKIE, HOST},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::page;

const COOKIE_NAME: &str = "cuzk_status";
/// Thirty days.
const COOKIE_SECONDS: u32 = 30 * 24 * 3600;
const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];
pub(super) const SIGN_IN_PATH: &str = "/signin";

/// A secret that callers have to know. It should be random: 32 bytes, say, in hexadecimal.
#[derive(Clone)]
pub struct Token {
    /// Digests are compared rather than texts, so that not even the length shows.
    bearer: [u8; 32],
    cookie: [u8; 32],
}

impl Token {
    /// This one.
    pub fn new(secret: &str) -> Self {
        let cookie = Sha256::new_with_prefix("cuzk status page\0").chain_update(secret);
        Self { bearer: Sha256::digest(secret).into(), cookie: cookie.finalize().into() }
    }

    fn is(&self, given: &[u8]) -> bool {
        self.bearer.ct_eq(&Sha256::digest(given)).into()
    }

    fn is_in(&self, headers: &HeaderMap) -> bool {
        let bearer = |value: &HeaderValue| {
            let value = value.as_bytes();
            let (scheme, rest) = value.split_at_checked(7).unwrap_or_default();
            scheme.eq_ignore_ascii_case(b"bearer ") && self.is(rest.trim_ascii())
        };
        let cookie = |value: &str| {
            let given = value.trim().strip_prefix(COOKIE_NAME).and_then(|rest| rest.strip_prefix('='));
            let mut bytes = [0; 32];
            given.is_some_and(|given| hex::decode_to_slice(given, &mut bytes).is_ok())
                && bool::from(self.cookie.ct_eq(&bytes))
        };
        headers.get_all(AUTHORIZATION).iter().any(bearer)
            || headers.get_all(COOKIE).iter().filter_map(|v| v.to_str().ok()).any(|v| v.split(';').any(cookie))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Who may ask.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// What callers have to know, if anything.
    pub token: Option<Token>,
    /// Whether `Host` has to name this machine, as it has on a loopback address.
    pub loopback_only: bool,
    /// Names beside `localhost` and loopback addresses that `Host` may have then, without a port.
    pub hosts: Vec<String>,
    /// Whether callers come over TLS: then a browser is told to send its cookie over nothing else.
    pub tls: bool,
}

impl Access {
    fn allows_host(&self, authority: &str) -> bool {
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        host.eq_ignore_ascii_case("localhost")
            || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            || self.hosts.iter().any(|allowed| host.eq_ignore_ascii_case(allowed))
    }
}

/// The host that a request is for: of its target, if that names one, as HTTP has it.
fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let target = uri.authority().map(Authority::as_str);
    target.or_else(|| headers.get(HOST).and_then(|host| host.to_str().ok()))
}

/// Refuses who may not ask.
pub(super) async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    if access.loopback_only {
        match host_of(request.uri(), request.headers()) {
            None => return (StatusCode::BAD_REQUEST, "the request names no host\n").into_response(),
            Some(host) if !access.allows_host(host) => {
                let text = "this server answers only to localhost, and to names that are configured\n";
                return (StatusCode::MISDIRECTED_REQUEST, text).into_response();
            }
            Some(_) => {}
        }
    }
    let path = request.uri().path();
    let open = OPEN_PATHS.contains(&path) || path == SIGN_IN_PATH;
    match &access.token {
        Some(token) if !open && !token.is_in(request.headers()) => {
            let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
            if accept.is_some_and(|accept| accept.contains("text/html")) {
                unauthorized(page::sign_in(false))
            } else {
                unauthorized("a token is needed: Authorization: Bearer TOKEN\n".into_response())
            }
        }
        _ => next.run(request).await,
    }
}

fn unauthorized(answer: Response) -> Response {
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer realm=\"cuzk\"")], answer).into_response()
}

/// What the form of the sign-in page has.
#[derive(Deserialize)]
pub(super) struct SignIn {
    token: String,
}

/// Exchanges the token for a cookie.
pub(super) async fn sign_in(State(access): State<Arc<Access>>, Form(form): Form<SignIn>) -> Response {
    let Some(token) = &access.token else { return Redirect::to("/").into_response() };
    if !token.is(form.token.trim().as_bytes()) {
        return unauthorized(page::sign_in(true));
    }
    let secure = if access.tls { "; Secure" } else { "" };
    let value = hex::encode(token.cookie);
    let cookie = format!("{COOKIE_NAME}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}");
    ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response()
}

/// Adds to each answer what browsers may do with it. A page may have set a policy of its own.
pub(super) async fn seal(request: Request, next: Next) -> Response<Body> {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; base-uri 'none'; frame-ancestors 'none'"));
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let access = Access { hosts: vec!["Storage01".to_owned()], ..Access::default() };
        for host in ["localhost", "LOCALHOST:9821", "127.0.0.1", "127.8.8.8:1", "[::1]:9821", "storage01:9821"] {
            assert!(access.allows_host(host), "{host}");
        }
        let wrong = ["evil.example", "localhost.evil.example", "10.0.0.1:9821", "127.0.0.1.evil.example", "", "[::2]"];
        for host in wrong.into_iter().chain(["localhost:9821:1", "a b", "user@localhost@evil"]) {
            assert!(!access.allows_host(host), "{host}");
        }
    }

    #[test]
    fn tokens() {
        let token = Token::new("secret");
        let with = |name: HeaderName, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            token.is_in(&headers)
        };
        for right in ["Bearer secret", "bearer secret", "BEARER  secret "] {
            assert!(with(AUTHORIZATION, right), "{right}");
        }
        for wrong in ["Bearer secre", "Bearer secrets", "secret", "Basic secret", "Bearer ", "", "Bearersecret"] {
            assert!(!with(AUTHORIZATION, wrong), "{wrong}");
        }
        let cookie = hex::encode(token.cookie);
        assert!(with(COOKIE, &format!("{COOKIE_NAME}={cookie}")));
        assert!(with(COOKIE, &format!("a=b; {COOKIE_NAME}={cookie}; c=d")));
        for wrong in [&cookie[1..], "secret", "", &hex::encode(token.bearer)] {
            assert!(!with(COOKIE, &format!("{COOKIE_NAME}={wrong}")), "{wrong}");
        }
        assert!(!format!("{token:?}").contains("secret"));
    }
}
