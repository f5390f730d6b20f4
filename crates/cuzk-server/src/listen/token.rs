//! The bearer token that calls carry.

use std::{
    fs, io,
    path::PathBuf,
    sync::{PoisonError, RwLock},
};

use http::HeaderMap;
use subtle::ConstantTimeEq;

use crate::config::{AuthConfig, Secret, Setting};

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Its file cannot be read.
    #[error("auth.token_file {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Its file has something else.
    #[error("auth.token_file {}: expected {expected}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What it should have.
        expected: String,
    },
}

/// What a call carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// The token, or there is none to carry.
    Right,
    /// Another one.
    Wrong,
    /// None.
    Absent,
}

/// The token of a configuration, if it has one: what it says, or what the file has now.
///
/// # Errors
/// [`TokenError`].
pub fn secret(config: &AuthConfig) -> Result<Option<Secret>, TokenError> {
    if config.token.is_some() {
        return Ok(config.token.clone());
    }
    let Some(path) = &config.token_file else { return Ok(None) };
    let text = fs::read_to_string(path).map_err(|cause| TokenError::Read { path: path.clone(), cause })?;
    Secret::from_text(text.trim())
        .map(Some)
        .map_err(|expected| TokenError::Form { path: path.clone(), expected: expected.into_owned() })
}

/// The token that counts. It can be replaced while calls are served.
#[derive(Debug)]
pub struct Token(RwLock<Option<blake3::Hash>>);

impl Token {
    /// This one, if there is one.
    pub fn new(secret: Option<&Secret>) -> Self {
        Self(RwLock::new(secret.map(digest)))
    }

    /// Another one from now on.
    pub fn set(&self, secret: Option<&Secret>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = secret.map(digest);
    }

    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What a call with these headers carries. Digests are compared, in constant time, so that time tells neither the
    /// token nor its length.
    pub fn carried(&self, headers: &HeaderMap) -> Carried {
        let Some(expected) = *self.0.read().unwrap_or_else(PoisonError::into_inner) else {
            return Carried::Right;
        };
        let Some(header) = headers.get(http::header::AUTHORIZATION) else { return Carried::Absent };
        let bytes = header.as_bytes();
        // The scheme's name has no case (RFC 9110, section 11.1).
        let Some((scheme, token)) = bytes.split_at_checked(7) else { return Carried::Wrong };
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return Carried::Wrong;
        }
        let given = blake3::hash(token.trim_ascii());
        if given.as_bytes().ct_eq(expected.as_bytes()).into() { Carried::Right } else { Carried::Wrong }
    }
}

fn digest(secret: &Secret) -> blake3::Hash {
    blake3::hash(secret.reveal().as_bytes())
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::AUTHORIZATION};

    use super::*;

    #[test]
    fn the_right_token_and_no_other() {
        let secret = Secret::from_text("0123456789abcdef").unwrap();
        let token = Token::new(Some(&secret));
        assert!(token.is_set());
        for (header, carried) in [
            (None, Carried::Absent),
            (Some("Bearer 0123456789abcdef"), Carried::Right),
            (Some("bearer 0123456789abcdef "), Carried::Right),
            (Some("Bearer 0123456789abcdeF"), Carried::Wrong),
            (Some("Bearer 0123456789abcde"), Carried::Wrong),
            (Some("Bearer 0123456789abcdef0"), Carried::Wrong),
            (Some("Basic 0123456789abcdef"), Carried::Wrong),
            (Some("Bearer"), Carried::Wrong),
            (Some(""), Carried::Wrong),
        ] {
            let headers = header.map(|h| (AUTHORIZATION, HeaderValue::from_static(h))).into_iter().collect();
            assert_eq!(token.carried(&headers), carried, "{header:?}");
        }
    }

    #[test]
    fn a_token_is_read_from_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let config = AuthConfig { token: None, token_file: Some(path.clone()) };
        assert!(matches!(secret(&config), Err(TokenError::Read { .. })));
        fs::write(&path, "short").unwrap();
        assert!(secret(&config).unwrap_err().to_string().contains("expected at least 16 printable"));
        fs::write(&path, "0123456789abcdef\n").unwrap();
        assert_eq!(secret(&config).unwrap().unwrap().reveal(), "0123456789abcdef");
        assert!(secret(&AuthConfig { token: None, token_file: None }).unwrap().is_none());
    }

    #[test]
    fn another_token_counts_at_once() {
        let [one, other] = ["0123456789abcdef", "fedcba9876543210"].map(|text| Secret::from_text(text).unwrap());
        let headers = [(AUTHORIZATION, HeaderValue::from_static("Bearer 0123456789abcdef"))].into_iter().collect();
        let token = Token::new(Some(&one));
        assert_eq!(token.carried(&headers), Carried::Right);
        token.set(Some(&other));
        assert_eq!(token.carried(&headers), Carried::Wrong);
        token.set(None);
        assert_eq!(token.carried(&HeaderMap::new()), Carried::Right);
    }
}
