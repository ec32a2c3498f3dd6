//! Tells the linker where the trainer finds libtorch when it runs, so that no variable need be set.

use std::{env, fs, path::PathBuf};

/// Where the trainer looks for libtorch instead of this machine's, with colons between.
const RPATH: &str = "SOJOURN_TRAINER_RPATH";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    println!("cargo:rerun-if-env-changed={RPATH}");
    let Some(folder) = env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from) else {
        return;
    };
    // The checkout's link may go; what it points to in the user's cache stays.
    let folder = fs::canonicalize(&folder).unwrap_or(folder);
    // Also for libtorch's own dependencies (--disable-new-dtags), and beside the program first, so
    // that a package of both needs no cache folder.
    println!("cargo:rustc-link-arg=-Wl,--disable-new-dtags");
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/lib");
    // A wheel is for machines that have no such folder: it names those in which the torch wheel's libraries are.
    let places = env::var(RPATH).ok().filter(|places| !places.is_empty());
    let places = places.unwrap_or_else(|| folder.display().to_string());
    println!("cargo:rustc-link-arg=-Wl,-rpath,{places}");
}
