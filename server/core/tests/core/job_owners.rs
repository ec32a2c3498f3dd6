//! Owners of jobs: who may change which job, what a token's jobs may take, and slot time between owners.

use crate::support::{Bench, HOST, JOB, data, events, request, spec};
use sojourn_core::{
    Answer, By, Command, Core, CoreConfig, Event, MAX_PAGE_LINKS, Query, Record, ReplyTo,
};
use sojourn_protocol::{
    api::{NewTrial, PlacementRequest, RollbackRequest, SearchRequest, SubmitAnswer, Submitted},
    digest::{BlobRef, Digest},
    error::{ApiError, ErrorKind},
    ids::{JobId, TokenId, TrialId},
    manifest::{DataManifest, DataSplit},
    names::TokenLabel,
    quotas::{QuotaUsage, QuotaView, Quotas, TokenQuotas},
    time::Millis,
    tokens::{Rights, TokenGrant, TokenRequest, TokenState, TokenView},
};

const TO: ReplyTo = ReplyTo(1);
const ALICE: By = By::Token(TokenId(1));
const BOB: By = By::Token(TokenId(2));
const READER: By = By::Token(TokenId(3));
const CHIEF: By = By::Token(TokenId(4));
const DAY: Millis = Millis::from_secs(24 * 3600);

fn create(bench: &mut Bench, name: &str, rights: Rights, quotas: TokenQuotas) -> TokenView {
    let (label, grant) = (name.parse().unwrap(), TokenGrant::Access { rights });
    let request = TokenRequest { label, grant, lifetime: Some(DAY), quotas };
    let sha256 = Digest::of(name.as_bytes());
    let create = Command::CreateToken { to: TO, request, sha256, by: Some(By::Server) };
    match bench.answer(create).unwrap() {
        Answer::Token(token) => *token,
        other => panic!("{other:?}"),
    }
}

/// A core with four users, and with the blobs of the small job.
fn with_users(quotas: TokenQuotas) -> Bench {
    let mut bench = Bench::new();
    for (name, rights) in [
        ("alice", Rights::Submit),
        ("bob", Rights::Submit),
        ("reader", Rights::Read),
        ("chief", Rights::Administer),
    ] {
        create(&mut bench, name, rights, quotas);
    }
    for blob in data().blobs() {
        bench.events(Command::Published { to: TO, blob });
    }
    bench
}

fn submission(data: DataManifest, trials: u32, again: bool) -> Command {
    let (spec, data) = (Box::new(spec(trials, 1, "")), Box::new(data));
    Command::Submit { to: TO, spec, data, again, nonce: None }
}

fn on_behalf(by: By, command: Command) -> Command {
    Command::OnBehalf { to: TO, by, command: Box::new(command) }
}

fn ask(bench: &mut Bench, by: By, command: Command) -> Result<Answer, ApiError> {
    bench.answer(on_behalf(by, command))
}

fn submit(bench: &mut Bench, by: By, trials: u32) -> Result<SubmitAnswer, ApiError> {
    match ask(bench, by, submission(data(), trials, true))? {
        Answer::Submitted(answer) => Ok(answer),
        other => panic!("{other:?}"),
    }
}

fn quotas_of(bench: &mut Bench, by: By) -> Option<QuotaView> {
    let Answer::Tokens(tokens) =
        bench.answer(Command::Query { to: TO, query: Query::Tokens }).unwrap()
    else {
        panic!("no tokens")
    };
    tokens.into_iter().find(|token| Some(token.token) == by.token()).unwrap().quotas
}

fn used(bench: &mut Bench, by: By) -> QuotaUsage {
    quotas_of(bench, by).unwrap().used
}

fn page_link(job: JobId, name: &str, by: By) -> Command {
    let (label, grant) = (TokenLabel::default(), TokenGrant::PageLink { job });
    let quotas = TokenQuotas::default();
    let request = TokenRequest { label, grant, lifetime: None, quotas };
    Command::CreateToken { to: TO, request, sha256: Digest::of(name.as_bytes()), by: Some(by) }
}

