//! Each kind of event in words, from the JSON that the journal has.

use super::*;
use serde_json::{Value, json};
use sojourn_protocol::spec::{CpuSharePolicy, First, Order};

fn event(kind: &str, fields: &Value) -> Event {
    serde_json::from_value(json!({ (kind): fields }))
        .unwrap_or_else(|error| panic!("{kind}: {error}"))
}

fn says(kind: &str, fields: &Value) -> String {
    event(kind, fields).sentence().unwrap()
}

#[test]
fn a_grant_names_the_unit_the_host_and_the_reason() {
    let unit = json!({"train": {"job": 1, "trial": 2, "epoch": 0, "shard": 3, "from": 0}});
    let granted = json!({
        "lease": 7, "host": 4, "device": "cpu", "unit": unit, "then": [5], "base": 0, "why": "it is the first"
    });
    let granted = event("lease-granted", &granted);
    let text = granted.decision(CpuSharePolicy::Equal).unwrap();
    assert_eq!(text, "lease 7 to host 4: train trial 2, epoch 1, shards 3 and 5: it is the first");
    assert_eq!(
        granted.sentence().unwrap(),
        "host 4 gets lease 7: train trial 2, epoch 1, shards 3 and 5 (it is the first)"
    );
    let first = CpuSharePolicy::First(First::new(Order::ShortestRemaining));
    assert_eq!(granted.decision(first).unwrap(), format!("{text}; shares: srpt"));
    let name = json!({"trial": 1, "split": "test", "epoch": 2});
    let extra = json!({
        "lease": 8, "host": 4, "unit": {"extra": {"job": 1, "name": name}}, "base": 0, "why": "asked"
    });
    let text = event("lease-granted", &extra).decision(first).unwrap();
    assert_eq!(text, "lease 8 to host 4: evaluate trial 1, epoch 3, on the test data: asked");
    let ended = event("lease-ended", &json!({"lease": 8, "end": "silent"}));
    assert_eq!(ended.decision(first), None);
    assert_eq!(event("host-revoked", &json!({"host": 1})).sentence(), None);
}

#[test]
fn events_are_sentences_with_means_and_epochs_from_1() {
    let sums = json!({"rows": 40, "loss": 20.0, "correct": 30});
    let blob = json!({"sha256": "0".repeat(64), "bytes": 1});
    let end = json!({"epoch": 0, "shard": 0, "batch": 3, "step": 3});
    let trained =
        json!({"base": 0, "checkpoint": blob, "end": end, "sums": sums, "train_micros": 5});
    let failure = json!({"kind": "non-finite", "message": "the loss is NaN\nmore"});
    for (kind, fields, expected) in [
        (
            "evaluated",
            json!({"lease": 8, "epoch": 0, "valid": sums}),
            "epoch 1 was evaluated under lease 8: mean loss 0.5000, accuracy 0.7500",
        ),
        (
            "report-acknowledged",
            json!({"report": {"lease": 8, "outcome": {"trained": trained}}, "host": 2}),
            "host 2 reports lease 8: trained, mean loss 0.5000, accuracy 0.7500",
        ),
        (
            "unit-failed",
            json!({"lease": 8, "failure": failure}),
            "lease 8 failed: the trial diverges: the loss is NaN ...",
        ),
        (
            "lease-ended",
            json!({"lease": 8, "end": {"given_back": {"reason": "the client is stopping"}}}),
            "lease 8 ended: its host gave it back: the client is stopping",
        ),
        (
            "verified",
            json!({"confirmed": [1, 2], "refuted": [3]}),
            "hosts came to the same result under leases 1, 2; refuted: lease 3",
        ),
        (
            "trial-rolled-back",
            json!({"job": 1, "trial": 4, "epochs": 2, "why": "host 3 was refuted"}),
            "trial 4 went back to where it had trained 2 epochs: host 3 was refuted",
        ),
        (
            "rollback-asked",
            json!({"job": 1, "host": 3, "lost": 402}),
            "host 3 was refuted; to take back what nobody confirmed of its party would lose 41 % of the work, \
             and waits for your word: `sojourn rollback`",
        ),
        (
            "job-placed",
            json!({"job": 1, "priority": -2, "share": 3, "max_hosts": 4, "budget": 2_000_000}),
            "job 1 has priority -2, share 3, at most 4 hosts, a budget of $2.00",
        ),
        (
            "token-created",
            json!({"token": 4, "sha256": "0".repeat(64), "grant": {"share": {"job": 1}}, "by": {"token": 2}}),
            "token 2 made link 4 to the page of job 1",
        ),
        (
            "token-revoked",
            json!({"token": 4, "job": 1, "by": "server"}),
            "the server's own token revoked link 4 to the page of job 1",
        ),
    ] {
        assert_eq!(says(kind, &fields), expected);
    }
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
            "job-extended",
            json!({"job": 1, "trials": [0], "epochs": 4}),
            "1 trial of job 1 trains for 4 epochs in all",
        ),
        (
            "job-extended",
            json!({"job": 1, "trials": [0, 1], "epochs": 4}),
            "2 trials of job 1 train for 4 epochs in all",
        ),
        (
            "trial-placed",
            json!({"job": 1, "trial": 2, "priority": -5, "by": token}),
            "trial 2 has priority -5 among those of its job, as asked with token 4",
        ),
    ] {
        assert_eq!(says(kind, &fields), expected);
        let is_decision = ["trial-continued", "trial-stopped", "search-ended"].contains(&kind);
        let decision = event(kind, &fields).decision(CpuSharePolicy::Equal);
        assert_eq!(decision.is_some(), is_decision, "{kind}");
    }
}

