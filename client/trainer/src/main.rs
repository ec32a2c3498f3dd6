//! Trains units with libtorch: a child process of the client.
fn main() {}
