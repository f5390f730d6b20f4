//! A whole plugin: a backend, exported. This one computes nothing; its further devices fail in every way there is.

mod backend;

cuzk_plugin::export_backend!({
    // A plugin has its own copy of the standard library, and so its own panic hook. Its panics are meant, and told by
    // the host.
    std::panic::set_hook(Box::new(|_| {}));
    backend::TestBackend::new()
});
