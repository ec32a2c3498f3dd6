//! `sojourn cloud`, with stand-ins for the autoscaler's program.

use crate::support::{Folder, script, sojourn};

#[test]
fn the_autoscaler_gets_the_words_and_its_exit_code_comes_back() {
    let folder = Folder::with(&[]);
    let program = folder.path().join("autoscaler");
    script(&program, "echo \"$@\"\necho trouble >&2\nexit 7\n");
    for (words, expected) in [
        (vec!["up", "fleet.toml"], "up -- fleet.toml\n"),
        (vec!["up", "--preview", "--json", "fleet.toml"], "up --preview --json -- fleet.toml\n"),
        (vec!["down", "fleet.toml", "-y"], "down --yes -- fleet.toml\n"),
    ] {
        let mut command = sojourn(&[&["cloud"], &*words].concat());
        let output = command.env("SOJOURN_AUTOSCALER", &program).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "trouble\n");
        assert_eq!(output.status.code(), Some(7));
    }
}

#[test]
fn an_autoscaler_that_is_not_there_is_named_with_how_to_get_it() {
    let mut command = sojourn(&["cloud", "up", "fleet.toml"]);
    let output = command.env("SOJOURN_AUTOSCALER", "/nowhere/sojourn-autoscaler").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("there is no `/nowhere/sojourn-autoscaler`"), "{said}");
    assert!(said.contains("cargo build --release -p sojourn-autoscaler"), "{said}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn up_and_down_want_a_file() {
    for word in ["up", "down"] {
        let output = sojourn(&["cloud", word]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{word}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("<FILE>"), "{word}");
    }
}