#[test]
fn another_space_names_its_dimensions() {
    let spread = json!({"range": {"spread": "log_uniform", "low": 1e-5, "high": 0.1}});
    let optimizer = json!({
        "name": {"fixed": "sgd"}, "lr": spread, "momentum": {"fixed": 0.0}, "beta1": {"fixed": 0.9}, "beta2": {"fixed": 0.999},
        "eps": {"fixed": 1e-8}, "weight_decay": {"fixed": 0.0},
    });
    let schedule = json!({
        "name": "constant", "warmup": {"fixed": 0}, "every": {"fixed": 1000}, "gamma": {"fixed": 0.1}, "floor": {"fixed": 0.0},
    });
    let training = json!({
        "epochs": 2, "batch_size": {"fixed": 8}, "loss": "cross-entropy", "optimizer": optimizer, "schedule": schedule,
        "clip_norm": {"fixed": 0.0},
    });
    let mut fields = json!({"job": 1, "models": [], "training": training, "by": {"token": 4}});
    assert_eq!(
        says("space-changed", &fields),
        "the search of job 1 takes combinations from another space from now on, as asked with token 4"
    );
    fields["changed"] = json!(["/models/0/dropout", "/training/optimizer/lr"]);
    fields["why"] = json!("the best was at the edge");
    assert_eq!(
        says("space-changed", &fields),
        "the search of job 1 takes `model[0].dropout` from its default, `training.optimizer.lr` from \
         { log_uniform = [0.00001, 0.1] } from now on, as asked with token 4: the best was at the edge"
    );
}

#[test]
fn added_trials_are_counted_and_clones_named() {
    let model = json!({"arch": "mlp", "hidden": [4]});
    let optimizer = json!({
        "name": "adam", "lr": 0.001, "momentum": 0.0, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0,
    });
    let schedule =
        json!({"name": "constant", "warmup": 0, "every": 1000, "gamma": 0.1, "floor": 0.0});
    let training = json!({
        "epochs": 3, "batch_size": 32, "loss": "cross-entropy", "optimizer": optimizer, "schedule": schedule,
    });
    let new = json!({"model": 0, "config": {"model": model, "training": training}, "choices": {}});
    let clone = |trial: u64, epochs: u64| {
        let mut clone = new.clone();
        clone["from"] = json!({"trial": trial, "epochs": epochs});
        clone
    };
    let suggested = json!({"job": 1, "trials": [new], "suggested": 1, "why": "random"});
    assert_eq!(says("trials-added", &suggested), "the search of job 1 adds 1 trial: random");
    let trials = json!([clone(3, 2), new, clone(5, 1), clone(3, 2)]);
    let asked =
        json!({"job": 1, "trials": trials, "suggested": 1, "why": "by hand", "by": {"token": 4}});
    assert_eq!(
        says("trials-added", &asked),
        "4 trials were added to job 1 with token 4: by hand; 2 go on from trial 3 after 2 epochs; 1 goes on from trial 5 after 1 epoch"
    );
    let many: Vec<Value> = (0..9).map(|trial| clone(trial, 1)).collect();
    let asked = json!({"job": 1, "trials": many, "suggested": 0, "why": "pbt"});
    assert!(
        says("trials-added", &asked).ends_with("trial 7 after 1 epoch; others from other trials")
    );
    let none = json!({"job": 1, "trials": [], "suggested": 0, "why": "pruned", "nonce": "a", "by": "server"});
    assert_eq!(
        says("trials-added", &none),
        "the search of job 1 was changed with the server's own token, and no trial added: pruned"
    );
}

#[test]
fn moves_name_hosts_reasons_and_loads() {
    let moved = |kind: &str, to: u64| {
        let fields = json!({
            "job": 1, "trial": 3, "from": 4, "to": to, "kind": kind, "from_load": 11.0, "to_load": 3.5
        });
        says("trial-moved", &fields)
    };
    assert_eq!(
        moved("speculative", 2),
        "trial 3 moves from host 4 to host 2: it seems to have converged, others there learn, and the scores are 11 and 3.5"
    );
    assert_eq!(
        moved("rebalance", 2),
        "trial 3 moves from host 4 to host 2: all trials seem to have converged, and the hosts have 11 and 3.5 for their capacity"
    );
    assert_eq!(
        moved("remaining", 2),
        "trial 3 moves from host 4 to host 2: there 11 s are left to do, and here 3.5 s"
    );
    assert_eq!(
        moved("speculative", 4),
        "trial 3 stays on host 4, which counts as its move: no host has a score below 11"
    );
    let looked = json!({"job": 1, "trial": 3, "category": "watching", "growth": 0.02});
    let growth = figures::metric(0.02);
    assert_eq!(
        says("trial-categorized", &looked),
        format!("trial 3 hardly learns: growth {growth}")
    );
}
