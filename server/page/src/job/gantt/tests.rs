//! Tests of the chart of leases.

use super::*;
use sojourn_protocol::cpu_shares::List;

fn bar(lease: u64, host: u64, from: u64, to: u64) -> LeaseBar {
    LeaseBar {
        lease: LeaseId(lease),
        host: HostId(host),
        trial: TrialId(9),
        unit: "epoch 1, shard 2".into(),
        from: UnixMillis(from),
        to: UnixMillis(to),
        end: LeaseBarEnd::Reported,
        cpu_share: None,
        moved: None,
    }
}

fn timeline(leases: Vec<LeaseBar>) -> Timeline {
    let (from, until) = (UnixMillis(1_000_000), UnixMillis(1_100_000));
    Timeline { from, until, ended: true, names: BTreeMap::new(), leases }
}

/// Of each lane its host, and its leases.
fn packed(timeline: &Timeline) -> Vec<(u64, Vec<u64>)> {
    let lanes = pack(&timeline.shown());
    let leases = |lane: &Lane<'_>| lane.bars.iter().map(|bar| bar.lease.0).collect();
    lanes.iter().map(|lane| (lane.host.0, leases(lane))).collect()
}

#[test]
fn leases_at_the_same_time_are_in_different_lanes() {
    let timeline = timeline(vec![
        bar(4, 1, 1_030_000, 1_040_000),
        bar(1, 2, 1_000_000, 1_050_000),
        bar(2, 1, 1_000_000, 1_020_000),
        bar(3, 1, 1_010_000, 1_030_000),
        bar(5, 1, 1_020_000, 1_060_000),
    ]);
    // Lease 5 begins when lease 2 ends, lease 4 when lease 3 does.
    assert_eq!(packed(&timeline), [(1, vec![2, 5]), (1, vec![3, 4]), (2, vec![1])]);
}

#[test]
fn bars_are_where_their_times_are() {
    let mut all = timeline(vec![bar(1, 1, 1_050_000, 1_075_000), bar(2, 1, 900_000, 1_010_000)]);
    let text = gantt(&all).into_string();
    // Names take 14 % of the width: half of the rest is 43 %.
    assert!(text.contains("<rect x=\"57.000%\" y=\"22\" width=\"21.500%\""), "{text}");
    assert!(text.contains("<rect x=\"14.000%\" y=\"22\" width=\"8.600%\""), "cut off: {text}");
    assert!(
        text.contains("trial 9: epoch 1, shard 2, on host 1, 25 s, reported (lease 1)"),
        "{text}"
    );
    assert!(text.contains("aria-label=\"2 leases on 1 host, from 1970-01-01T00:16:40.000Z to "));
    let ticks = all.ticks();
    assert_eq!(ticks.first().unwrap(), &(14_000 + 12_900, "+15 s".to_owned()));
    all.ended = false;
    assert_eq!(all.ticks().first().unwrap(), &(100_000 - 12_900, "−15 s".to_owned()));
    assert!(!text.contains("style="), "{text}");
}

#[test]
fn leases_outside_the_time_are_left_out() {
    let all = timeline(vec![bar(1, 1, 900_000, 999_999), bar(2, 1, 1_100_001, 1_200_000)]);
    assert!(gantt(&all).into_string().contains("No leases in this time"));
    assert!(gantt(&timeline(Vec::new())).into_string().contains("No leases in this time"));
}

#[test]
fn names_are_text_and_no_markup() {
    let mut evil = timeline(vec![bar(1, 1, 1_000_000, 1_010_000)]);
    evil.names.insert(HostId(1), "</title><script>x".into());
    let text = gantt(&evil).into_string();
    assert!(text.contains("&lt;/title&gt;&lt;script&gt;x") && !text.contains("<script"), "{text}");
}

#[test]
fn of_too_many_leases_the_last_are_shown_and_of_too_many_lanes_the_first() {
    let leases: Vec<_> = (0..2_500).map(|n| bar(n, n % 300, 1_000_000 + n, 1_100_000)).collect();
    let all = timeline(leases);
    let shown = all.shown();
    assert_eq!(
        (shown.len(), shown[0].lease, shown[1_999].lease),
        (2_000, LeaseId(500), LeaseId(2_499))
    );
    let text = gantt(&all).into_string();
    assert_eq!(text.matches("<rect").count(), 200);
    assert!(text.contains("1800 more lanes aren't shown"));
}

#[test]
fn a_chart_of_no_time_and_one_of_years_have_marks() {
    let mut all = timeline(vec![bar(1, 1, 1_000_000, 1_000_000)]);
    all.until = all.from;
    assert!(all.ticks().is_empty());
    assert!(gantt(&all).into_string().contains("<rect x=\"14.000%\" y=\"22\" width=\"0.150%\""));
    all.until = UnixMillis(u64::MAX);
    assert!((1..=8).contains(&all.ticks().len()));
}

#[test]
fn a_bar_says_the_cpu_share_that_its_unit_has_now() {
    let cpu_share = CpuShareView { cpu_share: 0.25, list: Some(List::Completing) };
    let live = LeaseBar {
        end: LeaseBarEnd::Live,
        cpu_share: Some(cpu_share),
        ..bar(1, 1, 1_050_000, 1_100_000)
    };
    let text = gantt(&timeline(vec![live])).into_string();
    let says = "on host 1, 50 s, live, share 25 %, completing (lease 1)";
    assert!(text.contains(says), "{text}");
}

#[test]
fn the_first_lease_after_a_move_says_why() {
    let text = |moved| {
        gantt(&timeline(vec![LeaseBar { moved, ..bar(1, 1, 1_000_000, 1_100_000) }])).into_string()
    };
    let moved = text(Some(MoveKind::Speculative));
    assert!(moved.contains("moved here as it seemed to have converged"), "{moved}");
    assert!(moved.contains(">9 M<") && moved.contains("M and R: "), "{moved}");
    assert!(text(Some(MoveKind::Rebalance)).contains(">9 R<"));
    assert!(!text(None).contains("M and R: "));
}
