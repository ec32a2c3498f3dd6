//! Plans for people and for programs.

use serde_json::{Value, json};
use sojourn_fleet::planner::{Action, EndReason, Plan, Victim};
use sojourn_protocol::time::UnixMillis;

/// A plan in lines: what is done and why, and what isn't.
pub(super) fn text(plan: &Plan) -> Vec<String> {
    let outlook = &plan.outlook;
    let mut lines = vec![format!(
        "{} machines and {} ordered ones at {} an hour, {} spent; {} slots work, {} are of use",
        outlook.machines,
        outlook.ordered,
        outlook.hourly,
        outlook.spent,
        outlook.working_slots,
        outlook.wanted_slots
    )];
    let of = |machine: &Victim| {
        machine.name.as_ref().map_or_else(|| machine.instance.clone(), ToString::to_string)
    };
    for action in &plan.actions {
        lines.push(match action {
            Action::Buy(purchase) => {
                let first = purchase.pools.first().map(ToString::to_string).unwrap_or_default();
                let more = purchase.pools.len().saturating_sub(1);
                format!(
                    "  buy {} ({}), {first} first of {}, at most {} an hour each: {}",
                    purchase.machines.len(),
                    purchase.market.name(),
                    if more == 0 { "1 pool".to_owned() } else { format!("{} pools", more + 1) },
                    purchase.price_limit,
                    purchase.reason
                )
            }
            Action::Drain { machine, within, reason } => {
                format!("  drain {} within {within}: {reason}", of(machine))
            }
            Action::End { machine, reason } => format!("  end {}: {reason}", of(machine)),
        });
    }
    if plan.actions.is_empty() {
        lines.push("  nothing is to be done".to_owned());
    }
    lines.extend(plan.notes.iter().map(|note| format!("  note: {note}")));
    lines
}

/// A plan as JSON.
pub(super) fn json(plan: &Plan, at: UnixMillis, dry_run: bool) -> Value {
    let actions: Vec<Value> = plan
        .actions
        .iter()
        .map(|action| match action {
            Action::Buy(purchase) => json!({
                "action": "buy",
                "machines": purchase.machines,
                "market": purchase.market,
                "pools": purchase.pools,
                "price_limit": purchase.price_limit,
                "job": purchase.job,
                "reason": purchase.reason.to_string(),
            }),
            Action::Drain { machine, within, reason } => {
                let mut value = victim("drain", machine, reason);
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("within".to_owned(), json!(within));
                }
                value
            }
            Action::End { machine, reason } => victim("end", machine, reason),
        })
        .collect();
    let outlook = &plan.outlook;
    json!({
        "at": at,
        "dry_run": dry_run,
        "actions": actions,
        "notes": plan.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "machines": outlook.machines,
        "ordered": outlook.ordered,
        "vcpus": outlook.vcpus,
        "wanted_slots": outlook.wanted_slots,
        "working_slots": outlook.working_slots,
        "hourly": outlook.hourly,
        "spent": outlook.spent,
    })
}

fn victim(action: &str, machine: &Victim, reason: &EndReason) -> Value {
    json!({
        "action": action,
        "machine": machine.name,
        "instance": machine.instance,
        "pool": machine.pool,
        "reason": reason.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_fleet::{
        cloud::Pool,
        planner::{Memory, Note, Outlook, Purchase, PurchaseReason},
    };
    use sojourn_protocol::{ids::JobId, machines::Market, money::MicroUsd, time::Millis};

    #[test]
    fn a_plan_is_told_with_its_reasons() {
        let pool = Pool { region: "r".into(), zone: "ra".into(), instance_type: "c.large".into() };
        let machine =
            Victim { name: "m-1".parse().ok(), instance: "i-1".into(), pool: pool.clone() };
        let plan = Plan {
            actions: vec![
                Action::End { machine: machine.clone(), reason: EndReason::Stopped },
                Action::Drain { machine, within: Millis::from_secs(120), reason: EndReason::Idle },
                Action::Buy(Purchase {
                    machines: vec!["m-2".parse().unwrap()],
                    market: Market::Spot,
                    pools: vec![pool],
                    price_limit: MicroUsd(40_000),
                    job: JobId(3),
                    reason: PurchaseReason::Work { job: "digits".into(), slots: 1 },
                }),
            ],
            notes: vec![Note::Settling],
            memory: Memory::default(),
            outlook: Outlook::default(),
        };
        assert_eq!(
            text(&plan),
            [
                "0 machines and 0 ordered ones at $0.00 an hour, $0.00 spent; 0 slots work, 0 are of use",
                "  end m-1: it has given its units back",
                "  drain m-1 within 2min: it holds no unit, and there is none for it",
                "  buy 1 (spot), c.large in ra first of 1 pool, at most $0.04 an hour each: job `digits` has work for 1 more slot",
                "  note: nothing is bought yet: the fleet is looked at once more",
            ]
        );
        let value = json(&plan, UnixMillis(7), true);
        assert_eq!(value["actions"][1]["within"], 120_000);
        assert_eq!(value["actions"][2]["machines"][0], "m-2");
        assert_eq!(value["dry_run"], true);
    }
}
