//! The boundary and the loader, with real shared libraries: plugins that cargo builds as examples, and small ones in
//! C that are compiled here.

#[path = "../../examples/noop/backend.rs"]
mod backend;
mod boundary;
mod c;
mod common;
mod loader;
