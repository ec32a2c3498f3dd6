//! Owners of hosts, and tokens that the server has issued.

use crate::support::{Bench, HOST, request};
use sojourn_core::{
    Answer, By, Command, Core, CoreConfig, Event, Holder, JournalPosition, MAX_PAGE_LINKS,
    MAX_TOKENS, Query, Record, ReplyTo,
};
use sojourn_protocol::{
    digest::Digest,
    error::{ApiError, ErrorKind},
    ids::{HostId, JobId, TokenId},
    names::{OwnerName, TokenLabel},
    quotas::TokenQuotas,
    time::{Millis, UnixMillis},
    tokens::{
        MAX_TOKEN_HOSTS, MAX_TOKEN_LIFETIME, RevokedToken, Rights, TokenGrant, TokenRequest,
        TokenState, TokenView,
    },
    view::HostState,
};

const TO: ReplyTo = ReplyTo(1);
const FIRST: TokenId = TokenId(1);
const DAY: Millis = Millis::from_secs(24 * 3600);

fn enrols(owner: &str, hosts: u32) -> TokenRequest {
    let grant =
        TokenGrant::Enrol { owner: owner.parse().unwrap(), hosts, machine: None, trusted: false };
    TokenRequest {
        label: "gpu".parse().unwrap(),
        grant,
        lifetime: None,
        quotas: TokenQuotas::default(),
    }
}

fn user(name: &str, rights: Rights) -> TokenRequest {
    let grant = TokenGrant::Access { rights };
    TokenRequest {
        label: name.parse().unwrap(),
        grant,
        lifetime: None,
        quotas: TokenQuotas::default(),
    }
}

fn secret(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn create(bench: &mut Bench, request: TokenRequest, name: &str) -> Result<TokenView, ApiError> {
    match bench.answer(Command::CreateToken {
        to: TO,
        request,
        sha256: secret(name),
        by: Some(By::Server),
    })? {
        Answer::Token(token) => Ok(*token),
        other => panic!("{other:?}"),
    }
}

fn enrol(bench: &mut Bench, with: TokenId, name: &str) -> Result<HostId, ApiError> {
    let (token_sha256, name) = (secret(name), name.to_owned());
    match bench.answer(Command::EnrolWithToken { to: TO, name, token_sha256, with })? {
        Answer::Enrolled(host) => Ok(host),
        other => panic!("{other:?}"),
    }
}

fn holder(bench: &mut Bench, name: &str) -> Option<Holder> {
    let query = Query::HolderOf { token_sha256: secret(name) };
    match bench.answer(Command::Query { to: TO, query }).unwrap() {
        Answer::HolderOf(holder) => holder,
        other => panic!("{other:?}"),
    }
}

fn states(bench: &mut Bench) -> Vec<TokenState> {
    match bench.answer(Command::Query { to: TO, query: Query::Tokens }).unwrap() {
        Answer::Tokens(tokens) => tokens.iter().map(|token| token.state).collect(),
        other => panic!("{other:?}"),
    }
}

fn revoke(bench: &mut Bench, token: TokenId) -> Result<RevokedToken, ApiError> {
    match bench.answer(Command::RevokeToken {
        to: TO,
        token,
        of: None,
        by: Some(By::Token(TokenId(3))),
    })? {
        Answer::TokenRevoked(revoked) => Ok(*revoked),
        other => panic!("{other:?}"),
    }
}

/// A core with one host of this owner, as its journal says.
fn with_host_of(owner: OwnerName) -> Core {
    let mut core = Core::new(CoreConfig::default());
    let (name, token_sha256) = ("gpu-1".to_owned(), Digest::of(b"token"));
    let event = Event::HostEnrolled { host: HostId(1), name, token_sha256, owner, token: None };
    core.fold(&Record { position: JournalPosition(1), at: UnixMillis(5), event }).unwrap();
    core
}

fn restored(bench: &Bench) -> Core {
    Core::from_snapshot(&bench.core.snapshot().unwrap(), *bench.core.config()).unwrap()
}

#[test]
fn every_host_has_an_owner_also_after_a_snapshot() {
    let owner: OwnerName = "lab-3".parse().unwrap();
    let core = with_host_of(owner.clone());
    assert_eq!(core.state().owner_of(HostId(1)), Some(&owner));
    assert_eq!(core.state().owner_of(HostId(2)), None);
    let restored = Core::from_snapshot(&core.snapshot().unwrap(), *core.config()).unwrap();
    assert_eq!(restored.state(), core.state());
}

#[test]
fn hosts_of_the_servers_own_token_belong_to_the_deployment() {
    let bench = Bench::new();
    assert_eq!(bench.core.state().owner_of(HOST), Some(&OwnerName::default()));
    // Neither journal nor snapshot say so, as before there were owners.
    let snapshot = String::from_utf8(bench.core.snapshot().unwrap()).unwrap();
    assert!(!snapshot.contains("owner") && !snapshot.contains("issued"), "{snapshot}");
}

#[test]
fn a_token_enrols_as_many_hosts_as_it_is_for_and_they_have_its_owner() {
    let mut bench = Bench::new();
    let token = create(&mut bench, enrols("lab-3", 2), "t").unwrap();
    assert_eq!((token.token, token.state, token.enrolled), (FIRST, TokenState::Valid, 0));
    assert_eq!(holder(&mut bench, "t"), Some(Holder::Enroller(FIRST)));
    for name in ["x", "y"] {
        let host = enrol(&mut bench, FIRST, name).unwrap();
        assert_eq!(bench.core.state().owner_of(host).unwrap().as_str(), "lab-3");
        assert_eq!(holder(&mut bench, name), Some(Holder::Host(host)));
    }
    assert_eq!(states(&mut bench), [TokenState::Used]);
    let refused = enrol(&mut bench, FIRST, "z").unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unauthorized);
    assert!(refused.message.contains("token 1 was for 2 hosts, which have all enrolled"));
    assert_eq!(restored(&bench).state(), bench.core.state());
}

