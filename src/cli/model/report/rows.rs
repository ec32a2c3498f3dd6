//! The efficiencies of a job as a report says them: a row each, with what is counted.

use super::efficiencies::{Communication, Convergence, Efficiencies, PerEpoch, Storage};
use crate::cli::render::text;
use sojourn_page::report::Efficiency;
use sojourn_protocol::{time::Millis, view::TrafficView};

/// The rows. `traffic`: what the server counted for all of its jobs.
pub(super) fn rows(of: &Efficiencies, traffic: &TrafficView) -> Vec<Efficiency> {
    let Efficiencies { per_epoch, convergence, storage, communication } = of;
    vec![epochs(per_epoch), sequence(convergence), copies(storage), moves(communication, traffic)]
}

fn epochs(of: &PerEpoch) -> Efficiency {
    let each = |time: Option<Millis>| match time {
        Some(Millis(time)) => {
            let epoch = time.checked_div(u64::from(of.epochs)).unwrap_or(time);
            format!("{} an epoch, {} in all", text::duration(epoch), text::duration(time))
        }
        None => "nothing is trained".to_owned(),
    };
    Efficiency {
        name: "per epoch",
        took: each(of.took),
        limit: each(of.least),
        ratio: of.ratio,
        how: format!(
            "From the first lease to the last result. The limit is the training alone, {}, shared out over {}, and no less than the \
             longest trial, {}.",
            text::duration(of.training.0),
            text::counted(of.slots, "slot"),
            text::duration(of.longest_trial.0)
        ),
    }
}

fn sequence(of: &Convergence) -> Efficiency {
    let best = match (of.best_epoch, of.best_trial_epochs) {
        (Some(best), Some(epochs)) => format!("; best after epoch {best} of {epochs}"),
        _ => String::new(),
    };
    let in_sequence = text::count(of.results - of.merged);
    Efficiency {
        name: "convergence",
        took: format!(
            "{in_sequence} of {} trained on the version before{best}",
            text::counted(of.results, "result")
        ),
        limit: "all of them: what one machine would have trained".to_owned(),
        ratio: of.ratio,
        how: format!(
            "{} merged with others, which may need more epochs for the same metric. {} in all trials.",
            text::counted(of.merged, "result"),
            text::counted(of.epochs, "epoch")
        ),
    }
}

fn copies(of: &Storage) -> Efficiency {
    Efficiency {
        name: "memory and storage",
        took: format!("{} on {}", text::bytes(of.held_bytes), text::counted(of.hosts, "host")),
        limit: format!("{}: each shard on one host", text::bytes(of.data_bytes)),
        ratio: of.ratio,
        how: format!(
            "Training data, a shard once for each host that trained on it. All data on every host would be {}. The server keeps {} of \
             the job: data and checkpoints.",
            text::bytes(of.data_bytes.saturating_mul(of.hosts)),
            text::bytes(of.store_bytes)
        ),
    }
}

fn moves(of: &Communication, traffic: &TrafficView) -> Efficiency {
    let moved = of.uploaded_bytes + of.downloaded_bytes;
    let unused = match of.unused_results {
        0 => String::new(),
        unused => format!(" {} came and had no use.", text::counted(unused, "more result")),
    };
    Efficiency {
        name: "communication",
        took: format!(
            "{} of checkpoints: {} up, {} down",
            text::bytes(moved),
            text::bytes(of.uploaded_bytes),
            text::bytes(of.downloaded_bytes)
        ),
        limit: format!("{}: one checkpoint for each hop", text::bytes(of.least_bytes)),
        ratio: of.ratio,
        how: format!(
            "{}. A version goes up once, and down where its next host hadn't made it; hops in a row under one lease move one, so that \
             this may be over 100 %.{unused} Since its start the server has received {} and sent {}, for all jobs, data too.",
            text::counted(of.hops, "hop"),
            text::bytes(traffic.received_bytes),
            text::bytes(traffic.sent_bytes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_what_was_taken_and_the_limit_beside_it() {
        let of = Efficiencies {
            per_epoch: PerEpoch {
                slots: 2,
                epochs: 3,
                training: Millis(24_000),
                longest_trial: Millis(9_000),
                took: Some(Millis(30_000)),
                least: Some(Millis(12_000)),
                ratio: Some(0.4),
            },
            convergence: Convergence {
                results: 12,
                merged: 2,
                best_epoch: Some(2),
                best_trial_epochs: Some(3),
                epochs: 12,
                ratio: Some(10.0 / 12.0),
            },
            storage: Storage {
                hosts: 2,
                data_bytes: 1_000,
                held_bytes: 1_500,
                store_bytes: 9_000,
                ratio: Some(2.0 / 3.0),
            },
            communication: Communication {
                hops: 36,
                uploaded_bytes: 12_000,
                downloaded_bytes: 6_000,
                least_bytes: 36_000,
                unused_results: 1,
                ratio: Some(2.0),
            },
        };
        let rows = rows(&of, &TrafficView { received_bytes: 50_000, ..TrafficView::default() });
        let said =
            |row: usize| format!("{} | {} | {}", rows[row].took, rows[row].limit, rows[row].how);
        assert!(
            said(0).starts_with("10 s an epoch, 30 s in all | 4.0 s an epoch, 12 s in all |"),
            "{}",
            said(0)
        );
        assert!(
            said(1).starts_with(
                "10 of 12 results trained on the version before; best after epoch 2 of 3"
            ),
            "{}",
            said(1)
        );
        assert!(
            said(2).starts_with("1.5 kB on 2 hosts | 1.0 kB: each shard on one host |"),
            "{}",
            said(2)
        );
        assert!(said(2).contains("on every host would be 2.0 kB"), "{}", said(2));
        assert!(
            said(3).starts_with("18 kB of checkpoints: 12 kB up, 6.0 kB down | 36 kB"),
            "{}",
            said(3)
        );
        assert!(
            said(3).contains("1 more result came") && said(3).contains("received 50 kB"),
            "{}",
            said(3)
        );
        assert_eq!(
            rows.iter().map(|row| row.ratio).collect::<Vec<_>>(),
            [Some(0.4), Some(10.0 / 12.0), Some(2.0 / 3.0), Some(2.0)]
        );
    }
}
