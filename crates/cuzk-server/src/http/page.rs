//! The pages: their files are part of the program, and nothing is loaded from elsewhere.
//!
//! No text of a job becomes markup: the files hold no data at all, and the program makes text nodes of what it gets as
//! JSON.

use std::sync::LazyLock;

use axum::{
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use cuzk_timeline::{Timeline, Waterfall};
use sha2::{Digest, Sha256};

const HTML: &str = "text/html; charset=utf-8";
const OWN_STYLE: &str = include_str!("page/status.css");
const SIGN_IN_STYLE: &str = include_str!("page/signin.css");

static STATUS_PAGE: LazyLock<String> =
    LazyLock::new(|| include_str!("page/status.html").replacen("@@waterfall@@", Waterfall::MARKUP, 1));
static STATUS_STYLE: LazyLock<String> = LazyLock::new(|| [Waterfall::STYLE, OWN_STYLE].concat());
static STATUS_PROGRAM: LazyLock<String> = LazyLock::new(|| {
    let own = [include_str!("page/sections.js"), include_str!("page/live.js")];
    Waterfall::PROGRAM.into_iter().chain(own).collect()
});
static SIGN_IN_POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = hash_of(SIGN_IN_STYLE);
    format!("default-src 'none'; style-src {style}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
});
/// The page of a whole run has its style and its program in it: they are allowed by their digests, and nothing else is.
static WATERFALL_POLICY: LazyLock<String> = LazyLock::new(|| {
    let mut page = Vec::new();
    // Writing to a vector does not fail.
    let _ = Timeline::default().write_html(&mut page);
    let page = String::from_utf8_lossy(&page);
    let between = |begin: &str, end: &str| page.split_once(begin)?.1.split_once(end).map(|(inner, _)| hash_of(inner));
    let style = between("<style>", "</style>").unwrap_or_default();
    let program = between("<script type=\"module\">", "</script>").unwrap_or_default();
    format!("default-src 'none'; style-src {style}; script-src {program}; base-uri 'none'; frame-ancestors 'none'")
});

const STATUS_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How a content security policy names a text.
fn hash_of(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

fn answer(content_type: &'static str, policy: &'static str, body: impl IntoResponse) -> Response {
    ([(CONTENT_TYPE, content_type), (CONTENT_SECURITY_POLICY, policy)], body).into_response()
}

/// The status page.
pub(super) async fn status() -> Response {
    answer(HTML, STATUS_POLICY, STATUS_PAGE.as_str())
}

/// Its style sheet.
pub(super) async fn style() -> Response {
    answer("text/css; charset=utf-8", STATUS_POLICY, STATUS_STYLE.as_str())
}

/// Its program.
pub(super) async fn program() -> Response {
    answer("text/javascript; charset=utf-8", STATUS_POLICY, STATUS_PROGRAM.as_str())
}

/// Its icon.
pub(super) async fn icon() -> Response {
    answer("image/svg+xml", "default-src 'none'", include_str!("page/icon.svg"))
}

/// The page that asks for the token.
pub(super) fn sign_in(wrong: bool) -> Response {
    let note = if wrong { "<p role=\"alert\">This is not the token.</p>" } else { "" };
    let page = include_str!("page/signin.html").replacen("@@style@@", SIGN_IN_STYLE, 1).replacen("@@note@@", note, 1);
    answer(HTML, &SIGN_IN_POLICY, page)
}

/// A waterfall that was written by [`Timeline::write_html`].
pub(super) fn waterfall(page: Vec<u8>) -> Response {
    answer(HTML, &WATERFALL_POLICY, page)
}
