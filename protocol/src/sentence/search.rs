//! Events of searches as sentences: which trials are added, go on or stop, and who asked for it.

use super::fields::Fields;
use crate::{figures, space};
use serde_json::Value;
use std::collections::BTreeMap;

/// Trials that a sentence names as those which clones go on from; `events --json` has all.
const MAX_NAMED: usize = 8;

/// The event in words; `None` where it is none of a search.
pub(super) fn sentence(kind: &str, of: Fields<'_>) -> Option<String> {
    let asked = of.token().map(|token| format!(", as asked with {token}")).unwrap_or_default();
    let with = of.token().map(|token| format!("with {token}"));
    Some(match kind {
        "trials-added" => added(of, with)?,
        "search-extended" => {
            let (job, trials) = (of.number("job")?, of.number("trials")?);
            let trials = figures::counted(trials, "combination");
            format!("the search of job {job} is to try {trials} in all{asked}")
        }
        "search-ended" => {
            let (job, why) = (of.number("job")?, of.text("why")?);
            match with {
                None => format!("the search of job {job} tries no more combinations: {why}"),
                Some(with) => format!("the search of job {job} was ended {with}: {why}"),
            }
        }
        "space-changed" => space_changed(of, &asked)?,
        "trial-placed" => {
            let (trial, priority) = (of.number("trial")?, of.0.get("priority")?.as_i64()?);
            format!("trial {trial} has priority {priority} among those of its job{asked}")
        }
        "trial-continued" => {
            let epochs = figures::counted(of.number("epochs")?, "epoch");
            let (trial, why) = (of.number("trial")?, of.text("why")?);
            format!("trial {trial} goes on up to {epochs}{asked}: {why}")
        }
        "trial-stopped" => {
            let by = with.unwrap_or_else(|| "by the search".to_owned());
            format!("trial {} was stopped {by}: {}", of.number("trial")?, of.text("why")?)
        }
        "job-extended" => {
            let trials = of.0.get("trials")?.as_array()?;
            let (job, epochs) = (of.number("job")?, of.number("epochs")?);
            let count = u64::try_from(trials.len()).ok()?;
            let trials = figures::counted(count, "trial");
            let epochs = figures::counted(epochs, "epoch");
            let train = if count == 1 { "trains" } else { "train" };
            format!("{trials} of job {job} {train} for {epochs} in all{asked}")
        }
        _ => return None,
    })
}

/// Is an event of this kind a decision with its reason?
pub(super) fn is_decision(kind: &str) -> bool {
    ["trials-added", "trial-continued", "trial-stopped", "search-ended", "space-changed"]
        .contains(&kind)
}

/// Which dimensions are other, and how.
fn space_changed(of: Fields<'_>, asked: &str) -> Option<String> {
    let job = of.number("job")?;
    let why = of.text("why").map(|why| format!(": {why}")).unwrap_or_default();
    let places = of.0.get("changed").and_then(Value::as_array);
    let changes = places.into_iter().flatten().filter_map(Value::as_str).map(|place| {
        let now = of.0.pointer(place);
        let now = now.map_or_else(|| "its default".to_owned(), space::in_words);
        format!("`{}` from {now}", space::name_of(place))
    });
    let changes: Vec<String> = changes.collect();
    let what = match changes.is_empty() {
        true => "combinations from another space".to_owned(),
        false => changes.join(", "),
    };
    Some(format!("the search of job {job} takes {what} from now on{asked}{why}"))
}

fn added(of: Fields<'_>, with: Option<String>) -> Option<String> {
    let (job, why) = (of.number("job")?, of.text("why")?);
    let trials = of.0.get("trials")?.as_array()?;
    let count = figures::counted(u64::try_from(trials.len()).ok()?, "trial");
    let were = if trials.len() == 1 { "was" } else { "were" };
    let clones = clones(trials)?;
    Some(match with {
        // A call whose name is kept, so that it does nothing when it is repeated.
        Some(with) if trials.is_empty() => {
            format!("the search of job {job} was changed {with}, and no trial added: {why}")
        }
        Some(with) => format!("{count} {were} added to job {job} {with}: {why}{clones}"),
        None => format!("the search of job {job} adds {count}: {why}{clones}"),
    })
}

