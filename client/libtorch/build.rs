//! Compiles the C++ side against the headers of the libtorch that `torch-sys` links, and tells the tests where it is.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=src/context.cpp");
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file("src/context.cpp").flag("-Wno-unused-parameter");
    // Where `torch-sys` doesn't say, compiler and linker look in the system's folders.
    if let Some(libraries) = env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from) {
        build.include(libraries.with_file_name("include"));
        let libraries = fs::canonicalize(&libraries).unwrap_or(libraries);
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    }
    build.compile("sojourn_libtorch");
}
