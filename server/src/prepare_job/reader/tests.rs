//! Readers that end in all ways: as scripts of a shell, which say the lines of one.

use super::*;
use sojourn_protocol::jobfile;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Bounds that end the reading at a question, or never.
#[derive(Debug)]
struct Until(u64, AtomicU64);

impl DataBounds for Until {
    fn admit(&self, _: DataStep) -> Result<(), String> {
        let asked = self.1.fetch_add(1, Ordering::Relaxed);
        if asked < self.0 { Ok(()) } else { Err("somebody has ended it".to_owned()) }
    }

    fn admits_url(&self, url: &str) -> bool {
        url == "https://here/"
    }
}

/// The outcome of a script, and how far it said that it was. `SHARDS` in it is the folder of the shards.
fn outcome(
    script: &str,
    questions: u64,
) -> (Result<PreparedJob, Vec<String>>, Vec<BytesRead>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    fs::create_dir(&shards).unwrap();
    fs::write(shards.join("one"), "1").unwrap();
    let script = script.replace("SHARDS", shards.to_str().unwrap());
    let program = ReaderProgram::new(
        "/bin/sh".into(),
        vec!["-c".into(), format!("read request\n{script}").into()],
    );
    let bounds = Arc::new(Until(questions, AtomicU64::new(0)));
    let limits = ReaderLimits::for_data(0, 1 << 20, 1 << 30);
    let (hosts, earlier) = (Vec::new(), Vec::new());
    let files = JobFiles {
        text: "a job",
        folder: folder.path(),
        shards: &shards,
        hosts,
        earlier,
        bounds,
        limits,
    };
    let mut told = Vec::new();
    let outcome = program.prepare(files, &mut |read| told.push(read));
    (outcome, told, folder)
}

fn refusal(script: &str) -> String {
    outcome(script, u64::MAX).0.unwrap_err().join("; ")
}

/// A job whose only blob lies in a file, as a line of the reader.
fn made(file: &str) -> String {
    let text = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshards = 1\n[[model]]\narch = \"mlp\"\n\
                hidden = [4]\n[training]\nepochs = 1\n";
    let data = serde_json::json!({
        "shape": [1], "features": ["x"], "labels": { "classes": ["0", "1"] }, "scaling": "none",
        "train": [], "valid": [],
    });
    let job = PreparedJob {
        spec: jobfile::parse(text).unwrap(),
        data: serde_json::from_value(data).unwrap(),
        files: [(sojourn_protocol::digest::Digest::of(b"1"), file.into())].into(),
    };
    serde_json::to_string(&Message::Made(Box::new(job))).unwrap()
}

#[test]
fn questions_are_answered_and_the_job_comes_back() {
    let script = format!(
        "echo '{{\"read\":{{\"bytes\":1,\"of\":2}}}}'\n\
         ask() {{ echo \"$1\"; read answer; test \"$answer\" = \"$2\" || exit 9; }}\n\
         ask '{{\"step\":{{\"unpacked\":10}}}}' '\"yes\"'\n\
         ask '{{\"url\":\"https://here/\"}}' '\"yes\"'\n\
         ask '{{\"url\":\"https://there/\"}}' '{{\"no\":\"the operator doesn'\"'\"'t allow it\"}}'\n\
         cat <<'END'\n{}\nEND",
        made("SHARDS/one")
    );
    let (job, told, _folder) = outcome(&script, u64::MAX);
    assert_eq!(job.unwrap().spec.name, "t");
    assert_eq!(told, [BytesRead { bytes: 1, of: 2 }]);
}

#[test]
fn a_reader_that_makes_something_else_is_refused() {
    let drafted =
        "echo '{\"drafted\":{\"text\":\"a\",\"label\":null,\"columns\":[],\"remarks\":[]}}'";
    assert!(refusal(drafted).contains("damaged, or hostile"));
}

