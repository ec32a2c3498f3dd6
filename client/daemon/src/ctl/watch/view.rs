//! The state behind the screen, and the effect of each key. Knows neither terminal nor socket.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sojourn_client::{
    control::{Answer, Ask, CallError, Pause, Status},
    log::Line,
};
use sojourn_protocol::error::error_chain;

/// All that is shown.
#[derive(Debug)]
pub(super) struct View {
    pub(super) status: Status,
    /// The end of the client's log, the oldest line first.
    pub(super) log: Vec<Line>,
    /// Why the screen may be out of date, or why an order wasn't carried out.
    pub(super) problem: Option<String>,
    pub(super) question: Option<Question>,
}

/// A question that is answered by yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    Drain,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Leave,
    /// The client is to be asked for this.
    Ask(Ask),
}

impl View {
    pub(super) fn new(status: Status) -> Self {
        Self { status, log: Vec::new(), problem: None, question: None }
    }

    /// Takes the client's answer.
    pub(super) fn take_answer(&mut self, answer: Result<Answer, CallError>) {
        self.problem = None;
        match answer {
            Ok(Answer::Status(status)) => self.status = *status,
            Ok(Answer::Log(log)) => self.log = log.lines,
            Ok(Answer::Refused(why)) => self.problem = Some(why),
            Ok(Answer::Limits(_) | Answer::Cache(_)) => {}
            Err(error) => self.problem = Some(error_chain(&error)),
        }
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Next {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let letter = match key.code {
            _ if key.is_release() => return Next::Stay,
            KeyCode::Char('c') if control => return Next::Leave,
            KeyCode::Char(letter) if !control => letter.to_ascii_lowercase(),
            KeyCode::Esc => 'n',
            _ => return Next::Stay,
        };
        match (self.question.take(), letter) {
            (Some(Question::Drain), 'y') => Next::Ask(Ask::Drain),
            (Some(_), 'n') => Next::Stay,
            (None, 'd') if !self.status.draining => {
                self.question = Some(Question::Drain);
                Next::Stay
            }
            (None, 'p') => Next::Ask(Ask::Pause(Pause::default())),
            (None, 'r') => Next::Ask(Ask::Resume),
            (_, 'q') => Next::Leave,
            (question, _) => {
                self.question = question;
                Next::Stay
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let status = r#"{"host":"3","server":"http://a","server_away":false,"device":"cpu","slots":1,"pace":50,
            "draining":false,"units":[],"limits":{},"cache":{"used":5,"limit":100,"shards":1}}"#;
        View::new(serde_json::from_str(status).unwrap())
    }

    fn keys(view: &mut View, text: &str) -> Vec<Next> {
        text.chars().map(|letter| view.key(KeyCode::Char(letter).into())).collect()
    }

    #[test]
    fn a_drain_needs_a_confirmation() {
        let mut view = view();
        assert_eq!(keys(&mut view, "dn"), [Next::Stay, Next::Stay]);
        assert_eq!(view.question, None);
        assert_eq!(keys(&mut view, "dp"), [Next::Stay, Next::Stay], "that is no answer");
        assert_eq!(view.question, Some(Question::Drain));
        assert_eq!(keys(&mut view, "Y"), [Next::Ask(Ask::Drain)]);
        keys(&mut view, "d");
        assert_eq!(view.key(KeyCode::Esc.into()), Next::Stay);
        assert_eq!(view.question, None);
        view.status.draining = true;
        keys(&mut view, "d");
        assert_eq!(view.question, None, "it does already");
    }

    #[test]
    fn keys_pause_resume_and_leave() {
        let mut view = view();
        let pause = Next::Ask(Ask::Pause(Pause::default()));
        assert_eq!(
            keys(&mut view, "prxq"),
            [pause, Next::Ask(Ask::Resume), Next::Stay, Next::Leave]
        );
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        assert_eq!(view.key(control('c')), Next::Leave);
        assert_eq!(view.key(control('p')), Next::Stay);
        keys(&mut view, "d");
        assert_eq!(view.key(control('c')), Next::Leave);
        assert_eq!(keys(&mut view, "dq"), [Next::Stay, Next::Leave]);
    }

    #[test]
    fn a_problem_is_shown_until_an_answer_comes() {
        let mut view = view();
        view.take_answer(Ok(Answer::Refused("not now".to_owned())));
        assert_eq!(view.problem.as_deref(), Some("not now"));
        let status = Status { pace: 20, ..view.status.clone() };
        view.take_answer(Ok(Answer::Status(Box::new(status))));
        assert_eq!((view.problem.as_deref(), view.status.pace), (None, 20));
    }
}
