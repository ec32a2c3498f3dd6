//! The server of a simulation, as the driver sees it: each of its calls is a letter that whoever polls the driver answers.
//!
//! ```text
//!   Driver::round --call--> Mailbox: question   (the future waits)
//!   Buyer: polls, takes the question, asks the core, leaves the answer, polls again
//! ```

use sojourn_autoscaler::server::Server;
use sojourn_core::{Answer, Command, Query, ReplyTo};
use sojourn_http::CallError;
use sojourn_protocol::{
    demand::DemandView,
    digest::Digest,
    error::{ApiError, ErrorKind},
    machines::{
        CostsView, DrainRequest, LeaderAnswer, LeaderRequest, MachineName, MachinesRequest,
    },
    names::{OwnerName, TokenLabel},
    quotas::TokenQuotas,
    time::Millis,
    tokens::{TokenGrant, TokenRequest},
};
use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

/// The reply address of all commands: each answer goes back by the call that asked.
pub(super) const NOBODY: ReplyTo = ReplyTo(0);

/// The mailbox.
#[derive(Debug, Clone, Default)]
pub(super) struct Mailbox(Arc<Mutex<Letters>>);

#[derive(Debug, Default)]
struct Letters {
    question: Option<Command>,
    answer: Option<Result<Answer, ApiError>>,
}

/// The secret of a machine's enrolment token.
pub(super) fn secret_of(machine: &MachineName) -> String {
    format!("secret of {machine}")
}

/// The command by which a machine's enrolment token is made.
pub(super) fn token_command(machine: &MachineName, lifetime: Millis) -> Command {
    let owner = OwnerName::default();
    let grant =
        TokenGrant::Enrol { owner, hosts: 1, machine: Some(machine.clone()), trusted: false };
    let request = TokenRequest {
        label: TokenLabel::default(),
        grant,
        lifetime: Some(lifetime),
        quotas: TokenQuotas::default(),
    };
    let sha256 = Digest::of(secret_of(machine).as_bytes());
    Command::CreateToken { to: NOBODY, request, sha256, by: None }
}

impl Mailbox {
    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command that is asked and wasn't taken yet: it is taken.
    pub(super) fn question(&self) -> Option<Command> {
        self.letters().question.take()
    }

    /// Answers it.
    pub(super) fn answer(&self, answer: Result<Answer, ApiError>) {
        self.letters().answer = Some(answer);
    }

    /// Nothing is asked any more: whoever asked has died.
    pub(super) fn clear(&self) {
        *self.letters() = Letters::default();
    }

    async fn ask(&self, command: Command) -> Result<Answer, CallError> {
        self.letters().question = Some(command);
        let answer = poll_fn(|_| match self.letters().answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        });
        answer.await.map_err(refused)
    }
}

fn refused(error: ApiError) -> CallError {
    CallError::Refused { server: "simulated".to_owned(), error, retry_after: None }
}

fn unexpected() -> CallError {
    refused(ApiError::new(ErrorKind::Internal, "another answer was expected"))
}

impl Server for Mailbox {
    async fn lead(&self, request: &LeaderRequest) -> Result<LeaderAnswer, CallError> {
        match self.ask(Command::Lead { to: NOBODY, request: request.clone() }).await? {
            Answer::Leader(answer) => Ok(*answer),
            _ => Err(unexpected()),
        }
    }

    async fn demand(&self) -> Result<DemandView, CallError> {
        match self.ask(Command::Query { to: NOBODY, query: Query::Demand }).await? {
            Answer::Demand(demand) => Ok(*demand),
            _ => Err(unexpected()),
        }
    }

    async fn report(&self, request: &MachinesRequest) -> Result<(), CallError> {
        let machines = request.machines.clone();
        self.ask(Command::ReportMachines { to: NOBODY, machines }).await.map(drop)
    }

    async fn drain(&self, request: &DrainRequest) -> Result<(), CallError> {
        let request = request.clone();
        self.ask(Command::DrainMachines { to: NOBODY, request }).await.map(drop)
    }

    async fn costs(&self) -> Result<CostsView, CallError> {
        match self.ask(Command::Query { to: NOBODY, query: Query::Costs }).await? {
            Answer::Costs(costs) => Ok(*costs),
            _ => Err(unexpected()),
        }
    }

    async fn enrolment_token(
        &self,
        machine: &MachineName,
        lifetime: Millis,
    ) -> Result<String, CallError> {
        self.ask(token_command(machine, lifetime)).await?;
        Ok(secret_of(machine))
    }
}
