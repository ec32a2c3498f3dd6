//! The effect of each key.

use super::*;
use crate::cli::jobs::top::{
    fixture::{crowd, detail, empty, one_job, view},
    view::Snapshot,
};
use sojourn_protocol::ids::JobId;

fn press(view: &mut View, keys: &[KeyCode]) {
    for key in keys {
        assert_eq!(view.key((*key).into()), Next::Stay, "{key:?}");
    }
}

fn letter(letter: char) -> KeyCode {
    KeyCode::Char(letter)
}

#[test]
fn keys_leave() {
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    for key in [letter('q').into(), KeyCode::Esc.into(), control('c')] {
        assert_eq!(view().key(key), Next::Leave);
        assert_eq!(empty().key(key), Next::Leave);
    }
    let mut view = view();
    assert_eq!(view.key(control('q')), Next::Stay);
    press(&mut view, &[letter('?'), letter('x')]);
    assert!(view.help);
    press(&mut view, &[KeyCode::Esc]);
    assert!(!view.help, "that left the help");
    assert_eq!(view.key(KeyCode::Esc.into()), Next::Leave);
}

#[test]
fn keys_select_a_job_and_stop_at_the_ends() {
    let mut view = crowd();
    let selected = |view: &View| view.selected.unwrap().0;
    assert_eq!(selected(&view), 1000, "the latest is the first");
    press(&mut view, &[KeyCode::Up, letter('k')]);
    assert_eq!(selected(&view), 1000);
    press(&mut view, &[KeyCode::Down, letter('j'), letter('j'), letter('k')]);
    assert_eq!(selected(&view), 998);
    press(&mut view, &[KeyCode::PageDown]);
    assert_eq!(selected(&view), 988);
    press(&mut view, &[KeyCode::End, KeyCode::Down]);
    assert_eq!(selected(&view), 1);
    press(&mut view, &[KeyCode::PageUp, KeyCode::Home]);
    assert_eq!(selected(&view), 1000);
    press(&mut empty(), &[KeyCode::Down, KeyCode::End, KeyCode::Tab, KeyCode::Down]);
}

#[test]
fn tab_goes_round_the_panes_and_keys_move_there() {
    let mut view = view();
    press(&mut view, &[KeyCode::Tab, KeyCode::Down, KeyCode::Down]);
    assert_eq!((view.pane, view.cursors.trials), (Pane::Trials, 1), "there are two");
    press(&mut view, &[KeyCode::Tab, KeyCode::Down]);
    assert_eq!((view.pane, view.cursors.hosts), (Pane::Hosts, 1));
    press(&mut view, &[KeyCode::Tab, KeyCode::End]);
    assert_eq!((view.pane, view.cursors.events), (Pane::Events, 2));
    press(&mut view, &[KeyCode::Tab, KeyCode::BackTab, KeyCode::BackTab]);
    assert_eq!(view.pane, Pane::Hosts);
    assert_eq!(view.selected, Some(JobId(3)), "another pane selects no job");
    press(&mut view, &[KeyCode::Tab, KeyCode::Tab, KeyCode::Down]);
    assert_eq!(view.selected, Some(JobId(2)));
    assert_eq!((view.cursors.events, view.cursors.hosts), (0, 1), "events are of another job now");
    assert!(view.detail().is_none(), "nothing is known of it yet");
}

#[test]
fn keys_select_no_other_job_where_there_is_one() {
    let mut view = one_job();
    assert_eq!(view.pane, Pane::Trials, "its trials get the room");
    press(&mut view, &[KeyCode::Down, KeyCode::BackTab, KeyCode::Down, KeyCode::End]);
    assert_eq!((view.pane, view.cursors.trials), (Pane::Jobs, 1));
    assert_eq!(view.selected, Some(JobId(3)));
    assert_eq!(view.key(letter('q').into()), Next::Leave);
}

#[test]
fn a_selection_stays_while_jobs_come_and_moves_when_it_goes() {
    let mut view = view();
    press(&mut view, &[KeyCode::Down]);
    let before = view.snapshot.take().unwrap();
    let next = |jobs: Vec<_>| {
        let mut snapshot = Snapshot::new(before.health.clone(), jobs, Vec::new());
        snapshot.detail = Some(detail(2));
        snapshot
    };
    let mut jobs = before.jobs.clone();
    jobs.push(sojourn_protocol::view::JobView { job: JobId(4), ..jobs[0].clone() });
    view.take_snapshot(next(jobs));
    assert_eq!((view.selected, view.position(Pane::Jobs)), (Some(JobId(2)), (2, 4)));
    assert!(view.detail().is_some());
    view.take_snapshot(next(before.jobs.iter().filter(|job| job.job.0 == 1).cloned().collect()));
    assert_eq!(view.selected, Some(JobId(1)));
    view.take_snapshot(next(Vec::new()));
    assert_eq!(view.selected, None);
}
