//! How much a bench does. `cargo bench` runs all of it. `cargo test` runs each bench once at its smallest size, which
//! shows that it runs through; its figures say nothing then.

/// The first under `cargo bench`, the second under `cargo test`.
pub(crate) fn of<T>(whole: T, smallest: T) -> T {
    // Cargo passes this flag, and only `cargo bench` does.
    if std::env::args().any(|argument| argument == "--bench") { whole } else { smallest }
}
