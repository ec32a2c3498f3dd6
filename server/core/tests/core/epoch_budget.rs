//! The budget of epochs of a search, where results arrive late.

use crate::{
    searches::searching,
    searching::{by_trial, to_the_end, trained},
    support::{HOST, JOB, OTHER, done, hop, request},
};
use sojourn_core::{By, Command, Event, ReplyTo};
use sojourn_protocol::{
    api::{HeldState, SearchRequest, TrialPriority},
    ids::TrialId,
    time::Millis,
};

/// Two trials of four epochs, one of which may be trained. The first trial's first hop is lost with its host; the other trial comes
/// first from then on.
#[test]
fn a_late_result_begins_no_epoch_beyond_the_budget() {
    for other_has_begun in [true, false] {
        let mut bench = searching(4, "method = \"random\"\ntrials = 2\ntotal_epochs = 1\n");
        let late = bench.lease(HOST);
        assert_eq!(hop(&late).trial, TrialId(0));
        bench.now += Millis::from_secs(11).0;
        let expired = bench.events(Command::Tick);
        assert!(expired.iter().any(|event| matches!(event, Event::LeaseEnded { .. })));
        let priorities = vec![TrialPriority { trial: TrialId(1), priority: 1 }];
        let first = Box::new(SearchRequest { priorities, ..SearchRequest::default() });
        let (to, job) = (ReplyTo(1), JOB);
        bench.answer(Command::ChangeSearch { to, job, request: first, by: By::Server }).unwrap();
        if other_has_begun {
            let other = bench.lease(OTHER);
            assert_eq!(hop(&other).trial, TrialId(1));
            bench.ask(HOST, request(0, vec![(late.id, HeldState::Finished)]));
            drop(bench.report(HOST, done(&late)));
            bench.assimilate();
            bench.finish(OTHER, &other);
        } else {
            bench.finish(HOST, &late);
        }
        to_the_end(&mut bench, &by_trial);
        let expected = if other_has_begun { [0, 1] } else { [1, 0] };
        assert_eq!(trained(&bench), expected);
    }
}