/// One of each command that changes a job, with what it changes.
fn changes(job: JobId) -> Vec<Command> {
    let trial = TrialId(0);
    vec![
        Command::Note { to: TO, job, note: "n".into() },
        Command::Pause { to: TO, job, now: false },
        Command::Resume { to: TO, job },
        Command::Extend { to: TO, job, epochs: 3, trial: None, reopen: false },
        Command::Place { to: TO, job, placement: PlacementRequest::default() },
        Command::ChangeSearch {
            to: TO,
            job,
            request: Box::new(SearchRequest { stop: vec![trial], ..SearchRequest::default() }),
            by: ALICE,
        },
        Command::Evaluate { to: TO, job, trial, split: DataSplit::Valid },
        Command::Rollback {
            to: TO,
            job,
            request: RollbackRequest::Trial { trial, epochs: 0, options: Default::default() },
        },
        page_link(job, &format!("link {job}"), ALICE),
        Command::Query { to: TO, query: Query::Links { job } },
        Command::RevokeToken { to: TO, token: TokenId(5), of: Some(job), by: Some(ALICE) },
        Command::Cancel { to: TO, job },
        Command::Delete { to: TO, jobs: vec![job], preview: false },
    ]
}

fn kind(result: Result<Answer, ApiError>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

#[test]
fn a_job_belongs_to_the_token_that_submitted_it() {
    let mut bench = with_users(TokenQuotas::default());
    let recorded = bench.events(on_behalf(ALICE, submission(data(), 1, false)));
    let [Event::JobSubmitted { job: JOB, by: Some(ALICE), .. }] = recorded[..] else {
        panic!("{recorded:?}")
    };
    let owner = bench.job().owner.unwrap();
    assert_eq!((owner.token, owner.to_string().as_str()), (ALICE.token(), "alice"));
    assert!(owner.is_called("alice") && owner.is_called("1") && !owner.is_called("bob"));
    let restored = Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config());
    assert_eq!(restored.unwrap().state(), bench.core.state());
}

#[test]
fn a_token_changes_its_own_jobs_and_no_others_and_administrators_change_all() {
    let mut bench = with_users(TokenQuotas::default());
    assert_eq!(submit(&mut bench, ALICE, 2).unwrap().job, JOB);
    let position = bench.core.position();
    for command in changes(JOB) {
        let refused = ask(&mut bench, BOB, command.clone()).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Forbidden, "{command:?}");
        assert_eq!(refused.message, "job 1 belongs to `alice`; this token is `bob`");
        let refused = ask(&mut bench, READER, command.clone()).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Forbidden);
        assert_eq!(refused.message, "this needs a token with the right to `submit`");
    }
    assert_eq!(bench.core.position(), position, "nothing was changed");
    for by in [ALICE, CHIEF, By::Server] {
        let job = submit(&mut bench, ALICE, 2).unwrap().job;
        for command in changes(job) {
            let answer = ask(&mut bench, by, command.clone());
            assert_ne!(kind(answer), Some(ErrorKind::Forbidden), "{by:?}: {command:?}");
        }
        assert!(!bench.core.state().jobs.contains_key(&job), "{by:?}");
    }
    // Of several jobs all must be the token's.
    let other = submit(&mut bench, BOB, 1).unwrap().job;
    let delete = Command::Delete { to: TO, jobs: vec![JOB, other], preview: true };
    assert_eq!(kind(ask(&mut bench, BOB, delete)), Some(ErrorKind::Forbidden));
    let unknown = Command::Cancel { to: TO, job: JobId(99) };
    assert_eq!(kind(ask(&mut bench, BOB, unknown)), Some(ErrorKind::NotFound));
}

#[test]
fn what_isnt_a_jobs_is_for_administrators() {
    let mut bench = with_users(TokenQuotas::default());
    let revoke = Command::RevokeToken { to: TO, token: TokenId(1), of: None, by: Some(BOB) };
    let grant = TokenGrant::Access { rights: Rights::Administer };
    let (label, quotas) = ("more".parse().unwrap(), TokenQuotas::default());
    let request = TokenRequest { label, grant, lifetime: None, quotas };
    let make = Command::CreateToken { to: TO, request, sha256: Digest::of(b"more"), by: Some(BOB) };
    let raise = TokenQuotas { jobs: Some(1_000), ..TokenQuotas::default() };
    let raise = Command::SetQuotas { to: TO, token: TokenId(2), quotas: raise, by: BOB };
    let block = Command::BlockHost { to: TO, host: HOST, blocked: true, by: BOB };
    for command in [revoke, make, raise, block] {
        assert_eq!(kind(ask(&mut bench, BOB, command.clone())), Some(ErrorKind::Forbidden));
        let refused = ask(&mut bench, BOB, on_behalf(By::Server, command.clone()));
        assert_eq!(kind(refused), Some(ErrorKind::Forbidden), "in another's name");
        ask(&mut bench, CHIEF, command).unwrap();
    }
}

