//! The program's arguments.

use crate::device::DeviceChoice;
use sojourn_libtorch::Determinism;
use std::ffi::OsString;

/// How the trainer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Threads of each operation, at least 1.
    pub threads: u32,
    /// The device that the trainer computes on.
    pub device: DeviceChoice,
    /// The treatment of operations that no deterministic algorithm exists for on that device, where it is a GPU.
    pub determinism: Determinism,
}

const USAGE: &str = "usage: sojourn-trainer [--threads N] [--device cpu|cuda:N] [--reproducible]\n\nTrains units that come as JSON lines \
                     on stdin; `sojourn client` starts it.";
const MAX_THREADS: u32 = 1024;

impl Options {
    /// Reads the arguments, without the program's name.
    ///
    /// # Errors
    /// The message for a wrong call, or the help text where it is asked for.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let (device, determinism) = (DeviceChoice::Cpu, Determinism::Preferred);
        let mut options = Self { threads: 1, device, determinism };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            if argument == "--reproducible" {
                options.determinism = Determinism::Required;
                continue;
            }
            let value = arguments.next().and_then(|value| value.into_string().ok());
            let value = value.as_deref();
            match argument.to_str() {
                Some("--threads") => {
                    options.threads = value
                        .and_then(|text| text.parse().ok())
                        .filter(|threads| (1..=MAX_THREADS).contains(threads))
                        .ok_or(format!("`--threads` takes a number from 1 to {MAX_THREADS}"))?;
                }
                Some("--device") => {
                    options.device = value
                        .and_then(|text| text.parse().ok())
                        .ok_or("`--device` takes `cpu`, or `cuda:0` and so on")?;
                }
                _ => return Err(USAGE.into()),
            }
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
        let determinism = Determinism::Preferred;
        let cpu = |threads| Ok(Options { threads, device: DeviceChoice::Cpu, determinism });
        assert_eq!(parse(&[]), cpu(1));
        assert_eq!(parse(&["--threads", "3"]), cpu(3));
        assert_eq!(parse(&["--device", "cpu"]), cpu(1));
        let second = Options { threads: 2, device: DeviceChoice::Cuda(1), determinism };
        assert_eq!(parse(&["--device", "cuda:1", "--threads", "2"]), Ok(second));
        let exact = Options { determinism: Determinism::Required, ..second };
        assert_eq!(parse(&["--threads", "2", "--reproducible", "--device", "cuda:1"]), Ok(exact));
        for bad in [
            &["--threads", "0"][..],
            &["--threads"],
            &["--threads", "x"],
            &["--help"],
            &["--device"],
            &["--device", "cuda"],
            &["--device", "cuda:-1"],
            &["--device", "gpu"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
