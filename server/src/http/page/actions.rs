//! The actions of the buttons of a job's page: the same requests to the core as those of `/v1`.

use super::{answer, answer::PageError};
use crate::http::{App, auth::UserBy, error::HttpError, page_links, tokens};
use actix_web::{
    HttpRequest, HttpResponse,
    web::{Form, Path},
};
use serde::Deserialize;
use serde_json::Value;
use sojourn_core::request;
use sojourn_page::{address::of_trial, job::Tab, page_link as link_page};
use sojourn_protocol::{
    api::{GoOn, NewTrial, Retry, SearchRequest},
    error::ErrorKind,
    ids::{JobId, TokenId, TrialId},
    names::TokenLabel,
    spec::Choices,
    time::Millis,
    tokens::PageLinkRequest,
};

/// The form that a button sends.
#[derive(Debug, Deserialize)]
pub(in crate::http) struct Button {
    action: Action,
    epochs: Option<u32>,
    /// Is a cancelled job to go on?
    #[serde(default)]
    reopen: bool,
    trial: Option<TrialId>,
    #[serde(default)]
    back: Back,
    #[serde(default)]
    set: String,
    #[serde(default)]
    label: String,
    days: Option<u64>,
    token: Option<TokenId>,
}

/// The page that comes next.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Back {
    /// The job's overview.
    #[default]
    Overview,
    /// The leader board.
    Trials,
    /// The page of the button's trial.
    Trial,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Pause,
    Resume,
    Cancel,
    Extend,
    Stop,
    Revive,
    Retry,
    Clone,
    #[serde(rename = "share")]
    MakeLink,
    #[serde(rename = "unshare")]
    RevokeLink,
}

/// Does what a button says, and leads back to the page that it stands on.
pub(in crate::http) async fn act(
    app: App,
    by: UserBy,
    request: HttpRequest,
    job: Path<JobId>,
    Form(button): Form<Button>,
) -> Result<HttpResponse, PageError> {
    let job = *job;
    match button.action {
        Action::Pause => {
            drop(app.shell.request(by.asks(request::Pause { job, now: false })).await?)
        }
        Action::Resume => drop(app.shell.request(by.asks(request::Resume { job })).await?),
        Action::Cancel => drop(app.shell.request(by.asks(request::Cancel { job })).await?),
        Action::Extend => {
            let epochs = button.epochs.ok_or_else(|| missing("epochs"))?;
            let extend = request::Extend { job, epochs, trial: None, reopen: button.reopen };
            drop(app.shell.request(by.asks(extend)).await?);
        }
        Action::Stop => {
            let stop = vec![button.trial.ok_or_else(|| missing("trial"))?];
            change(&app, job, SearchRequest { stop, ..SearchRequest::default() }, &by).await?;
        }
        Action::Revive => {
            let trial = button.trial.ok_or_else(|| missing("trial"))?;
            let step = request::GetTrials { job, from: trial, limit: 1 };
            let known = app.shell.request(step).await?.into_iter().next();
            let unknown =
                || HttpError::new(ErrorKind::NotFound, format!("job {job} has no trial {trial}"));
            let epochs = known.ok_or_else(unknown)?.epochs;
            let go_on = vec![GoOn { trial, epochs }];
            change(&app, job, SearchRequest { go_on, ..SearchRequest::default() }, &by).await?;
        }
        Action::Retry => {
            let trial = button.trial.ok_or_else(|| missing("trial"))?;
            let retry = vec![Retry { trial, ..Retry::default() }];
            change(&app, job, SearchRequest { retry, ..SearchRequest::default() }, &by).await?;
        }
        Action::Clone => {
            let values = settings(&button.set)?;
            let add = vec![NewTrial { values, from: button.trial }];
            change(&app, job, SearchRequest { add, ..SearchRequest::default() }, &by).await?;
        }
        Action::MakeLink => return make_link(&app, job, &button, &by, &request).await,
        Action::RevokeLink => {
            let token = button.token.ok_or_else(|| missing("token"))?;
            let revoke = request::RevokeToken { token, of: Some(job), by: Some(by.0) };
            drop(app.shell.request(by.asks(revoke)).await?);
        }
    }
    Ok(answer::go_to(&match (button.back, button.trial) {
        (Back::Trials, _) => Tab::Trials.address(job),
        (Back::Trial, Some(trial)) => of_trial(job, trial),
        (Back::Overview | Back::Trial, _) => Tab::Overview.address(job),
    }))
}

