//! Where trials start: from given parameters, or from a seed of their own.

use crate::support::{Bench, HOST, JOB, OTHER, data, data_of_four, hop};
use sojourn_core::{Answer, Command, Event, Query, ReplyTo};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
    ids::{Epoch, TrialId},
    jobfile::{self, InitModel},
    seeds,
    spec::{Architecture, Init, JobSpec, Scale, ScaleLabel},
    unit::Base,
    view::JobState,
};

/// The parameters of an mlp 4-4-2 in a file, of which only the size is known here.
fn parameters() -> BlobRef {
    let numbers = 4 * (4 * 4 + 4 + 4 * 2 + 2);
    let header = header_bytes();
    BlobRef { sha256: Digest::of(b"parameters"), bytes: header + numbers }
}

/// Bytes of that file's header.
fn header_bytes() -> u64 {
    let entries = [
        r#""layers.0.bias":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}"#,
        r#""layers.0.weight":{"dtype":"F32","shape":[4,4],"data_offsets":[16,80]}"#,
        r#""layers.1.bias":{"dtype":"F32","shape":[2],"data_offsets":[80,88]}"#,
        r#""layers.1.weight":{"dtype":"F32","shape":[2,4],"data_offsets":[88,120]}"#,
    ];
    let json = format!("{{{}}}", entries.join(",")).len().next_multiple_of(8);
    u64::try_from(8 + json).unwrap()
}

/// Two tables; the first starts from a file.
fn spec() -> JobSpec {
    let text = "name = \"t\"\nseed = 7\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\ninit = \"m\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n[training]\nepochs = 1\nbatch_size = 8\n";
    let given = |_: &str| {
        let architecture = Architecture::mlp([4]);
        let (scale, scale_label) = (Scale::None, ScaleLabel::None);
        Ok(InitModel { architecture, parameters: parameters(), scale, scale_label })
    };
    jobfile::parse_with(text, &mut { given }).unwrap()
}

fn submit(bench: &mut Bench, spec: JobSpec) -> Result<Answer, ApiError> {
    let (to, spec, data) = (ReplyTo(1), Box::new(spec), Box::new(data()));
    bench.answer(Command::Submit { to, spec, data, again: false, nonce: None })
}

/// With the job's data, and with what its first table starts from.
fn bench() -> Bench {
    let mut bench = Bench::new();
    for blob in data().blobs().chain([parameters()]) {
        bench.apply(Command::Published { to: ReplyTo(1), blob });
    }
    bench
}

