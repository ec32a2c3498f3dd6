//! Compiles the C++ side against the headers of the libtorch that `torch-sys` links.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=src/context.cpp");
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file("src/context.cpp").flag("-Wno-unused-parameter");
    // `.cargo/config.toml` names it; where it isn't named, the compiler looks in the system's folders.
    if let Some(libtorch) = env::var_os("LIBTORCH").map(PathBuf::from) {
        build.include(libtorch.join("include"));
    }
    build.compile("sojourn_libtorch");
}