/// Makes a link to the job's page, and shows it, once.
async fn make_link(
    app: &App,
    job: JobId,
    button: &Button,
    by: &UserBy,
    request: &HttpRequest,
) -> Result<HttpResponse, PageError> {
    let label: Result<TokenLabel, _> = button.label.trim().parse();
    let label = label.map_err(|error| HttpError::new(ErrorKind::Invalid, error.to_string()))?;
    // Without a number of days it lasts until it is revoked.
    let lifetime = button.days.filter(|days| *days > 0);
    let lifetime = lifetime.map(|days| Millis::from_secs(days.saturating_mul(24 * 3600)));
    let asked = page_links::token_request(job, PageLinkRequest { label, lifetime });
    let made = tokens::issue(app, asked, by).await?;
    let address = {
        let of = request.connection_info();
        format!("{}://{}/share#{}", of.scheme(), of.host(), made.secret)
    };
    Ok(answer::html(link_page::made(job, &made.token, &address)))
}

async fn change(
    app: &App,
    job: JobId,
    mut request: SearchRequest,
    by: &UserBy,
) -> Result<(), PageError> {
    request.why = Some("by the web page".to_owned());
    let change = request::ChangeSearch { job, request: Box::new(request), by: by.0 };
    app.shell.request(by.asks(change)).await?;
    Ok(())
}

fn missing(field: &str) -> HttpError {
    HttpError::new(ErrorKind::Invalid, format!("`{field}` is missing"))
}

/// `lr=1e-4, hidden=[8, 4]` as settings: values as JSON has them, or words.
fn settings(text: &str) -> Result<Choices, HttpError> {
    let mut settings = Choices::new();
    // A comma within brackets or quotes is a value's.
    let mut rest = text.trim();
    while !rest.is_empty() {
        let wrong =
            || HttpError::new(ErrorKind::Invalid, "settings are like lr=1e-4, hidden=[8, 4]");
        let (key, after) = rest.split_once('=').ok_or_else(wrong)?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let ends = |at: usize| {
            after.get(at..).is_some_and(|left| {
                left.trim_start().is_empty() || left.trim_start().starts_with(',')
            })
        };
        let (value, end) = match values.next() {
            Some(Ok(value)) if ends(values.byte_offset()) => (value, values.byte_offset()),
            _ => {
                let end = after.find(',').unwrap_or(after.len());
                (Value::from(after.get(..end).unwrap_or_default().trim()), end)
            }
        };
        settings.insert(key.trim().to_owned(), value);
        let left = after.get(end..).unwrap_or_default().trim_start();
        rest = left.strip_prefix(',').unwrap_or(left).trim_start();
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::settings;
    use serde_json::json;

    #[test]
    fn settings_are_numbers_lists_or_words() {
        let of = |text: &str| serde_json::to_value(settings(text).unwrap()).unwrap();
        assert_eq!(of(""), json!({}));
        assert_eq!(of("lr=1e-4"), json!({"lr": 1e-4}));
        assert_eq!(
            of("hidden=[8, 4], optimizer=adam,lr = 0.1"),
            json!({"hidden": [8, 4], "optimizer": "adam", "lr": 0.1})
        );
        assert_eq!(of("name=\"a, b\", n=2x"), json!({"name": "a, b", "n": "2x"}));
        assert!(settings("lr").is_err());
    }
}
