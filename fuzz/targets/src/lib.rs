//! Every parser of foreign bytes as one function over bytes: it parses them, and panics where something doesn't hold that must.
//!
//! These conditions must hold: no panic, no memory or time beyond what the input can pay for, the same value again where it is
//! written and read once more, and a refusal in words that are no longer than the input gives reason for.
//!
//! Two programs call these functions: libFuzzer (`fuzz/fuzz_targets`, by `make fuzz`), and the seeded mutator of this package
//! (`tests/mutated.rs`, by `make test`), which needs nothing but the stable toolchain. Both begin with the inputs of
//! `fuzz/corpus` and know the words of `fuzz/dictionaries`.

mod addresses;
mod columns;
pub mod corpus;
mod data;
mod expect;
mod files;
mod graphs;
mod jobs;
mod journal;
pub mod mutate;
mod requests;
mod scenarios;
mod tensors;
mod trainer;
mod unpacking;

/// One parser of foreign bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The target's name: of its binary, its corpus and its dictionary.
    pub name: &'static str,
    /// Parses an input, and panics where something doesn't hold. True where the input was taken, and not refused.
    pub run: fn(&[u8]) -> bool,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "addresses", run: addresses::addresses },
    Target { name: "client_toml", run: files::client_toml },
    Target { name: "csv", run: data::csv },
    Target { name: "delta", run: tensors::delta },
    Target { name: "excel", run: data::excel },
    Target { name: "graph", run: graphs::graph },
    Target { name: "hdf5", run: data::hdf5 },
    Target { name: "idx", run: data::idx },
    Target { name: "images", run: data::images },
    Target { name: "job_file", run: jobs::job_file },
    Target { name: "journal", run: journal::journal },
    Target { name: "json_lines", run: data::json_lines },
    Target { name: "libsvm", run: data::libsvm },
    Target { name: "model_file", run: files::model_file },
    Target { name: "npy", run: data::npy },
    Target { name: "npz", run: data::npz },
    Target { name: "parquet", run: data::parquet },
    Target { name: "parts", run: columns::parts },
    Target { name: "ranges", run: tensors::ranges },
    Target { name: "requests", run: requests::requests },
    Target { name: "safetensors", run: tensors::safetensors },
    Target { name: "scenario", run: scenarios::scenario },
    Target { name: "scenario_tables", run: scenarios::tables },
    Target { name: "snapshot", run: journal::snapshot },
    Target { name: "tensor_data", run: data::tensor_data },
    Target { name: "text", run: columns::text },
    Target { name: "tfrecord", run: data::tfrecord },
    Target { name: "trainer_lines", run: trainer::lines },
];

/// Runs the target of this name. True where it took the input.
///
/// # Panics
/// Where there is none, or something doesn't hold.
pub fn run(name: &str, input: &[u8]) -> bool {
    let found = TARGETS.iter().find(|target| target.name == name);
    assert!(found.is_some(), "there is no target `{name}`");
    found.is_some_and(|target| (target.run)(input))
}
