//! The program's arguments.

use std::ffi::OsString;

/// How the trainer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Threads of each operation, at least 1.
    pub threads: u32,
}

const USAGE: &str = "usage: sojourn-trainer [--threads N]\n\nTrains units that come as JSON lines \
                     on stdin; `sojourn client` starts it.";
const MAX_THREADS: u32 = 1024;

impl Options {
    /// Reads the arguments, without the program's name.
    ///
    /// # Errors
    /// What to tell the one who called it wrongly, or asked for help.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut options = Self { threads: 1 };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if argument != "--threads" {
                return Err(USAGE.into());
            }
            let value = arguments.next().and_then(|value| value.into_string().ok());
            options.threads = value
                .and_then(|text| text.parse().ok())
                .filter(|threads| (1..=MAX_THREADS).contains(threads))
                .ok_or_else(|| format!("`--threads` takes a number from 1 to {MAX_THREADS}"))?;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        let parse = |words: &[&str]| Options::parse(words.iter().map(OsString::from));
        assert_eq!(parse(&[]), Ok(Options { threads: 1 }));
        assert_eq!(parse(&["--threads", "3"]), Ok(Options { threads: 3 }));
        for bad in [&["--threads", "0"][..], &["--threads"], &["--threads", "x"], &["--help"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