#[test]
fn a_job_from_before_owners_may_be_changed_by_every_submitter_and_one_of_the_admin_token_by_none() {
    let mut bench = with_users(TokenQuotas::default());
    bench.answer(submission(data(), 1, true)).unwrap();
    assert_eq!(bench.job().owner, None);
    ask(&mut bench, BOB, Command::Pause { to: TO, job: JOB, now: false }).unwrap();
    let job = submit(&mut bench, By::Server, 1).unwrap().job;
    let refused = ask(&mut bench, BOB, Command::Cancel { to: TO, job }).unwrap_err();
    assert_eq!(refused.message, "job 2 belongs to the server's admin token; this token is `bob`");
}

#[test]
fn two_tokens_of_one_name_are_told_apart_by_number() {
    let mut bench = with_users(TokenQuotas::default());
    let (label, grant) = ("alice".parse().unwrap(), TokenGrant::Access { rights: Rights::Submit });
    let request = TokenRequest { label, grant, lifetime: None, quotas: TokenQuotas::default() };
    let sha256 = Digest::of(b"another alice");
    bench.answer(Command::CreateToken { to: TO, request, sha256, by: None }).unwrap();
    submit(&mut bench, ALICE, 1).unwrap();
    let cancel = Command::Cancel { to: TO, job: JOB };
    let refused = ask(&mut bench, By::Token(TokenId(5)), cancel).unwrap_err();
    assert_eq!(
        refused.message,
        "job 1 belongs to `alice` (token 1); this token is `alice` (token 5)"
    );
}

#[test]
fn a_revoked_or_expired_token_may_nothing() {
    let mut bench = with_users(TokenQuotas::default());
    submit(&mut bench, ALICE, 1).unwrap();
    bench.events(Command::RevokeToken { to: TO, token: TokenId(1), of: None, by: None });
    let cancel = Command::Cancel { to: TO, job: JOB };
    let refused = ask(&mut bench, ALICE, cancel.clone());
    assert_eq!(kind(refused), Some(ErrorKind::Unauthorized));
    bench.now += DAY.0;
    assert_eq!(kind(ask(&mut bench, BOB, cancel.clone())), Some(ErrorKind::Unauthorized));
    ask(&mut bench, By::Server, cancel).unwrap();
}

#[test]
fn the_same_job_of_two_owners_is_two_jobs() {
    let mut bench = with_users(TokenQuotas::default());
    let mut of = |by, again| match ask(&mut bench, by, submission(data(), 1, again)).unwrap() {
        Answer::Submitted(answer) => (answer.job.0, answer.submitted),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(By::Server, false), (1, Submitted::New));
    assert_eq!(of(ALICE, false), (2, Submitted::New));
    assert_eq!(of(BOB, false), (3, Submitted::New));
    assert_eq!(of(ALICE, false), (2, Submitted::Existing));
    assert_eq!(of(BOB, false), (3, Submitted::Existing));
    assert_eq!(of(By::Server, false), (1, Submitted::Existing));
}

#[test]
fn a_job_from_before_owners_is_the_same_job_for_whoever_submits_it_again() {
    let mut bench = with_users(TokenQuotas::default());
    bench.answer(submission(data(), 1, false)).unwrap();
    let again = ask(&mut bench, ALICE, submission(data(), 1, false)).unwrap();
    let Answer::Submitted(again) = again else { panic!("{again:?}") };
    assert_eq!((again.job, again.submitted), (JOB, Submitted::Existing));
}

#[test]
fn jobs_trials_and_bytes_are_bounded_for_each_token() {
    let quotas = TokenQuotas { jobs: Some(2), trials: Some(5), ..TokenQuotas::default() };
    let mut bench = with_users(quotas);
    submit(&mut bench, ALICE, 3).unwrap();
    let refused = submit(&mut bench, ALICE, 3).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert_eq!(
        refused.message,
        "`alice` has 3 trials left to train, 3 would come, and its quota `trials` is 5: ask for fewer, or wait until some \
         end; an administrator raises it by `sojourn token set 1 --trials N`"
    );
    let second = submit(&mut bench, ALICE, 2).unwrap().job;
    let refused = submit(&mut bench, ALICE, 1).unwrap_err();
    assert!(
        refused
            .message
            .starts_with("`alice` has 2 jobs that haven't ended, and its quota `jobs` is 2: "),
        "{refused}"
    );
    let is = used(&mut bench, ALICE);
    let bytes = 400;
    assert_eq!(is, QuotaUsage { jobs: 2, trials: 5, bytes, ..QuotaUsage::default() });
    // Others have quotas of their own; administrators have none.
    submit(&mut bench, BOB, 5).unwrap();
    for by in [CHIEF, By::Server] {
        for _ in 0..4 {
            submit(&mut bench, by, 5).unwrap();
        }
    }
    assert_eq!(quotas_of(&mut bench, CHIEF), None);
    // Advice is followed: the job is cancelled, and there is room.
    ask(&mut bench, ALICE, Command::Cancel { to: TO, job: second }).unwrap();
    submit(&mut bench, ALICE, 2).unwrap();
    // The same submission again takes nothing.
    let again = ask(&mut bench, ALICE, submission(data(), 2, false)).unwrap();
    let Answer::Submitted(again) = again else { panic!("{again:?}") };
    assert_eq!(again.submitted, Submitted::Existing);
    // More trials for a job that runs count as well, and so does a job that would run again.
    let values = [("lr".to_owned(), serde_json::json!(0.2))].into();
    let add = vec![NewTrial { values, from: None }];
    let request = Box::new(SearchRequest { add, ..SearchRequest::default() });
    let change = Command::ChangeSearch { to: TO, job: JOB, request, by: ALICE };
    let refused = ask(&mut bench, ALICE, change).unwrap_err();
    assert!(refused.message.contains("its quota `trials` is 5"), "{refused}");
}