#[test]
fn a_token_that_has_expired_opens_nothing() {
    let mut bench = Bench::new();
    for (request, name) in [(enrols("a", 9), "t"), (user("alice", Rights::Read), "u")] {
        create(&mut bench, TokenRequest { lifetime: Some(DAY), ..request }, name).unwrap();
    }
    bench.now += DAY.0 - 1;
    enrol(&mut bench, FIRST, "x").unwrap();
    assert_eq!(holder(&mut bench, "u"), Some(Holder::User(TokenId(2), Rights::Read)));
    bench.now += 1;
    let refused = enrol(&mut bench, FIRST, "y").unwrap_err();
    assert!(refused.message.contains("has expired"), "{refused}");
    assert_eq!(holder(&mut bench, "u"), Some(Holder::Expired(TokenId(2))));
    assert_eq!(states(&mut bench), [TokenState::Expired; 2]);
    // Its host works on.
    assert!(holder(&mut bench, "x").is_some());
}

#[test]
fn a_revoked_token_takes_its_hosts_with_it_and_no_others() {
    let mut bench = Bench::with_job(2, 1);
    create(&mut bench, enrols("lab-3", 9), "t").unwrap();
    create(&mut bench, enrols("lab-3", 9), "u").unwrap();
    let host = enrol(&mut bench, FIRST, "x").unwrap();
    let other = enrol(&mut bench, TokenId(2), "y").unwrap();
    let lease = bench.lease(host);
    let revoked = revoke(&mut bench, FIRST).unwrap();
    assert_eq!((revoked.hosts, revoked.token.state), (vec![host], TokenState::Revoked));
    assert_eq!(holder(&mut bench, "t"), None);
    assert_eq!(holder(&mut bench, "x"), Some(Holder::Revoked));
    assert!(bench.core.state().hosts[&host].revoked);
    assert!(!bench.core.state().leases.contains_key(&lease.id), "it goes to another host");
    assert_eq!(holder(&mut bench, "y"), Some(Holder::Host(other)));
    assert!(enrol(&mut bench, FIRST, "z").unwrap_err().message.contains("was revoked"));
    // Again, it is the same, and after a restart.
    assert_eq!(revoke(&mut bench, FIRST).unwrap().hosts, [host]);
    assert_eq!(restored(&bench).state(), bench.core.state());
    assert_eq!(revoke(&mut bench, TokenId(9)).unwrap_err().kind, ErrorKind::NotFound);
    let asked = bench.answer(Command::Ask { to: TO, host, request: request(1, Vec::new()) });
    assert_eq!(asked.unwrap_err().kind, ErrorKind::Unauthorized);
    let views = bench.answer(Command::Query { to: TO, query: Query::Hosts }).unwrap();
    let Answer::Hosts(views) = views else { panic!("{views:?}") };
    let view = views.iter().find(|view| view.host == host).unwrap();
    assert_eq!((view.state, view.owner.as_str()), (HostState::Revoked, "lab-3"));
}

