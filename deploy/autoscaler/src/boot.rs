//! The values that a machine is told at its first start: those of the placeholders of its user data.

use crate::config::MachineConfig;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sojourn_protocol::{time::Millis, view::ProgramView};
use std::{collections::BTreeMap, fs, io, path::PathBuf};

/// Why machines can't be told what to do.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The server doesn't hand the program out.
    #[error(
        "the server has no program `{name}` (it has: {}); see `sojourn serve --programs`",
        there.join(", ")
    )]
    NoProgram {
        /// The program.
        name: String,
        /// The programs that it has.
        there: Vec<String>,
    },
    /// Several programs would fit.
    #[error("`{name}` begins the name of several of the server's programs: {}", found.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// The programs.
        found: Vec<String>,
    },
    /// The certificate can't be read.
    #[error("`{}`", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The values, by the placeholders' names. `enrol` is how long a machine has to become a host.
///
/// # Errors
/// Where the server lacks a program, or the certificate can't be read.
pub fn values(
    config: &MachineConfig,
    enrol: Millis,
    programs: &[ProgramView],
) -> Result<BTreeMap<String, String>, BootError> {
    let certificate = match &config.ca {
        None => String::new(),
        Some(path) => {
            let failed = |source| BootError::Certificate { path: path.clone(), source };
            STANDARD.encode(fs::read(path).map_err(failed)?)
        }
    };
    let minutes = enrol.0.div_ceil(60_000).max(1);
    let idle = config.idle.0.div_ceil(1000);
    Ok([
        ("server", config.server.clone()),
        ("ca", certificate),
        ("idle", format!("{idle}s")),
        ("boot_minutes", minutes.to_string()),
        ("client_sha256", digest(&config.client, programs)?),
        ("trainer_sha256", digest(&config.trainer, programs)?),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect())
}

/// The SHA-256 of a program: given as such, or the program's name, or how the name of one begins.
fn digest(wanted: &str, programs: &[ProgramView]) -> Result<String, BootError> {
    if wanted.len() == 64 && wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(wanted.to_lowercase());
    }
    if let Some(program) = programs.iter().find(|program| program.name == wanted) {
        return Ok(program.sha256.to_string());
    }
    let found: Vec<&ProgramView> =
        programs.iter().filter(|program| program.name.starts_with(wanted)).collect();
    let names =
        |programs: &[&ProgramView]| programs.iter().map(|program| program.name.clone()).collect();
    match found.as_slice() {
        [program] => Ok(program.sha256.to_string()),
        [] => Err(BootError::NoProgram {
            name: wanted.to_owned(),
            there: names(&programs.iter().collect::<Vec<_>>()),
        }),
        several => Err(BootError::Ambiguous { name: wanted.to_owned(), found: names(several) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn program(name: &str, digit: &str) -> ProgramView {
        ProgramView { name: name.into(), bytes: 1, sha256: digit.repeat(64).parse().unwrap() }
    }

    fn config() -> MachineConfig {
        MachineConfig {
            server: "https://a".into(),
            ca: None,
            idle: Millis::from_secs(600),
            client: "sojourn-daemon".into(),
            trainer: "sojourn-trainer".into(),
        }
    }

    #[test]
    fn programs_are_found_by_name_or_how_it_begins_or_digest() {
        let programs = [program("sojourn-daemon", "a"), program("sojourn-trainer-0.1.tar.gz", "b")];
        let values = values(&config(), Millis::from_secs(610), &programs).unwrap();
        assert_eq!(values["client_sha256"], "a".repeat(64));
        assert_eq!(values["trainer_sha256"], "b".repeat(64));
        assert_eq!((values["boot_minutes"].as_str(), values["idle"].as_str()), ("11", "600s"));
        assert_eq!(values["ca"], "");
        let given = "C".repeat(64);
        assert_eq!(digest(&given, &[]).unwrap(), "c".repeat(64));
        let error = digest("sojourn-cleint", &programs).unwrap_err();
        assert!(error.to_string().contains("it has: sojourn-daemon, sojourn-trainer"), "{error}");
        assert!(matches!(digest("sojourn", &programs), Err(BootError::Ambiguous { .. })));
    }

    #[test]
    fn a_certificate_that_cannot_be_read_is_named() {
        let ca = Some(Path::new("/nowhere").to_owned());
        let failed = values(&MachineConfig { ca, ..config() }, Millis(0), &[]);
        assert!(matches!(failed, Err(BootError::Certificate { .. })));
    }
}
