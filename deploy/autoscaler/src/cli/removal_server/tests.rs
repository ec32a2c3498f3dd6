use super::*;
use sojourn_http::CallError;
use sojourn_protocol::{
    demand::DemandView,
    error::{ApiError, ErrorKind},
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachineName, MachinesRequest,
    },
    time::UnixMillis,
};
use std::sync::{Arc, Mutex, MutexGuard};

/// Server and clock of a test. Time passes as tokio's does.
#[derive(Clone)]
struct Shared(Arc<Mutex<State>>, tokio::time::Instant);

#[derive(Default)]
struct State {
    /// What the server says to those who want to lead, at the last for all that follow.
    answers: Vec<Lead>,
    asked: Vec<LeaderRequest>,
}

#[derive(Clone, Copy)]
enum Lead {
    Yes,
    Nobody,
    Other,
    Away,
}

fn refused() -> CallError {
    CallError::Refused {
        server: "http://server".into(),
        error: ApiError::new(ErrorKind::Unavailable, "no"),
        retry_after: None,
    }
}

impl Shared {
    fn new(answers: &[Lead]) -> Self {
        let state = State { answers: answers.to_vec(), ..State::default() };
        Self(Arc::new(Mutex::new(state)), tokio::time::Instant::now())
    }

    fn edit(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn removal(&self) -> RemovalServer<Self, Self> {
        RemovalServer::new(self.clone(), self.clone(), "night")
    }

    fn passed(&self) -> Duration {
        self.1.elapsed()
    }
}

impl World for Shared {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_000_000 + u64::try_from(self.passed().as_millis()).unwrap())
    }

    fn seed(&self) -> u64 {
        7
    }
}

impl Server for Shared {
    async fn lead(&self, request: &LeaderRequest) -> Result<LeaderAnswer, CallError> {
        let mut state = self.edit();
        state.asked.push(request.clone());
        let answer = state.answers[0];
        if state.answers.len() > 1 {
            state.answers.remove(0);
        }
        let holder = match answer {
            Lead::Yes => Some(request.holder.clone()),
            Lead::Nobody => None,
            Lead::Other => Some("other".to_owned()),
            Lead::Away => return Err(refused()),
        };
        Ok(LeaderAnswer { holder, leads: matches!(answer, Lead::Yes), term: request.term })
    }

    async fn demand(&self) -> Result<DemandView, CallError> {
        Err(refused())
    }

    async fn report(&self, _: &MachinesRequest) -> Result<(), CallError> {
        Err(refused())
    }

    async fn drain(&self, _: &DrainRequest) -> Result<(), CallError> {
        Err(refused())
    }

    async fn costs(&self) -> Result<CostsView, CallError> {
        Err(refused())
    }

    async fn enrolment_token(&self, _: &MachineName, _: Millis) -> Result<String, CallError> {
        Err(refused())
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_just_started_is_waited_for() {
    let shared = Shared::new(&[Lead::Nobody, Lead::Nobody, Lead::Yes]);
    let mut removal = shared.removal();
    removal.acquire().await.unwrap();
    assert_eq!(shared.edit().asked.len(), 3);
    assert!(shared.passed() >= Duration::from_secs(60), "{:?}", shared.passed());

    let shared = Shared::new(&[Lead::Nobody]);
    shared.removal().acquire().await.unwrap_err();
    assert!(shared.passed() >= Duration::from_secs(600), "{:?}", shared.passed());

    for answers in [&[Lead::Other][..], &[Lead::Nobody, Lead::Other]] {
        let shared = Shared::new(answers);
        let refused = format!("{:?}", shared.removal().acquire().await.unwrap_err());
        assert!(refused.contains("other buys machines for this fleet"), "{refused}");
    }
    Shared::new(&[Lead::Away]).removal().acquire().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_while_machines_end() {
    let shared = Shared::new(&[Lead::Yes]);
    let mut removal = shared.removal();
    removal.acquire().await.unwrap();
    for _ in 0..180 {
        removal.renew().await.unwrap();
        assert!(removal.lease.may_act(shared.now()));
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let renewed = shared.edit().asked.iter().filter(|request| request.renews).count();
    assert!((8..=9).contains(&renewed), "{renewed}");

    shared.edit().answers = vec![Lead::Other];
    tokio::time::sleep(Duration::from_secs(100)).await;
    removal.renew().await.unwrap_err();
}
