//! The findings of an earlier job of the server, for a search that begins with them.

use crate::{
    api_client::ApiClient,
    cli::{jobs::job_ref::JobRef, submit::jobfile::Job, terminal::exit::Failure},
};
use sojourn_api::endpoints;
use sojourn_protocol::{
    api::SearchTrial,
    ids::JobId,
    quantity::to_u64,
    spec::{Choices, PastTrial, is_replicate},
};
use sojourn_workgen::search::preview;
use std::collections::BTreeSet;

/// Takes the results of the job that `search.history` names into the job. Their number, where it names one.
pub(crate) async fn find(client: &ApiClient, job: &mut Job) -> Result<Option<u64>, Failure> {
    let Some(past) = job.spec.search.history.as_mut() else { return Ok(None) };
    let name: JobRef = past.job.parse().map_err(|why| {
        Failure::call(format!("`search.history` is `{}`, which is no job: {why}", past.job))
    })?;
    let id = name.find(client).await?;
    let of = client.call(endpoints::Job::request(id)).await?.spec;
    let (metric, theirs) = (job.spec.search.metric.name(), of.search.metric.name());
    if metric != theirs {
        return Err(Failure::call(format!(
            "`search.history` is job {id}, which is compared by `{theirs}`, and this one by `{metric}`"
        )));
    }
    let trials = client.call(endpoints::Search::request(id)).await?.trials;
    let known = |trial: SearchTrial| {
        let SearchTrial { model, choices, values, best, .. } = trial;
        // A trial on all folds has a value and no evaluation: its configuration is known by the folds.
        let epochs = u32::try_from(values.len()).ok().filter(|epochs| *epochs > 0)?;
        Some(PastTrial { model, choices, epochs, value: best? })
    };
    past.trials = trials.into_iter().filter_map(known).collect();
    let count = to_u64(past.trials.len());
    if count == 0 {
        return Err(Failure::call(format!(
            "`search.history` is job {id}, of which no trial has been evaluated yet"
        )));
    }
    let preview = preview(&job.spec).map_err(|error| Failure::call(error.to_string()))?;
    let past = job.spec.search.history.iter().flat_map(|past| &past.trials);
    let theirs = dimensions(past.map(|trial| (trial.model, &trial.choices)));
    let own = dimensions(preview.trials.iter().map(|trial| (trial.model, &trial.choices)));
    have_in_common(id, &theirs, &own).map_err(Failure::call)?;
    job.trials = preview.trials;
    Ok(Some(count))
}

/// The dimensions that vary among trials, by their names; also `model`, where trials are of several model tables.
fn dimensions<'a>(trials: impl Iterator<Item = (u32, &'a Choices)> + Clone) -> BTreeSet<&'a str> {
    let choices = trials.clone().flat_map(|(_, choices)| choices.keys().map(String::as_str));
    let models: BTreeSet<u32> = trials.map(|(model, _)| model).collect();
    let several = (models.len() > 1).then_some("model");
    choices.filter(|name| !is_replicate(name)).chain(several).collect()
}

/// Does a search learn anything from one of other dimensions?
fn have_in_common(id: JobId, theirs: &BTreeSet<&str>, own: &BTreeSet<&str>) -> Result<(), String> {
    if !theirs.is_disjoint(own) {
        return Ok(());
    }
    let said = |names: &BTreeSet<&str>| match names.is_empty() {
        true => "nothing".to_owned(),
        false => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    let (theirs, own) = (said(theirs), said(own));
    Err(format!(
        "`search.history` is job {id}, which searched {theirs}, and this one searches {own}: it would learn nothing from it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(names: &[&str]) -> Choices {
        names.iter().map(|name| ((*name).to_owned(), 0.1.into())).collect()
    }

    #[test]
    fn a_history_of_which_nothing_is_searched_is_refused() {
        let (lr, width) = (choices(&["lr", "seed"]), choices(&["width", "seed"]));
        let of = |trials: &[(u32, &Choices)]| -> Result<(), String> {
            let own = dimensions(trials.iter().copied());
            have_in_common(JobId(4), &dimensions([(0, &lr)].into_iter()), &own)
        };
        assert_eq!(of(&[(0, &lr)]), Ok(()));
        // Seeds are tried, and not searched.
        assert_eq!(
            of(&[(0, &width)]),
            Err("`search.history` is job 4, which searched `lr`, and this one searches `width`: it would learn nothing from it".into())
        );
        // Of several tables the table itself is searched.
        let nothing = choices(&[]);
        assert_eq!(
            of(&[(0, &nothing), (1, &nothing)]),
            Err("`search.history` is job 4, which searched `lr`, and this one searches `model`: it would learn nothing from it".into())
        );
        assert!(of(&[(0, &nothing)]).is_err_and(|said| said.contains("searches nothing")));
    }
}