#[test]
fn bytes_count_once_for_each_owner_until_the_job_is_deleted() {
    let quotas = TokenQuotas { bytes: Some(450), ..TokenQuotas::default() };
    let mut bench = with_users(quotas);
    let first = submit(&mut bench, ALICE, 1).unwrap().job;
    let second = submit(&mut bench, ALICE, 1).unwrap().job;
    assert_eq!(used(&mut bench, ALICE).bytes, 400, "four shards of 100 bytes, for both jobs");
    let mut more = data();
    let blob = BlobRef { sha256: Digest::of(b"more"), bytes: 100 };
    more.train[0].blob = blob;
    bench.events(Command::Published { to: TO, blob });
    let refused = ask(&mut bench, ALICE, submission(more.clone(), 1, true)).unwrap_err();
    assert!(refused.message.contains("400 B in the store, 100 B would come"), "{refused}");
    assert!(refused.message.contains("its quota `bytes` is 450 B: delete jobs"), "{refused}");
    for job in [first, second] {
        ask(&mut bench, ALICE, Command::Cancel { to: TO, job }).unwrap();
        assert_eq!(used(&mut bench, ALICE).bytes, 400, "it is kept");
        let jobs = vec![job];
        if job == second {
            ask(&mut bench, ALICE, Command::Delete { to: TO, jobs, preview: false }).unwrap();
        }
    }
    ask(&mut bench, ALICE, Command::Delete { to: TO, jobs: vec![first], preview: false }).unwrap();
    assert_eq!(used(&mut bench, ALICE), QuotaUsage::default());
    ask(&mut bench, ALICE, submission(more, 1, true)).unwrap();
}

#[test]
fn quotas_are_changed_one_by_one_and_the_journal_says_by_whom() {
    let mut bench = with_users(TokenQuotas { jobs: Some(1), ..TokenQuotas::default() });
    submit(&mut bench, ALICE, 1).unwrap();
    submit(&mut bench, ALICE, 1).unwrap_err();
    let quotas = TokenQuotas { slot_share: Some(2), ..TokenQuotas::default() };
    let set = |quotas| Command::SetQuotas { to: TO, token: TokenId(1), quotas, by: By::Server };
    let recorded = bench.events(set(quotas));
    let event = Event::TokenQuotasSet { token: TokenId(1), quotas, by: By::Server };
    assert_eq!(recorded, [event]);
    assert_eq!(bench.events(set(quotas)), [], "it is so already");
    bench.events(set(TokenQuotas { jobs: Some(2), ..TokenQuotas::default() }));
    submit(&mut bench, ALICE, 1).unwrap();
    let limits = quotas_of(&mut bench, ALICE).unwrap().limits;
    assert_eq!(limits, Quotas { jobs: 2, slot_share: 2, ..Quotas::DEFAULT });
    let wrong = set(TokenQuotas { slot_share: Some(0), ..TokenQuotas::default() });
    assert_eq!(kind(bench.answer(wrong)), Some(ErrorKind::Invalid));
    let restored = Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config());
    assert_eq!(restored.unwrap().state(), bench.core.state());
}