#[test]
fn its_first_hops_name_the_parameters_and_the_history_keeps_them() {
    let mut bench = bench();
    submit(&mut bench, spec()).unwrap();
    let (one, two) = (bench.lease(HOST), bench.lease(OTHER));
    let (given, plain) = if hop(&one).trial == TrialId(0) { (&one, &two) } else { (&two, &one) };
    let Base::InitialWeights { seed, parameters: named } = hop(given).base else {
        panic!("{:?}", hop(given).base)
    };
    assert_eq!(named, parameters());
    assert!(matches!(hop(plain).base, Base::Initial { seed: other } if other != seed));
    assert!(given.unit.blobs().contains(&parameters()), "the host may fetch them");
    bench.finish(HOST, &one);
    bench.finish(OTHER, &two);
    while bench.job().state == JobState::Running {
        let lease = bench.lease(HOST);
        assert!(!lease.unit.blobs().contains(&parameters()), "only version 0 needs them");
        bench.finish(HOST, &lease);
    }
    // A replay starts from them however long after.
    bench.now += 30 * 24 * 3600 * 1000;
    let events = bench.events(Command::Tick);
    let condemned = Event::BlobCondemned { blob: parameters().sha256 };
    assert!(!events.contains(&condemned), "{events:?}");
    let mut given = |trial| {
        let query = Query::History { job: JOB, trial: TrialId(trial) };
        match bench.answer(Command::Query { to: ReplyTo(1), query }) {
            Ok(Answer::History(history)) => (history.initial_weights, history.first_base()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        given(0),
        (Some(parameters()), Base::InitialWeights { seed, parameters: parameters() })
    );
    assert_eq!(given(1).0, None);
}

#[test]
fn the_parameters_are_part_of_the_job() {
    let mut bench = bench();
    let Ok(Answer::Submitted(first)) = submit(&mut bench, spec()) else { panic!("refused") };
    let Ok(Answer::Submitted(same)) = submit(&mut bench, spec()) else { panic!("refused") };
    assert_eq!(same.job, first.job);
    let other = BlobRef { sha256: Digest::of(b"others"), ..parameters() };
    let mut spec = spec();
    spec.init[0].parameters = other;
    let refused = submit(&mut bench, spec.clone()).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(refused.message.contains("upload it first"), "{}", refused.message);
    bench.apply(Command::Published { to: ReplyTo(1), blob: other });
    let Ok(Answer::Submitted(another)) = submit(&mut bench, spec) else { panic!("refused") };
    assert_ne!(another.job, first.job);
}

#[test]
fn a_start_that_is_none_is_refused() {
    let mut bench = bench();
    let mut refused = |change: &dyn Fn(&mut Vec<Init>)| {
        let mut spec = spec();
        change(&mut spec.init);
        let error = submit(&mut bench, spec).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        error.message
    };
    assert_eq!(refused(&|init| init[0].model = 2), "`init` names model 2, which isn't there");
    assert_eq!(refused(&|init| init.push(init[0].clone())), "`init` names model 0 twice");
    let bytes = parameters().bytes;
    assert_eq!(
        refused(&|init| init[0].parameters.bytes += 4),
        format!(
            "trial 0: `init` has {} bytes, the parameters of its model take {bytes}",
            bytes + 4
        )
    );
}

#[test]
fn parameters_that_the_store_has_lost_are_waited_for() {
    let mut bench = bench();
    submit(&mut bench, spec()).unwrap();
    bench.apply(Command::Lost { blob: parameters().sha256 });
    assert!(bench.ask(HOST, crate::support::request(1, Vec::new())).leases.is_empty());
    assert!(bench.job().waiting.unwrap().contains("lost"));
    bench.apply(Command::Published { to: ReplyTo(1), blob: parameters() });
    bench.lease(HOST);
}

#[test]
fn a_trial_with_a_seed_of_its_own_follows_from_that() {
    let mut bench = Bench::new();
    let spec = |more: &str| {
        let text = format!(
            "name = \"t\"\n{more}\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = [4]\n\
             [training]\nepochs = 1\nbatch_size = 8\noptimizer = \"sgd\"\n[placement]\nvisits = \"fixed\"\n"
        );
        jobfile::parse(&text).unwrap()
    };
    bench.begin_with(data_of_four(), spec("seed = { choice = [7, 9] }"));
    let job = &bench.core.state().jobs[&JOB];
    let (data_seed, seeds_of) = (job.spec.seed, [7, 9]);
    assert_eq!((data_seed, job.trials.len()), (7, 2));
    for (n, seed) in (0..2).map(TrialId).zip(seeds_of) {
        let trial = job.trial(n).unwrap();
        assert_eq!(trial.initial_seed, seeds::initial_weights(seed, n));
        let order: Vec<_> = trial.chain.open().collect();
        assert_eq!(order, seeds::visit_order(7, n, Epoch(0), 4), "visits are the job's");
    }
    let leases = [bench.lease(HOST), bench.lease(OTHER)];
    for lease in &leases {
        let hop = hop(lease);
        let seed = seeds_of[hop.trial.0 as usize];
        assert_eq!(hop.seed, seeds::hop(seed, hop.trial, Epoch(0), hop.start.shard));
        let query = Query::History { job: JOB, trial: hop.trial };
        let answer = bench.answer(Command::Query { to: ReplyTo(1), query });
        let Ok(Answer::History(history)) = answer else { panic!("{answer:?}") };
        assert_eq!(history.job_seed, seed, "which a replay goes by");
    }
    for (seeds, why) in [(vec![1, 7], "`seed` isn't the first of `seeds`"), (vec![7, 7], "twice")] {
        let spec = Box::new(JobSpec { seeds, ..spec("seed = 7") });
        let data = Box::new(data_of_four());
        let submit = Command::Submit { to: ReplyTo(1), spec, data, again: true, nonce: None };
        let refused = bench.answer(submit).unwrap_err();
        assert!(refused.message.contains(why), "{refused:?}");
    }
}
