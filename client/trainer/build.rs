//! Tells the linker where the trainer finds libtorch when it runs, so that no variable need be set.

use std::{env, fs, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    let Some(folder) = env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from) else {
        return;
    };
    // The checkout's link may go; what it points to in the user's cache stays.
    let folder = fs::canonicalize(&folder).unwrap_or(folder);
    // Also for libtorch's own dependencies (--disable-new-dtags), and beside the program first, so
    // that a package of both needs no cache folder.
    println!("cargo:rustc-link-arg=-Wl,--disable-new-dtags");
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/lib");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
}