#[test]
fn a_rotated_token_has_another_secret_and_the_same_rights() {
    let mut bench = Bench::new();
    create(&mut bench, user("alice", Rights::Submit), "old").unwrap();
    let rotate = |bench: &mut Bench, name: &str| {
        bench.answer(Command::RotateToken { to: TO, token: FIRST, sha256: secret(name) })
    };
    rotate(&mut bench, "new").unwrap();
    assert_eq!(holder(&mut bench, "old"), None);
    assert_eq!(holder(&mut bench, "new"), Some(Holder::User(FIRST, Rights::Submit)));
    assert_eq!(restored(&bench).state(), bench.core.state());
    assert_eq!(rotate(&mut bench, "new").unwrap_err().kind, ErrorKind::Conflict, "it is taken");
    revoke(&mut bench, FIRST).unwrap();
    assert_eq!(rotate(&mut bench, "newer").unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(holder(&mut bench, "newer"), None);
}

#[test]
fn requests_for_tokens_past_their_bounds_are_refused() {
    let mut bench = Bench::new();
    let long = Some(Millis(MAX_TOKEN_LIFETIME.0 + 1));
    let wrong = [
        enrols("a", 0),
        enrols("a", MAX_TOKEN_HOSTS + 1),
        user("", Rights::Read),
        TokenRequest { lifetime: long, ..enrols("a", 1) },
        TokenRequest { lifetime: Some(Millis(0)), ..enrols("a", 1) },
    ];
    for request in wrong {
        let refused = create(&mut bench, request, "t").unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid, "{refused}");
    }
    create(&mut bench, enrols("a", 1), "t").unwrap();
    let taken = create(&mut bench, enrols("a", 1), "t").unwrap_err();
    assert_eq!(taken.kind, ErrorKind::Conflict);
    let access = user("alice", Rights::Administer);
    create(&mut bench, access, "u").unwrap();
    let refused = enrol(&mut bench, TokenId(2), "x").unwrap_err();
    assert!(refused.message.contains("isn't for enrolling"), "{refused}");
}

#[test]
fn of_as_many_tokens_as_there_may_be_those_that_have_ended_make_room() {
    let mut bench = Bench::new();
    for n in 0..MAX_TOKENS {
        create(&mut bench, enrols("a", 1), &format!("t{n}")).unwrap();
    }
    let full = create(&mut bench, enrols("a", 1), "more").unwrap_err();
    assert!(full.message.contains("there are 10000 tokens"), "{full}");
    revoke(&mut bench, TokenId(7)).unwrap();
    let last = create(&mut bench, enrols("a", 1), "more").unwrap();
    assert_eq!(usize::try_from(last.token.0).unwrap(), MAX_TOKENS + 1);
    assert_eq!(bench.core.state().issued.iter().len(), MAX_TOKENS);
    assert!(bench.core.state().issued.get(TokenId(7)).is_none());
    assert_eq!(restored(&bench).state(), bench.core.state());
}

fn page_link(job: u64) -> TokenRequest {
    let grant = TokenGrant::PageLink { job: JobId(job) };
    TokenRequest {
        label: TokenLabel::default(),
        grant,
        lifetime: Some(DAY),
        quotas: TokenQuotas::default(),
    }
}

#[test]
fn a_link_shows_one_job_until_it_ends_or_is_revoked_and_the_journal_has_by_whom() {
    let mut bench = Bench::with_job(1, 1);
    let unknown = create(&mut bench, page_link(9), "x").unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::NotFound, "{unknown}");
    let request = page_link(1);
    let create =
        Command::CreateToken { to: TO, request, sha256: secret("l"), by: Some(By::Server) };
    let events = bench.events(create);
    let [Event::TokenCreated { by: Some(By::Server), grant, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(grant.shared_job(), Some(JobId(1)));
    assert_eq!(holder(&mut bench, "l"), Some(Holder::Guest(FIRST, JobId(1))));
    assert!(enrol(&mut bench, FIRST, "x").unwrap_err().message.contains("isn't for enrolling"));

    // Who revokes links of a job can't revoke other tokens so.
    let by = Some(By::Token(TokenId(7)));
    let other = Command::RevokeToken { to: TO, token: FIRST, of: Some(JobId(2)), by };
    assert_eq!(bench.answer(other).unwrap_err().kind, ErrorKind::NotFound);
    let revoke = Command::RevokeToken { to: TO, token: FIRST, of: Some(JobId(1)), by };
    let revoked = Event::TokenRevoked { token: FIRST, job: Some(JobId(1)), by };
    assert_eq!(bench.events(revoke.clone()), [revoked]);
    assert_eq!(bench.events(revoke), [], "it is revoked already");
    assert_eq!(holder(&mut bench, "l"), None);
    assert_eq!(restored(&bench).state(), bench.core.state());
}

#[test]
fn a_link_ends_by_itself() {
    let mut bench = Bench::with_job(1, 1);
    create(&mut bench, page_link(1), "l").unwrap();
    bench.now += DAY.0;
    assert_eq!(holder(&mut bench, "l"), Some(Holder::Expired(FIRST)));
}

#[test]
fn links_do_not_use_up_the_tokens() {
    let mut bench = Bench::with_job(1, 1);
    for n in 0..MAX_PAGE_LINKS {
        create(&mut bench, page_link(1), &format!("l{n}")).unwrap();
    }
    let full = create(&mut bench, page_link(1), "more").unwrap_err();
    assert!(full.message.contains("there are 1000 links"), "{full}");
    create(&mut bench, enrols("a", 1), "t").unwrap();
    revoke(&mut bench, FIRST).unwrap();
    create(&mut bench, page_link(1), "more").unwrap();
}
