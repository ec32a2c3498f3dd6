//! Commands of users: whether the token may give them, and those that note who gave them.

use crate::{
    command::Command, core::Core, effect::Answer, fault::CoreFault, reply::Refusal,
    submission::PreparedSubmission, tokens::admit,
};
use sojourn_protocol::api::ExtendRequest;
use sojourn_scheduling::waiters::ReplyTo;
use sojourn_state::By;

impl Core {
    /// Carries out a command of a user, where the user's token may give it.
    pub(crate) fn execute_on_behalf(
        &mut self,
        to: ReplyTo,
        by: By,
        command: Command,
    ) -> Result<(), CoreFault> {
        if let Err(error) = admit(&self.state, by, &command, self.clock.now()) {
            return self.answer(to, Err(error.into()));
        }
        match command {
            Command::Submit { to, spec, data, again, nonce } => {
                let prepared = PreparedSubmission::new(spec, data).map_err(Refusal::from);
                let reply = prepared
                    .and_then(|prepared| self.jobs().submit(prepared, again, nonce, Some(by)));
                self.answer(to, reply.map(Answer::Submitted))
            }
            Command::SubmitPrepared { to, prepared, again, nonce } => {
                let reply = self.jobs().submit(*prepared, again, nonce, Some(by));
                self.answer(to, reply.map(Answer::Submitted))
            }
            Command::Extend { to, job, epochs, trial, reopen } => {
                let reply =
                    self.jobs().extend_on_behalf(job, ExtendRequest { epochs, trial, reopen }, by);
                self.answer_job(to, job, reply)
            }
            other => self.execute(other),
        }
    }
}
