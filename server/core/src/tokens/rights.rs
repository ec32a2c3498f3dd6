//! Which commands a user's token may give: one table over all commands, and whose the jobs are that they change.

use crate::{
    command::{Command, Query},
    quotas::name_of,
};
use sojourn_protocol::{
    error::{ApiError, ErrorKind},
    ids::{JobId, TokenId},
    time::UnixMillis,
    tokens::{Rights, TokenGrant},
};
use sojourn_state::{By, Job, State};
use std::slice;

/// The subject of a user's command, as rights count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject<'a> {
    /// Jobs that it changes, deletes or shows to others: those of the token, for users with the right to `submit`.
    Jobs(&'a [JobId]),
    /// A new job: for users with the right to `submit`.
    NewJob,
    /// Anything else: for administrators.
    Server,
}

impl Command {
    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Submit { .. } | Self::SubmitPrepared { .. } => Subject::NewJob,
            Self::Cancel { job, .. }
            | Self::Evaluate { job, .. }
            | Self::Pause { job, .. }
            | Self::Resume { job, .. }
            | Self::Extend { job, .. }
            | Self::ChangeSearch { job, .. }
            | Self::Place { job, .. }
            | Self::Note { job, .. }
            | Self::Rollback { job, .. }
            | Self::RevokeToken { of: Some(job), .. }
            | Self::Query { query: Query::Links { job }, .. } => {
                Subject::Jobs(slice::from_ref(job))
            }
            Self::Delete { jobs, .. } => Subject::Jobs(jobs),
            Self::CreateToken { request, .. } => match &request.grant {
                TokenGrant::PageLink { job } => Subject::Jobs(slice::from_ref(job)),
                TokenGrant::Enrol { .. } | TokenGrant::Access { .. } => Subject::Server,
            },
            Self::Tick
            | Self::Started
            | Self::OnBehalf { .. }
            | Self::Enrol { .. }
            | Self::EnrolWithToken { .. }
            | Self::RotateToken { .. }
            | Self::RevokeToken { of: None, .. }
            | Self::SetQuotas { .. }
            | Self::ReportMachines { .. }
            | Self::DrainMachines { .. }
            | Self::Lead { .. }
            | Self::RevokeHost { .. }
            | Self::BlockHost { .. }
            | Self::ForgetHost { .. }
            | Self::HearIncarnation { .. }
            | Self::Ask { .. }
            | Self::Hangup { .. }
            | Self::Heartbeat { .. }
            | Self::Release { .. }
            | Self::AuthorizeUpload { .. }
            | Self::AuthorizeRead { .. }
            | Self::Report { .. }
            | Self::TakeAssimilation { .. }
            | Self::TakeSmallAssimilation { .. }
            | Self::RenewAssimilation { .. }
            | Self::OfferAssimilated { .. }
            | Self::OfferRejected { .. }
            | Self::Missing { .. }
            | Self::AuthorizePublish { .. }
            | Self::Published { .. }
            | Self::Deleted { .. }
            | Self::Lost { .. }
            | Self::PlanReady { .. }
            | Self::Storage(_)
            | Self::Query { .. } => Subject::Server,
        }
    }
}

fn forbidden(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorKind::Forbidden, message)
}

/// Lets a user give a command.
///
/// # Errors
/// Where the token opens nothing any more, has too few rights, or isn't that of a job which the command changes.
pub(crate) fn admit(
    state: &State,
    by: By,
    command: &Command,
    now: UnixMillis,
) -> Result<(), ApiError> {
    let By::Token(token) = by else { return Ok(()) };
    let rights = state.issued.rights(token, now).ok_or_else(|| {
        let message = format!("token {token} opens nothing any more");
        ApiError::new(ErrorKind::Unauthorized, message)
    })?;
    let wanted = match command.subject() {
        Subject::Jobs(_) | Subject::NewJob => Rights::Submit,
        Subject::Server => Rights::Administer,
    };
    if rights < wanted {
        let wanted = wanted.name();
        return Err(forbidden(format!("this needs a token with the right to `{wanted}`")));
    }
    match command.subject() {
        Subject::Jobs(jobs) if rights < Rights::Administer => {
            // The command says itself which jobs aren't there.
            let mut known = jobs.iter().filter_map(|job| state.jobs.get(job));
            known.try_for_each(|job| check_owner(state, job, token))
        }
        Subject::Jobs(_) | Subject::NewJob | Subject::Server => Ok(()),
    }
}

/// Is a job that of a token? One that was submitted before jobs had owners is that of each: its user can't be told, and goes on
/// with it.
fn check_owner(state: &State, job: &Job, token: TokenId) -> Result<(), ApiError> {
    let (caller, id) = (By::Token(token), job.id);
    let Some(owner) = job.owner.filter(|owner| *owner != caller) else { return Ok(()) };
    let [mut owner_name, mut caller_name] = [owner, caller].map(|by| name_of(state, by));
    if owner_name == caller_name {
        for (name, by) in [(&mut owner_name, owner), (&mut caller_name, caller)] {
            name.extend(by.token().map(|token| format!(" (token {token})")));
        }
    }
    Err(forbidden(format!("job {id} belongs to {owner_name}; this token is {caller_name}")))
}
