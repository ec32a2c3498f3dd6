//! Golden runs: the journals of fixed seeds, record by record, by their digests.
//!
//! A change of the code that is not meant to change a decision leaves all digests as they are.
//! `SOJOURN_GOLDEN=record cargo test -p sojourn-sim --test golden` writes them anew. Do that only where another
//! order of events is meant, in a commit of its own that says why.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]
#![expect(clippy::disallowed_methods, reason = "recording is asked for by a variable")]

use sojourn_core::{Core, EVENT_VERSION, Record};
use sojourn_protocol::digest::Digest;
use sojourn_sim::{
    chaos::{self, World},
    fleet::{self, Ask, Watch},
};

/// The records, a line each.
fn lines(records: &[Record]) -> String {
    records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect()
}

/// Compares digests, a line each, with those of a file beside the tests.
fn compare(file: &str, digests: &str) {
    let file = format!("{}/tests/golden/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("SOJOURN_GOLDEN").is_some_and(|value| value == "record") {
        std::fs::write(&file, digests).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap();
    let other: Vec<_> =
        digests.lines().zip(golden.lines()).filter(|(ours, its)| ours != its).collect();
    assert!(other.is_empty() && digests.len() == golden.len(), "other journals: {other:#?}");
}

/// The version of events in the snapshots that the digests are of: another version of the encoding alone is no other decision.
const GOLDEN_VERSION: u32 = 8;

/// A core's state as a snapshot of that version has it.
fn state_of(core: &Core) -> Vec<u8> {
    let snapshot = String::from_utf8(core.snapshot().unwrap()).unwrap();
    let version = |version: u32| format!("\"version\":{version}");
    snapshot.replacen(&version(EVENT_VERSION), &version(GOLDEN_VERSION), 1).into_bytes()
}

/// Also the state to which each journal leads: what a start from it alone would know.
#[test]
fn sixty_chaos_seeds_give_the_journals_of_the_golden_file() {
    let run = |seed: u64| {
        let scenario = chaos::Scenario::of_seed(seed);
        let (_, records) =
            World::new(scenario).run_with_journal().unwrap_or_else(|broken| panic!("{broken}"));
        let mut core = Core::new(sojourn_core::CoreConfig::default());
        for record in &records {
            core.fold(record).unwrap();
        }
        let (journal, state) = (Digest::of(lines(&records).as_bytes()), state_of(&core));
        format!("chaos {seed} {journal} {}\n", Digest::of(&state))
    };
    let digests: String = std::thread::scope(|threads| {
        let second = threads.spawn(|| (30..60).map(run).collect::<String>());
        (0..30).map(run).collect::<String>() + &second.join().unwrap()
    });
    compare("chaos.txt", &digests);
}

/// Hosts that differ, come and go, on slow lines, with small caches.
const FLEET: &str = "[[hosts]]\ncount = 6\ntflops = [1, 2, 5]\nspread = 0.3\nnoise = 0.2\nslots = 2\n\
    download = 50\nupload = 20\nlatency = \"20ms\"\ncache = \"3MB\"\nfailures = 0.02\nlies = 0.02\n\
    exponential = { up = 120, down = 60 }\nnotice = 10\n\
    [[hosts]]\ncount = 4\ngpus = 2\ntflops = { a = 3, b = 6 }\nspot = { losses_per_hour = 0.9, back = 60 }\n\
    [[hosts]]\nname = \"nights\"\ncount = 1\ntflops = 2\nhours = \"00:00-23:59\"\n";
const JOBS: &str = "[job]\ntrials = 12\ncosts = [500, 2000, 9000]\nrows = 40_000\nshards = 8\nepochs = 3\n\
    valid_rows = 500\ndata_bytes = \"8MB\"\ncheckpoint_bytes = \"500kB\"\n\
    [[jobs]]\nname = \"second\"\ntrials = 4\nequal = 3000\nrows = 4000\nshards = 3\nsubmitted = 60\n";
/// The job that merging scenarios name.
const JOB_FILE: &str = "name = \"one\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [64]\n\
    [[model]]\narch = \"mlp\"\nhidden = [64]\n\
    [training]\nepochs = 1\nbatch_size = 10\noptimizer = \"adam\"\n\
    [placement]\norder = \"hop\"\nreproducible = false\n";

#[derive(Default)]
struct Journal(Vec<Record>);

impl Watch for Journal {
    fn record(&mut self, record: &Record) {
        self.0.push(record.clone());
    }
}

/// Each scenario's name in the golden file, and its text.
fn scenarios() -> Vec<(&'static str, String)> {
    let server = |more: &str| format!("[server]\nlease_term = 20\nmost_hops = 3\n{more}");
    let hard = |seed: u32, more: &str| format!("seed = {seed}\n{}{FLEET}{JOBS}", server(more));
    let merging = |order: &str, more: &str| {
        format!(
            "seed = 5\n[server]\npolicy = \"ltrp\"\nlease_term = 30\n{more}\
             [[hosts]]\ncount = 5\ntflops = [0.000001, 0.000003]\nspread = 0.3\nfailures = 0.05\nlies = 0.05\n\
             exponential = {{ up = 900, down = 120 }}\n\
             [job]\nfile = \"one.toml\"\nrows = 8000\nshards = 8\nepochs = 2\nset.placement.order = \"{order}\"\n"
        )
    };
    vec![
        ("rollout", hard(1, "policy = \"rollout\"\n")),
        ("ltrp", hard(2, "policy = \"ltrp\"\n")),
        ("randomized", hard(3, "policy = \"randomized\"\n")),
        ("vector rearrangement", hard(4, "policy = \"vector-rearrangement\"\n")),
        ("rounds", hard(5, "policy = \"ltrp\"\nrounds = true\n")),
        ("speculation", hard(6, "policy = \"ltrp\"\nmost_copied = 100\n")),
        ("one hop a lease", hard(7, "most_hops = 1\n").replace("most_hops = 3\n", "")),
        ("known costs", format!("estimates = \"known\"\n{}", hard(8, "policy = \"rollout\"\n"))),
        (
            "pinned",
            hard(9, "policy = \"ltrp\"\n")
                .replace("epochs = 3\n", "epochs = 3\nplacement = \"pinned\"\nreplicas = 2\n"),
        ),
        ("merging", merging("merge", "")),
        ("merging when hop order can't use the hosts", merging("auto", "most_hops = 1\n")),
        (
            "priorities",
            hard(12, "policy = \"rollout\"\n")
                .replace("submitted = 60\n", "submitted = 60\npriority = 1\nshare = 3\n"),
        ),
    ]
}

#[test]
fn twelve_fleets_give_the_journals_of_the_golden_file() {
    let run = |(name, text): (&str, String)| {
        let study = fleet::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let scenario = study.rows.into_iter().next().unwrap().scenario;
        let policy = *scenario.server.policy.0.first().unwrap();
        let (mut journal, mut files) = (Journal::default(), |_: &str| Ok(JOB_FILE.to_owned()));
        let run =
            fleet::run(&scenario, policy, scenario.seed, Ask::Check(50), &mut files, &mut journal);
        let run = run.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let result = serde_json::to_string(&run).unwrap();
        let (journal, result) =
            (Digest::of(lines(&journal.0).as_bytes()), Digest::of(result.as_bytes()));
        format!("fleet `{name}` {journal} {result}\n")
    };
    compare("fleets.txt", &scenarios().into_iter().map(run).collect::<String>());
}
