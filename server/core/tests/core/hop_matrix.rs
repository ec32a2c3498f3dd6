//! How far the hops of running trials are, shard by shard.

use crate::support::{Bench, HOST, JOB, OTHER, data, done, request, trained};
use sojourn_core::{Answer, Command, Query, ReplyTo};
use sojourn_protocol::{
    api::HeldState,
    error::ErrorKind,
    ids::{Epoch, JobId, ShardId, TrialId},
    jobfile,
    report::{Outcome, Report},
    unit::{Lease, Unit},
    view::{HopMatrixView, HopState},
};

fn matrix(bench: &mut Bench) -> HopMatrixView {
    match bench.answer(Command::Query { to: ReplyTo(1), query: Query::Hops { job: JOB } }) {
        Ok(Answer::Hops(matrix)) => *matrix,
        other => panic!("{other:?}"),
    }
}

/// The cells of the only trial.
fn cells(bench: &mut Bench) -> Vec<HopState> {
    let mut matrix = matrix(bench);
    assert_eq!((matrix.trials.len(), matrix.running), (1, 1));
    matrix.trials.remove(0).cells
}

/// The host says that it runs a lease.
fn runs(bench: &mut Bench, lease: &Lease, done: u32, of: u32) {
    bench.ask(HOST, request(0, vec![(lease.id, HeldState::Running { done, of })]));
}

fn shards(lease: &Lease) -> Vec<usize> {
    let Unit::Train(hop) = &lease.unit else { panic!("{lease:?}") };
    let all = [hop.start.shard].into_iter().chain(hop.then.iter().map(|next| next.shard_id));
    all.map(|ShardId(shard)| usize::try_from(shard).unwrap()).collect()
}

#[test]
fn a_lease_of_two_hops_runs_one_after_the_other() {
    let mut bench = Bench::with_long_leases(2, 1, 2);
    assert_eq!(cells(&mut bench), vec![HopState::Open; 4]);
    let lease = bench.lease(HOST);
    let [first, second] = shards(&lease)[..] else { panic!("{lease:?}") };
    let of_both = |bench: &mut Bench| {
        let cells = cells(bench);
        let open = cells.iter().filter(|cell| **cell == HopState::Open).count();
        assert_eq!(open, 2, "the others: {cells:?}");
        [cells[first].clone(), cells[second].clone()]
    };
    let leased = HopState::Leased { host: HOST };
    let running = HopState::Running { hosts: vec![HOST] };
    assert_eq!(of_both(&mut bench), [leased.clone(), leased.clone()]);
    let Unit::Train(hop) = &lease.unit else { panic!("{lease:?}") };
    let all = hop.to_train();
    runs(&mut bench, &lease, 0, all);
    assert_eq!(of_both(&mut bench), [running.clone(), leased.clone()]);
    runs(&mut bench, &lease, all - 1, all);
    assert_eq!(of_both(&mut bench), [leased, running]);
    bench.report(HOST, done(&lease)).unwrap();
    assert_eq!(of_both(&mut bench), [HopState::Reported, HopState::Reported]);
    bench.assimilate();
    assert_eq!(of_both(&mut bench), [HopState::Done, HopState::Done]);
}

#[test]
fn a_part_of_a_hop_is_partial_until_it_runs_again() {
    let mut bench = Bench::with_job(1, 1);
    let lease = bench.lease(HOST);
    let shard = shards(&lease)[0];
    let of = bench.core.state().jobs[&JOB].trials[0]
        .chain
        .progress(ShardId(u32::try_from(shard).unwrap()))
        .unwrap()
        .1;
    runs(&mut bench, &lease, 1, of);
    let outcome = Outcome::Trained(trained(&lease, 1));
    bench.report(HOST, Report { lease: lease.id, outcome }).unwrap();
    bench.assimilate();
    assert_eq!(cells(&mut bench)[shard], HopState::Partial { batches: 1, of });
    let next = bench.lease(OTHER);
    assert_eq!(shards(&next), [shard], "the part is ended first");
    assert_eq!(cells(&mut bench)[shard], HopState::Leased { host: OTHER });
}

#[test]
fn the_epoch_after_an_evaluated_one_is_shown() {
    let mut bench = Bench::with_job(1, 2);
    for _ in 0..2 {
        let lease = bench.lease(HOST);
        bench.finish(HOST, &lease);
    }
    let row = |bench: &mut Bench| matrix(bench).trials.remove(0);
    let before = row(&mut bench);
    assert_eq!((before.epoch, before.evaluating), (Epoch(1), false));
    assert_eq!(before.cells, [HopState::Open, HopState::Open]);
    // One of them evaluates, the other trains on.
    let leases = [bench.lease(HOST), bench.lease(OTHER)];
    let evaluates = leases.iter().filter(|lease| matches!(lease.unit, Unit::Evaluate(_)));
    assert_eq!((evaluates.count(), row(&mut bench).evaluating), (1, true));
    // All is trained: the last epoch is shown.
    for (host, lease) in [HOST, OTHER].into_iter().zip(&leases) {
        bench.finish(host, lease);
    }
    let lease = bench.lease(HOST);
    bench.finish(HOST, &lease);
    let last = row(&mut bench);
    assert_eq!((last.epoch, last.cells), (Epoch(1), vec![HopState::Done, HopState::Done]));
    bench.work_to_the_end(&[HOST]);
    let ended = matrix(&mut bench);
    assert_eq!((ended.trials.len(), ended.running, ended.shards), (0, 0, 2));
}

#[test]
fn of_many_trials_those_that_have_begun_come_first() {
    let hidden: Vec<String> = (4..209).map(|units| format!("[{units}]")).collect();
    let text = format!(
        "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\n\
         hidden = {{ choice = [{}] }}\n[training]\nepochs = 1\nbatch_size = 8\n",
        hidden.join(", ")
    );
    let mut bench = Bench::new();
    bench.begin_with(data(), jobfile::parse(&text).unwrap());
    // The largest has most to do.
    bench.lease(HOST);
    let matrix = matrix(&mut bench);
    assert_eq!((matrix.trials.len(), matrix.running), (200, 205));
    let trials: Vec<TrialId> = matrix.trials.iter().map(|row| row.trial).collect();
    assert_eq!(trials[..3], [TrialId(204), TrialId(0), TrialId(1)]);
}

#[test]
fn there_is_no_matrix_of_an_unknown_job() {
    let query = Query::Hops { job: JobId(9) };
    let error = Bench::new().answer(Command::Query { to: ReplyTo(1), query }).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}
