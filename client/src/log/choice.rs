//! The choice whether the log is written into files.

use std::str::FromStr;

/// Where the daemon's log goes beside stderr.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogChoice {
    /// Into files in the data folder, a new one each day.
    #[default]
    Daily,
    /// The log goes to stderr alone.
    Off,
}

impl FromStr for LogChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "daily" => Ok(Self::Daily),
            "none" => Ok(Self::Off),
            _ => Err("`daily` or `none` is wanted".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_two_words() {
        assert_eq!("daily".parse(), Ok(LogChoice::Daily));
        assert_eq!("none".parse(), Ok(LogChoice::Off));
        assert!("weekly".parse::<LogChoice>().is_err());
    }
}