/// Which trials those go on from that don't begin anew.
fn clones(trials: &[Value]) -> Option<String> {
    let mut from = BTreeMap::<(u64, u64), u64>::new();
    for clone in trials.iter().filter_map(|trial| trial.get("from")) {
        let clone = Fields(clone);
        *from.entry((clone.number("trial")?, clone.number("epochs")?)).or_default() += 1;
    }
    let mut named: Vec<String> = from
        .iter()
        .take(MAX_NAMED)
        .map(|((trial, epochs), count)| {
            let go = if *count == 1 { "goes" } else { "go" };
            let epochs = figures::counted(*epochs, "epoch");
            format!("{count} {go} on from trial {trial} after {epochs}")
        })
        .collect();
    if from.len() > MAX_NAMED {
        named.push("others from other trials".to_owned());
    }
    Some(named.iter().map(|one| format!("; {one}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn says(kind: &str, fields: Value) -> String {
        sentence(kind, Fields(&fields)).unwrap()
    }

    #[test]
    fn decisions_of_a_search_say_why_and_who_asked() {
        let (server, token) = (json!("server"), json!({"token": 4}));
        for (kind, fields, expected) in [
            (
                "trial-continued",
                json!({"job": 1, "trial": 3, "epochs": 1, "why": "there is room for another trial"}),
                "trial 3 goes on up to 1 epoch: there is room for another trial",
            ),
            (
                "trial-continued",
                json!({"job": 1, "trial": 3, "epochs": 2, "why": "one of the best", "by": server}),
                "trial 3 goes on up to 2 epochs, as asked with the server's own token: one of the best",
            ),
            (
                "trial-stopped",
                json!({"job": 1, "trial": 3, "why": "place 9 of 9"}),
                "trial 3 was stopped by the search: place 9 of 9",
            ),
            (
                "trial-stopped",
                json!({"job": 1, "trial": 3, "why": "pruned", "by": token}),
                "trial 3 was stopped with token 4: pruned",
            ),
            (
                "search-ended",
                json!({"job": 1, "why": "the first 2 trials have all failed"}),
                "the search of job 1 tries no more combinations: the first 2 trials have all failed",
            ),
            (
                "search-ended",
                json!({"job": 1, "why": "good enough", "by": token}),
                "the search of job 1 was ended with token 4: good enough",
            ),
            (
                "search-extended",
                json!({"job": 1, "trials": 12, "by": server}),
                "the search of job 1 is to try 12 combinations in all, as asked with the server's own token",
            ),
            (
                "space-changed",
                json!({"job": 1, "models": [], "training": {}, "by": token}),
                "the search of job 1 takes combinations from another space from now on, as asked with token 4",
            ),
            (
                "space-changed",
                json!({
                    "job": 1, "models": [{"arch": "mlp", "hidden": {"choice": [[4], [8]]}}],
                    "training": {"optimizer": {"lr": {"range": {"spread": "log_uniform", "low": 1e-5, "high": 0.1}}}},
                    "changed": ["/models/0/dropout", "/models/0/hidden", "/training/optimizer/lr"],
                    "why": "the best was at the edge", "by": token
                }),
                "the search of job 1 takes `model[0].dropout` from its default, `model[0].hidden` from { choice = [[4],[8]] }, \
                 `training.optimizer.lr` from { log_uniform = [0.00001, 0.1] } from now on, as asked with token 4: the best was at the edge",
            ),
            (
                "job-extended",
                json!({"job": 1, "trials": [0], "epochs": 4}),
                "1 trial of job 1 trains for 4 epochs in all",
            ),
            (
                "trial-placed",
                json!({"job": 1, "trial": 2, "priority": -5, "by": token}),
                "trial 2 has priority -5 among those of its job, as asked with token 4",
            ),
            (
                "job-extended",
                json!({"job": 1, "trials": [0, 1], "epochs": 4}),
                "2 trials of job 1 train for 4 epochs in all",
            ),
        ] {
            assert_eq!(says(kind, fields), expected);
        }
        assert_eq!(sentence("of-a-newer-server", Fields(&json!({}))), None);
    }

    #[test]
    fn added_trials_are_counted_and_clones_named() {
        let new = json!({"model": 0, "choices": {}});
        let clone = |trial: u64, epochs: u64| json!({"model": 0, "from": {"trial": trial, "epochs": epochs}});
        let suggested = json!({"job": 1, "trials": [new], "suggested": 1, "why": "random"});
        assert_eq!(says("trials-added", suggested), "the search of job 1 adds 1 trial: random");
        let trials = json!([clone(3, 2), new, clone(5, 1), clone(3, 2)]);
        let asked = json!({"job": 1, "trials": trials, "suggested": 1, "why": "by hand", "by": {"token": 4}});
        assert_eq!(
            says("trials-added", asked),
            "4 trials were added to job 1 with token 4: by hand; 2 go on from trial 3 after 2 epochs; 1 goes on from trial 5 after 1 epoch"
        );
        let many: Vec<Value> = (0..9).map(|trial| clone(trial, 1)).collect();
        let asked = json!({"job": 1, "trials": many, "suggested": 0, "why": "pbt"});
        assert!(
            says("trials-added", asked)
                .ends_with("trial 7 after 1 epoch; others from other trials")
        );
        let none = json!({"job": 1, "trials": [], "suggested": 0, "why": "pruned", "nonce": "a", "by": "server"});
        assert_eq!(
            says("trials-added", none),
            "the search of job 1 was changed with the server's own token, and no trial added: pruned"
        );
    }

    #[test]
    fn decisions_with_reasons_are_printed_by_why() {
        assert!(is_decision("trials-added") && is_decision("search-ended"));
        assert!(!is_decision("trial-placed") && !is_decision("lease-ended"));
    }
}
