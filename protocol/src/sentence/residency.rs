//! Events of trials that stay on hosts as sentences: how far each seems to be, and why one moves.

use super::fields::Fields;
use crate::figures;

/// The event in words; `None` where it is none of these.
pub(super) fn sentence(kind: &str, of: Fields<'_>) -> Option<String> {
    Some(match kind {
        "trial-categorized" => {
            let (trial, growth) = (of.number("trial")?, of.decimal("growth")?);
            let grows = figures::metric(growth);
            match of.0.get("category")?.as_str()? {
                "progressing" => format!("trial {trial} learns: growth {grows}"),
                "watching" => format!("trial {trial} hardly learns: growth {grows}"),
                "converged" => format!("trial {trial} seems to have converged: growth {grows}"),
                _ => return None,
            }
        }
        "trial-moved" => moved(of)?,
        _ => return None,
    })
}

/// Is an event of this kind a decision with its reason?
pub(super) fn is_decision(kind: &str) -> bool {
    ["trial-categorized", "trial-moved"].contains(&kind)
}

fn moved(of: Fields<'_>) -> Option<String> {
    let (trial, from, to) = (of.number("trial")?, of.number("from")?, of.number("to")?);
    let load = |name| of.decimal(name).map(|load| (load * 100.0).round() / 100.0);
    let (from_load, to_load) = (load("from_load")?, load("to_load")?);
    if from == to {
        return Some(format!(
            "trial {trial} stays on host {from}, which counts as its move: no host has a score below {from_load}"
        ));
    }
    let moves = format!("trial {trial} moves from host {from} to host {to}");
    Some(match of.0.get("kind")?.as_str()? {
        "speculative" => format!(
            "{moves}: it seems to have converged, others there learn, and the scores are {from_load} and {to_load}"
        ),
        "rebalance" => format!(
            "{moves}: all trials seem to have converged, and the hosts have {from_load} and {to_load} for their capacity"
        ),
        "remaining" => {
            format!("{moves}: there {from_load} s are left to do, and here {to_load} s")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn moves_name_hosts_reasons_and_loads() {
        let moved = |kind: &str, to: u64| {
            let event = json!({
                "job": 1, "trial": 3, "from": 4, "to": to, "kind": kind, "from_load": 11.0, "to_load": 3.5
            });
            sentence("trial-moved", Fields(&event)).unwrap()
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
        let of = json!({"job": 1, "trial": 3, "category": "watching", "growth": 0.02});
        let said = sentence("trial-categorized", Fields(&of));
        let growth = figures::metric(0.02);
        assert_eq!(said, Some(format!("trial 3 hardly learns: growth {growth}")));
    }
}
