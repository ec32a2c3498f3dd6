//! Screens as they are drawn, large and small.

use super::*;
use crate::cli::jobs::top::fixture::{crowd, empty, view};
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
    insta::assert_snapshot!(screen(&view(), 80, 24), @"");
}

#[test]
fn a_small_terminal_shows_the_best_of_each() {
    insta::assert_snapshot!(screen(&view(), 40, 12), @"");
}

#[test]
fn without_a_terminal_all_of_it_is_text() {
    insta::assert_snapshot!(text(&view()), @"");
    insta::assert_snapshot!(text(&empty()), @"");
}

#[test]
fn a_thousand_jobs_and_hosts_leave_room_for_the_selected_one() {
    let mut view = crowd();
    for _ in 0..499 {
        view.key(KeyCode::Down.into());
    }
    view.pane = Pane::Hosts;
    view.key(KeyCode::End.into());
    insta::assert_snapshot!(screen(&view, 80, 24), @"");
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
    assert!(screen(&view, 80, 24).contains("digits-first"), "what is known stays");
    let health = &mut view.snapshot.as_mut().unwrap().health;
    health.storage.level = StorageLevel::Full;
    let full = "storage full: 12 GB free of 1.0 GB to keep; no checkpoints\nare taken";
    assert!(head(&view).ends_with(full), "{}", head(&view));

    let mut unasked = View::new("http://a".to_owned());
    assert_eq!(head(&unasked), "http://a\nasking the server");
    assert!(screen(&unasked, 80, 24).contains("not known yet"));
    unasked.problem = Some("gone".to_owned());
    assert_eq!(head(&unasked), "http://a\nno answer for 0.0 s: gone; asking again");
}

#[test]
fn help_covers_the_panes() {
    let mut view = view();
    view.key(KeyCode::Char('?').into());
    insta::assert_snapshot!(screen(&view, 60, 14), @"");
}

#[test]
fn no_size_is_too_small() {
    for (mut view, help) in [(view(), false), (crowd(), false), (empty(), false), (view(), true)] {
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
