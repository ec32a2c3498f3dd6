//! Screens as they are drawn, large and small.

use super::*;
use crate::cli::jobs::top::{
    fixture::{crowd, empty, one_job, view},
    view::Scope,
};
use ratatui::{Terminal, backend::TestBackend, crossterm::event::KeyCode};

/// The screen of a terminal of this size, without the blanks at the ends of its lines.
fn screen(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(view, frame.area(), frame.buffer_mut())).unwrap();
    let cells = terminal.backend().buffer().content();
    let lines = cells.chunks(usize::from(width)).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_terminal_shows_every_pane() {
    insta::assert_snapshot!(screen(&view(), 80, 24), @r#"
    https://sojourn.example.org, sojourn 0.1.0
    connected; storage enough, 12 GB free
     ▸ jobs: 3, 1 running ──────────────────────────────────────────────────────────
      JOB NAME         STATE     HOPS                   BEST     LEASES WAITS
        3 digits       running   █████░░░░░ 7/12        0.9000        1 no host in c
        2 images       paused    ███░░░░░░░ 33 %        -             0
        1 digits-first finished  ██████████ 12/12       0.9000        0
     leading of 2 trials of job 3 `digits` ─────────────────────────────────────────
    the job waits: no host in contact has the memory for it
    TRIAL NAME                    EPOCH   accuracy CURVE            STATE
        1 mlp hidden=[64] lr=0.01 5/6     0.9000   ▁▄▇▇█            running
        0 mlp hidden=[16] lr=0.00 2/6     0.6000   █▁               finished: place
     hosts: 3, 2 live, 1 of 4 slots busy ───────────────────────────────────────────
     HOST NAME           STATE    BUSY    RUNS
        2 lab            live     1/2     job 3, trial 1: train epoch 2, shard 3
        3 desk           live     0/2     it lends too little disk for any unit
        1 attic          away     0/2
     events of job 3 `digits` ──────────────────────────────────────────────────────
    01:17:23 of-an-older-server job=3
    01:17:22 trial 0 was stopped by the search: place 2 of 2
    01:17:16 job 3 `digits` was submitted


    q quit  ↑↓ select  tab next pane  ? help
    "#);
}

#[test]
fn one_job_has_the_same_panes() {
    insta::assert_snapshot!(screen(&one_job(), 80, 24), @r#"
    https://sojourn.example.org, sojourn 0.1.0
    connected; storage enough, 12 GB free
     job 3 `digits` ────────────────────────────────────────────────────────────────
    submitted 3 min ago; trials 0 of 2 finished; evaluations 6 of 12
      JOB NAME         STATE     HOPS                   BEST     LEASES WAITS
        3 digits       running   █████░░░░░ 7/12        0.9000        1 no host in c
     ▸ leading of 2 trials of job 3 `digits` ───────────────────────────────────────
    the job waits: no host in contact has the memory for it
    TRIAL NAME                    EPOCH   accuracy CURVE            STATE
        1 mlp hidden=[64] lr=0.01 5/6     0.9000   ▁▄▇▇█            running
        0 mlp hidden=[16] lr=0.00 2/6     0.6000   █▁               finished: place
     hosts with a lease of job 3: 1, 1 live, 1 of 2 slots busy ─────────────────────
     HOST NAME           STATE    BUSY    RUNS
        2 lab            live     1/2     job 3, trial 1: train epoch 2, shard 3
     events of job 3 `digits` ──────────────────────────────────────────────────────
    01:17:23 of-an-older-server job=3
    01:17:22 trial 0 was stopped by the search: place 2 of 2
    01:17:16 job 3 `digits` was submitted





    q quit  ↑↓ select  tab next pane  ? help
    "#);
    let mut ended = one_job();
    ended.snapshot.as_mut().unwrap().hosts.clear();
    assert!(screen(&ended, 80, 24).contains("\nnone now\n"), "{}", screen(&ended, 80, 24));
    let unasked = View::new("http://a".to_owned(), Scope::Job(ended.selected.unwrap()));
    assert!(screen(&unasked, 80, 24).contains("not known yet"));
}

#[test]
fn a_small_terminal_shows_the_best_of_each() {
    insta::assert_snapshot!(screen(&view(), 40, 12), @r#"
    https://sojourn.example.org, sojourn
    0.1.0
    connected; storage enough, 12 GB free
     ▸ jobs: 3, 1 running ──────────────────
       3 digits     running    58 % 0.9000
     leading of 2 trials of job 3 `digits` ─
        1 mlp hidden=[64]  0.9000   ▁▄▇▇█
     hosts: 3, 2 live, 1 of 4 slots busy ───
       2 lab                live     1/2
     events of job 3 `digits` ──────────────
    01:17:23 of-an-older-server job=3
    q quit  ↑↓ select  tab next pane  ? help
    "#);
}

#[test]
fn without_a_terminal_all_of_it_is_text() {
    insta::assert_snapshot!(text(&view()), @r#"
    https://sojourn.example.org, sojourn 0.1.0
    connected; storage enough, 12 GB free
     ▸ jobs: 3, 1 running ──────────────────────────────────────────────────────────────────────────────────────────────────
      JOB NAME                             STATE     HOPS                   BEST     LEASES WAITS
        3 digits                           running   █████░░░░░ 7/12        0.9000        1 no host in contact has the memor
        2 images                           paused    ███░░░░░░░ 33 %        -             0
        1 digits-first                     finished  ██████████ 12/12       0.9000        0
     leading of 2 trials of job 3 `digits` ─────────────────────────────────────────────────────────────────────────────────
    the job waits: no host in contact has the memory for it
    TRIAL NAME                                            EPOCH   accuracy CURVE            STATE
        1 mlp hidden=[64] lr=0.01                         5/6     0.9000   ▁▄▇▇█            running
        0 mlp hidden=[16] lr=0.001                        2/6     0.6000   █▁               finished: place 2 of 2
     hosts: 3, 2 live, 1 of 4 slots busy ───────────────────────────────────────────────────────────────────────────────────
     HOST NAME                  STATE    BUSY    CORES MEMORY RUNS
        2 lab                   live     1/2       1.9 312 MB job 3, trial 1: train epoch 2, shard 3, share 25 %, completing
        3 desk                  live     0/2         -      - it lends too little disk for any unit
        1 attic                 away     0/2         -      -
     events of job 3 `digits` ──────────────────────────────────────────────────────────────────────────────────────────────
    01:17:23 of-an-older-server job=3
    01:17:22 trial 0 was stopped by the search: place 2 of 2
    01:17:16 job 3 `digits` was submitted
    "#);
    insta::assert_snapshot!(text(&empty()), @r#"
    https://sojourn.example.org, sojourn 0.1.0
    connected; storage enough, 12 GB free
     ▸ jobs: 0, 0 running ──────────────────────────────────────────────────────────────────────────────────────────────────
    none yet
     trials ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    none yet
     hosts: 0, 0 live, 0 of 0 slots busy ───────────────────────────────────────────────────────────────────────────────────
    none yet
     events ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    none yet
    "#);
}

#[test]
fn a_thousand_jobs_and_hosts_leave_room_for_the_selected_one() {
    let mut view = crowd();
    for _ in 0..499 {
        view.key(KeyCode::Down.into());
    }
    view.pane = Pane::Hosts;
    view.key(KeyCode::End.into());
    insta::assert_snapshot!(screen(&view, 80, 24), @r#"
    https://sojourn.example.org, sojourn 0.1.0
    connected; storage enough, 12 GB free
     jobs: 1,000, 0 running ────────────────────────────────────────────────────────
      JOB NAME         STATE     HOPS                   BEST     LEASES WAITS
      502 job-502      finished  ██████████ 12/12       -             0
      501 job-501      finished  ██████████ 12/12       -             0
      500 job-500      finished  ██████████ 12/12       -             0
     leading of 2 trials of job 501 `job-501` ──────────────────────────────────────
    not known yet
     ▸ hosts: 1,000, 1,000 live, 0 of 2,000 slots busy ─────────────────────────────
     HOST NAME           STATE    BUSY    RUNS
      991 host-991       live     0/2
      992 host-992       live     0/2
      993 host-993       live     0/2
      994 host-994       live     0/2
      995 host-995       live     0/2
      996 host-996       live     0/2
      997 host-997       live     0/2
      998 host-998       live     0/2
      999 host-999       live     0/2
     1000 host-1000      live     0/2
     events of job 501 `job-501` ───────────────────────────────────────────────────
    not known yet
    q quit  ↑↓ select  tab next pane  ? help
    "#);
    let text = text(&view);
    assert_eq!(text.lines().count(), usize::from(MAX_TEXT_HEIGHT));
}

#[test]
fn a_server_that_is_gone_or_slow_or_full_is_said_in_the_head() {
    let head = |view: &View| {
        let screen = screen(view, 60, 24);
        screen.split(" ▸ jobs").next().unwrap().trim_end().to_owned()
    };
    let mut view = view();
    view.silence = Duration::from_secs(2);
    assert!(head(&view).ends_with("connected; storage enough, 12 GB free"), "{}", head(&view));
    view.silence = Duration::from_secs(4);
    assert!(head(&view).contains("\nno answer for 4.0 s; still asking\n"), "{}", head(&view));
    view.problem = Some("no server at http://a (connection refused)".to_owned());
    let gone = "\nno answer for 4.0 s: no server at http://a (connection\nrefused); asking again\n";
    assert!(head(&view).contains(gone), "{}", head(&view));
    assert!(screen(&view, 80, 24).contains("images"), "what is known stays");
    let health = &mut view.snapshot.as_mut().unwrap().health;
    health.storage.level = StorageLevel::Full;
    let full = "storage full: 12 GB free of 1.0 GB to keep; no checkpoints\nare taken";
    assert!(head(&view).ends_with(full), "{}", head(&view));

    let mut unasked = View::new("http://a".to_owned(), Scope::Server);
    assert_eq!(head(&unasked), "http://a\nasking the server");
    assert!(screen(&unasked, 80, 24).contains("not known yet"));
    assert!(!screen(&unasked, 80, 24).contains("0 running"));
    unasked.problem = Some("gone".to_owned());
    assert_eq!(head(&unasked), "http://a\nno answer for 0.0 s: gone; asking again");
}

#[test]
fn help_covers_the_panes() {
    let mut view = view();
    view.key(KeyCode::Char('?').into());
    insta::assert_snapshot!(screen(&view, 60, 14), @r#"
    https://sojourn.example.org, sojourn 0.1.0
    connected; storage enough, 12 GB free
     help ──────────────────────────────────────────────────────
    up, down, k, j: select a job; in another pane, a line
    page up, page down: ten lines at once
    home, end: the first line, the last
    tab, shift-tab: the next pane, the one before: it gets the
    room
    ?: show or hide this help
    q, Esc, ctrl-C: leave; Esc leaves the help first
    curves are between a trial's own lowest and highest value


    q quit  ↑↓ select  tab next pane  ? help
    "#);
}

#[test]
fn no_size_is_too_small() {
    for (mut view, help) in
        [(view(), false), (crowd(), false), (empty(), false), (one_job(), false), (view(), true)]
    {
        view.help = help;
        for pane in Pane::ALL {
            view.pane = pane;
            for width in [0, 1, 5, 20, 59, 100] {
                for height in 0..20 {
                    let area = Rect::new(0, 0, width, height);
                    draw(&view, area, &mut Buffer::empty(area));
                }
            }
        }
    }
}