#[test]
fn the_servers_defaults_hold_for_tokens_without_quotas_of_their_own() {
    let quotas = Quotas { jobs: 1, ..Quotas::DEFAULT };
    let config = CoreConfig { quotas, ..CoreConfig::default() };
    let mut bench = Bench { core: Core::new(config), ..Bench::new() };
    create(&mut bench, "alice", Rights::Submit, TokenQuotas::default());
    assert_eq!(quotas_of(&mut bench, ALICE).unwrap().limits, quotas);
    let query = Query::FailureQuota { token: TokenId(1) };
    let most = bench.answer(Command::Query { to: TO, query }).unwrap();
    assert_eq!(most, Answer::FailureQuota(Some(quotas.failures)));
}

fn states(bench: &mut Bench) -> Vec<TokenState> {
    match bench.answer(Command::Query { to: TO, query: Query::Links { job: JOB } }).unwrap() {
        Answer::Tokens(tokens) => tokens.iter().map(|token| token.state).collect(),
        other => panic!("{other:?}"),
    }
}

fn opens(bench: &mut Bench, name: &str) -> bool {
    let query = Query::HolderOf { token_sha256: Digest::of(name.as_bytes()) };
    let answer = bench.answer(Command::Query { to: TO, query }).unwrap();
    matches!(answer, Answer::HolderOf(Some(sojourn_core::Holder::Guest(..))))
}

#[test]
fn a_link_ends_with_the_token_that_made_it() {
    let mut bench = with_users(TokenQuotas::default());
    bench.answer(submission(data(), 1, true)).unwrap();
    for (by, name) in [(ALICE, "by alice"), (BOB, "by bob"), (By::Server, "by admin")] {
        ask(&mut bench, by, page_link(JOB, name, by)).unwrap();
        assert!(opens(&mut bench, name));
    }
    let revoke = Command::RevokeToken { to: TO, token: TokenId(1), of: None, by: None };
    let recorded = events(bench.apply(revoke));
    assert_eq!(recorded.len(), 1, "no event for each link: {recorded:?}");
    use TokenState::{Expired, Revoked, Valid};
    assert_eq!(states(&mut bench), [Revoked, Valid, Valid]);
    let open =
        |bench: &mut Bench| ["by alice", "by bob", "by admin"].map(|name| opens(bench, name));
    assert_eq!(open(&mut bench), [false, true, true]);
    let rotate = Command::RotateToken { to: TO, token: TokenId(5), sha256: Digest::of(b"x") };
    assert_eq!(kind(bench.answer(rotate)), Some(ErrorKind::Conflict));
    bench.now += DAY.0;
    assert_eq!(states(&mut bench), [Revoked, Expired, Valid]);
    assert_eq!(open(&mut bench), [false, false, true]);
}

#[test]
fn links_are_bounded_for_each_token_and_those_of_all_together_stay_bounded() {
    let mut bench = with_users(TokenQuotas { links: Some(2), ..TokenQuotas::default() });
    bench.answer(submission(data(), 1, true)).unwrap();
    for n in 0..2 {
        ask(&mut bench, ALICE, page_link(JOB, &format!("a{n}"), ALICE)).unwrap();
    }
    let refused = ask(&mut bench, ALICE, page_link(JOB, "a2", ALICE)).unwrap_err();
    assert_eq!(
        refused.message,
        "`alice` has 2 links to pages of jobs, and its quota `links` is 2: revoke one, on its job's page; an administrator \
         raises it by `sojourn token set 1 --links N`"
    );
    assert_eq!(used(&mut bench, ALICE).links, 2);
    ask(&mut bench, BOB, page_link(JOB, "of bob", BOB)).unwrap();
    let revoke = Command::RevokeToken { to: TO, token: TokenId(5), of: Some(JOB), by: Some(ALICE) };
    ask(&mut bench, ALICE, revoke).unwrap();
    ask(&mut bench, ALICE, page_link(JOB, "a2", ALICE)).unwrap();
    for n in 3..MAX_PAGE_LINKS {
        ask(&mut bench, By::Server, page_link(JOB, &format!("s{n}"), By::Server)).unwrap();
    }
    let full = ask(&mut bench, By::Server, page_link(JOB, "more", By::Server)).unwrap_err();
    assert!(full.message.contains("there are 1000 links"), "{full}");
}

#[test]
fn a_journal_without_owners_is_read_and_written_as_before() {
    let mut bench = Bench::with_job(1, 1);
    let text = serde_json::to_string::<Vec<Record>>(&bench.journal).unwrap();
    assert!(!text.contains("\"by\"") && !text.contains("quotas"), "{text}");
    let snapshot = String::from_utf8(bench.core.snapshot().unwrap()).unwrap();
    assert!(!snapshot.contains("\"owner\""), "{snapshot}");
    let work = bench.ask(HOST, request(1, Vec::new()));
    assert_eq!(work.leases.len(), 1);
}
