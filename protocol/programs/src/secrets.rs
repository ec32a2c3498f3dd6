//! Secrets that a command needs: from a file, the environment or, though others can read it there, the command line.

use crate::{exit::Failure, stderr};
use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// Bytes of a file with a secret, at most.
const MAX_SECRET_BYTES: u64 = 4096;

/// The secret that was given: by the flag, where it is among the arguments of this process, else by a file, else by the
/// environment. An empty one counts as none.
///
/// # Errors
/// Where the file can't be read, or holds no secret.
pub fn secret(
    flag: &str,
    given: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<String>, Failure> {
    let given = given.filter(|secret| !secret.is_empty()).map(str::to_owned);
    let file = file.filter(|file| !file.as_os_str().is_empty());
    match file {
        Some(file) if given.is_none() || !arguments().any(|word| is_flag(&word, flag)) => {
            read(file).map(Some)
        }
        _ => Ok(given),
    }
}

/// The secret in a file, which is its only line.
///
/// # Errors
/// Where the file can't be read, or holds no secret.
pub fn read(file: &Path) -> Result<String, Failure> {
    let wrong = |why: String| Failure::call(format!("`{}`: {why}", file.display()));
    let mut text = String::new();
    let open = File::open(file).and_then(|file| {
        file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text)?;
        Ok(())
    });
    open.map_err(|error: io::Error| wrong(error.to_string()))?;
    let secret = text.trim();
    let too_long = u64::try_from(text.len()).map_or(true, |bytes| bytes > MAX_SECRET_BYTES);
    if secret.is_empty() || too_long || secret.contains(char::is_whitespace) {
        return Err(wrong(format!("one line of at most {MAX_SECRET_BYTES} bytes is wanted")));
    }
    Ok(secret.to_owned())
}

/// Warns where a secret is among the arguments of this process.
pub fn warn_of_arguments() {
    if let Some(instead) = arguments().find_map(|word| instead_of(&word)) {
        stderr::remark(&format!(
            "warning: every user of this machine can read a secret on a command line; use {instead} instead"
        ));
    }
}

fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

fn is_flag(word: &str, flag: &str) -> bool {
    word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// The way to give what this word of a command line says, if that is secret.
fn instead_of(word: &str) -> Option<&'static str> {
    if is_flag(word, "--token") {
        return Some("`--token-file FILE` or the environment");
    }
    let (_, rest) = word.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty())
        .then_some("a file (for a journal `--journal-file FILE`) or the environment")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn tokens_and_passwords_in_addresses_are_secrets() {
        for word in
            ["--token", "--token=x", "redis://:pw@a/1", "--journal=rediss://u:p@a:1/0?name=x"]
        {
            assert!(instead_of(word).is_some(), "{word}");
        }
        for word in ["--token-file", "redis://a/1", "redis://user@a", "http://a:8642", "a@b:c", ""]
        {
            assert_eq!(instead_of(word), None, "{word}");
        }
    }

    #[test]
    fn a_file_holds_one_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "abc\n").unwrap();
        assert_eq!(read(&file).unwrap(), "abc");
        // The environment comes after the file.
        assert_eq!(secret("--token", Some("env"), Some(&file)).unwrap().as_deref(), Some("abc"));
        assert_eq!(secret("--token", Some("env"), None).unwrap().as_deref(), Some("env"));
        assert_eq!(secret("--token", Some(""), Some(Path::new(""))).unwrap(), None);
        for wrong in ["", "\n", "a b\n", "a\nb\n", &"x".repeat(5000)] {
            fs::write(&file, wrong).unwrap();
            let failure = read(&file).unwrap_err();
            assert!(failure.messages()[0].contains("one line of at most 4096 bytes"), "{wrong:?}");
        }
        let failure = secret("--token", None, Some(&folder.path().join("none"))).unwrap_err();
        assert!(failure.messages()[0].contains("none`: "), "{failure:?}");
    }
}
