//! Answers of other servers to a command: a terminal obeys none of them.

use crate::{
    site::Site,
    support::{Answer, FakeServer},
};

#[test]
fn a_tracking_server_says_nothing_that_a_terminal_obeys() {
    let tricks = "{\"message\":\"\\u001b]0;owned\\u0007no \\u001b[2Jsuch\\u202e thing\"}";
    let tracking = FakeServer::start(move |_| Answer::json(500, tricks));
    let site = Site::start();
    let job = site.submit(7, 1);
    let said = site.run(&["export", &job, "--mlflow", &tracking.url]);
    assert!(!said.status.success(), "{said:?}");
    let text = String::from_utf8(said.stderr).unwrap();
    assert!(text.contains("refused") && text.contains("no [2Jsuch thing"), "{text:?}");
    let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(obeyed), "{text:?}");
}
