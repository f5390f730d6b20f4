//! Where a server listens, and who may call it.
//!
//! An address is bound ([`Bound::bind`]), which is refused where strangers could reach it unprotected. [`Incoming`]
//! accepts connections of several addresses: it carries out TLS handshakes beside each other, and gives up connections
//! that do not begin in time, so that a client which opens connections and leaves them holds nothing for long. A
//! connection says who is at its other end ([`Peer`]).

mod address;
mod bind;
mod connection;
mod incoming;
mod seldom;
mod tls;
mod token;

pub use address::Address;
pub use bind::{BindError, Bound, Exposure};
pub use connection::{Connection, Peer};
pub use incoming::{Connections, Incoming, IncomingOptions};
pub(crate) use seldom::Seldom;
pub use tls::{Tls, TlsError};
pub use token::{Carried, Token, TokenError, secret};
