//! Every target, over its corpus and over mutations of it: seeded, and of a bounded number, so that each run is the same.
//!
//! `SOJOURN_FUZZ_RUNS` asks for more inputs of each target, `SOJOURN_FUZZ_SEED` for others. An input that makes a target fail is
//! made shorter and kept in a file, which the message names; once mended it belongs in the target's corpus. A target that
//! overflows its stack or asks for too much memory ends the process: `SOJOURN_FUZZ_KEEP=1` keeps each input before it is run.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use rustix::process::{Resource, Rlimit, setrlimit};
use sojourn_fuzz_targets::{TARGETS, corpus, mutate::Mutator, run};
use std::{
    collections::BTreeSet,
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Once,
};

/// Most bytes of address space of the process, in which all targets may run at once. An input has at most 64 KiB, and what it
/// declares isn't allocated, but for a row of a packed array: at most 512 MiB, which aren't touched before the bytes are there.
const MAX_MEMORY: u64 = 6 << 30;
/// Attempts to make a failing input shorter.
const MAX_CUTS: usize = 2_000;
/// The seed of the inputs that are mutated.
const DEFAULT_SEED: u64 = 1;

/// A number of the environment.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

fn limit_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let limit = Rlimit { current: Some(MAX_MEMORY), maximum: Some(MAX_MEMORY) };
        setrlimit(Resource::As, limit).unwrap();
    });
}

fn fails(run: &dyn Fn(&[u8]), input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| run(input))).is_err()
}

/// Where failing inputs are kept.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The input without what it fails without.
fn shortened(run: &dyn Fn(&[u8]), mut input: Vec<u8>) -> Vec<u8> {
    let (mut chunk, mut attempts) = (input.len().div_ceil(2), 0);
    while chunk > 0 {
        let mut at = 0;
        while at < input.len() && attempts < MAX_CUTS {
            attempts += 1;
            let end = (at + chunk).min(input.len());
            let cut = [&input[..at], &input[end..]].concat();
            if fails(run, &cut) {
                input = cut;
            } else {
                at = end;
            }
        }
        chunk /= 2;
    }
    input
}

/// The first of so many mutations that fails, with its number.
fn search(
    run: &dyn Fn(&[u8]),
    mutator: &Mutator,
    runs: u64,
    keep: Option<&Path>,
) -> Option<(u64, Vec<u8>)> {
    (0..runs).find_map(|n| {
        let input = mutator.input(n);
        if let Some(path) = keep {
            fs::write(path, &input).unwrap();
        }
        fails(run, &input).then_some((n, input))
    })
}

/// Runs a target over its corpus, of which it takes some, and over so many mutations of it.
fn mutated(target: &str, runs: u64) {
    limit_memory();
    let inputs = corpus::inputs(target).unwrap();
    let target_run = |input: &[u8]| {
        run(target, input);
    };
    for (name, input) in &inputs {
        let fails = fails(&target_run, input);
        assert!(!fails, "fuzz/corpus/{target}/{name} makes `{target}` fail");
    }
    assert!(inputs.iter().any(|(_, input)| run(target, input)), "all of the corpus is refused");
    let inputs = inputs.into_iter().map(|(_, input)| input).collect();
    let seed = number("SOJOURN_FUZZ_SEED").unwrap_or(DEFAULT_SEED);
    let mutator = Mutator::new(target, seed, inputs, corpus::words(target).unwrap());
    let keep = env::var_os("SOJOURN_FUZZ_KEEP").map(|_| folder().join(format!("{target}.last")));
    let runs = number("SOJOURN_FUZZ_RUNS").unwrap_or(runs);
    if let Some((n, input)) = search(&target_run, &mutator, runs, keep.as_deref()) {
        let path = folder().join(format!("{target}-{seed}-{n}"));
        let short = shortened(&target_run, input);
        fs::write(&path, &short).unwrap();
        let shown = short.escape_ascii();
        panic!("input {n} of seed {seed} makes `{target}` fail; shortened it is {path:?}: {shown}");
    }
}

/// The targets with the numbers of their inputs: about a minute in all, on two cores.
macro_rules! targets {
    ($($name:ident $runs:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            mutated(stringify!($name), $runs);
        })*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    addresses 60_000,
    client_toml 15_000,
    csv 9_000,
    delta 15_000,
    excel 6_000,
    graph 6_000,
    hdf5 1_500,
    idx 9_000,
    images 9_000,
    job_file 15_000,
    journal 6_000,
    json_lines 9_000,
    libsvm 9_000,
    model_file 15_000,
    npy 9_000,
    npz 9_000,
    parquet 9_000,
    parts 9_000,
    ranges 9_000,
    requests 15_000,
    safetensors 60_000,
    scenario 9_000,
    scenario_tables 6_000,
    snapshot 6_000,
    tensor_data 9_000,
    text 9_000,
    tfrecord 6_000,
    trainer_lines 15_000,
}

#[test]
fn every_target_is_tested_and_has_a_binary_a_corpus_and_a_dictionary() {
    let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(names, TESTED.iter().copied().collect());
    let manifest = fs::read_to_string(corpus::folder().join("Cargo.toml")).unwrap();
    for name in names {
        assert!(!corpus::inputs(name).unwrap().is_empty(), "{name} has no corpus");
        assert!(!corpus::words(name).unwrap().is_empty(), "{name} has no dictionary");
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name} has no binary");
        let program = fs::read_to_string(corpus::folder().join(format!("fuzz_targets/{name}.rs")));
        assert!(program.unwrap().contains(&format!("\"{name}\"")), "{name}.rs runs another target");
    }
}

/// The server's handlers name the type of each request's body.
#[test]
fn the_json_of_every_request_is_read() {
    let target = fs::read_to_string(corpus::folder().join("targets/src/requests.rs")).unwrap();
    let mut bodies = BTreeSet::new();
    for entry in fs::read_dir(corpus::folder().join("../server/src/http")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let after = text.split(": Body<").skip(1);
        bodies.extend(after.filter_map(|after| after.split('>').next().map(str::to_owned)));
    }
    assert!(bodies.len() > 15, "{bodies:?}");
    for body in bodies {
        assert!(target.contains(&format!("round_trip::<{body}>")), "`{body}` isn't read");
    }
}

/// The corpus is in the repository: it has to stay small.
#[test]
fn inputs_of_the_corpus_are_small() {
    const MAX_BYTES: usize = 16 << 10;
    for target in TARGETS {
        for (name, input) in corpus::inputs(target.name).unwrap() {
            assert!(
                input.len() <= MAX_BYTES,
                "fuzz/corpus/{}/{name}: {}",
                target.name,
                input.len()
            );
        }
    }
}

#[test]
fn a_parser_that_panics_is_found_and_its_input_shortened() {
    let run = |input: &[u8]| assert!(!input.windows(4).any(|part| part == b"boom"));
    let mutator = Mutator::new("a", 1, vec![b"some text".to_vec()], vec![b"boom".to_vec()]);
    let (_, input) = search(&run, &mutator, 1_000, None).unwrap();
    assert_eq!(shortened(&run, input), b"boom");
    let harmless = Mutator::new("a", 1, vec![b"some text".to_vec()], vec![b"word".to_vec()]);
    assert_eq!(search(&run, &harmless, 1_000, None), None);
}

#[test]
#[should_panic(expected = "there is no target `nothing`")]
fn a_target_that_is_unknown_is_refused() {
    run("nothing", b"");
}