#[test]
fn a_job_file_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let draft = |script: &str| {
        let arguments = vec!["-c".into(), format!("read request\n{script}").into()];
        let program = ReaderProgram::new("/bin/sh".into(), arguments);
        let files = DraftFiles {
            folder: folder.path(),
            data: "t.csv",
            label: Some("y"),
            bounds: Arc::new(Until(u64::MAX, AtomicU64::new(0))),
            limits: ReaderLimits::for_data(0, 1 << 20, 1 << 30),
        };
        program.draft(files, &mut |_| {})
    };
    let wanted = "case \"$request\" in *'\"draft\":{\"data\":\"t.csv\",\"label\":\"y\"}'*) ;; *) exit 9 ;; esac";
    let drafted = DraftedJob {
        text: "name = \"t\"\n".to_owned(),
        label: Some("y".to_owned()),
        columns: Vec::new(),
        remarks: Vec::new(),
    };
    let line = serde_json::to_string(&Message::Drafted(Box::new(drafted.clone()))).unwrap();
    assert_eq!(draft(&format!("{wanted}\ncat <<'END'\n{line}\nEND")), Ok(drafted));
    assert!(draft(&made("one")).unwrap_err()[0].contains("damaged, or hostile"));
    assert!(draft("kill -SEGV $$").unwrap_err()[0].contains("signal 11"));
}

#[test]
fn a_refused_step_is_told_to_the_reader() {
    let script = "echo '{\"step\":{\"written\":10}}'; read answer; echo \"{\\\"wrong\\\":[$answer]}\" | sed 's/{\"no\"://;s/}]/]/'";
    let (job, _, _folder) = outcome(script, 0);
    assert_eq!(job.unwrap_err(), ["somebody has ended it"]);
}

#[test]
fn a_reader_that_asks_nothing_is_ended_too() {
    let (job, _, _folder) = outcome("while :; do :; done", 0);
    assert_eq!(job.unwrap_err(), ["somebody has ended it"]);
}

#[test]
fn a_reader_that_only_says_how_far_it_is_is_ended_too() {
    let script = "while :; do echo '{\"read\":{\"bytes\":1,\"of\":2}}'; done";
    let (job, _, _folder) = outcome(script, 0);
    assert_eq!(job.unwrap_err(), ["somebody has ended it"]);
}

#[test]
fn a_crash_is_a_refusal_that_says_why() {
    for (script, wanted) in [
        ("kill -SEGV $$", "signal 11"),
        ("kill -KILL $$", "signal 9"),
        ("kill -XCPU $$", "more than 10 min of processor time"),
        ("kill -XFSZ $$", "a file of more than 1.0 MB (`--max-data-uploads`)"),
        (
            "echo 'memory allocation of 5 bytes failed' >&2; kill -ABRT $$",
            "more than 1.1 GB of memory (`--max-data-memory`)",
        ),
        ("exit 3", "ended the program that reads it"),
        ("", "ended the program that reads it"),
        ("echo '{\"no message\":1}'; while :; do :; done", "ended the program that reads it"),
        ("printf '{\"read\":{\"bytes\":1,'", "ended the program that reads it"),
    ] {
        let why = refusal(script);
        assert!(why.contains(wanted), "{script}: {why}");
    }
    // A job of a reader that ends badly is none.
    let script = format!("cat <<'END'\n{}\nEND\nexit 1", made("SHARDS/one"));
    assert!(refusal(&script).contains("ended the program"));
}

#[test]
fn files_outside_of_the_shards_are_refused() {
    for file in ["/etc/passwd", "SHARDS/../../etc/passwd", "SHARDS/missing"] {
        let why = refusal(&format!("cat <<'END'\n{}\nEND", made(file)));
        assert!(why.contains("isn't one of its shards"), "{file}: {why}");
    }
}

#[test]
fn a_program_that_is_not_there_is_said() {
    let program = ReaderProgram::new("/no/such/program".into(), Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let bounds = Arc::new(Until(0, AtomicU64::new(0)));
    let limits = ReaderLimits::for_data(0, 0, 0);
    let (hosts, earlier) = (Vec::new(), Vec::new());
    let (folder, shards) = (folder.path(), folder.path());
    let files = JobFiles { text: "", folder, shards, hosts, earlier, bounds, limits };
    let why = program.prepare(files, &mut |_| {}).unwrap_err();
    assert!(why[0].contains("can't start the program"), "{why:?}");
}
