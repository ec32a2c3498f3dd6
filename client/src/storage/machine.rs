//! `machine.json`: the machine that the identity belongs to, and the name under which it enrolled. A data folder that was copied to
//! another machine is noticed by it.

use super::folder::write_lasting_secret;
use serde::{Deserialize, Serialize};
use sojourn_files::if_exists;
use sojourn_protocol::digest::Digest;
use std::{fs, io, path::Path};

/// The format of the file.
const FORMAT: u32 = 1;
/// The system's own id of the machine, which an installation makes, and containers mostly lack.
const MACHINE_ID: &str = "/etc/machine-id";
/// Characters of an id; a file that says `uninitialized` has none.
const ID_CHARACTERS: usize = 32;

/// The machine of an identity, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MachineRecord {
    format: u32,
    /// SHA-256 of the machine's id; left out where the system has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<Digest>,
    /// The name under which the machine enrolled; left out where that was before names were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Whether an identity is this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// As far as is known.
    Here,
    /// To another machine.
    Elsewhere,
}

impl MachineRecord {
    /// The record of this machine, which enrols under a name.
    pub(crate) fn here(name: &str) -> Self {
        Self {
            format: FORMAT,
            machine: machine_id(Path::new(MACHINE_ID)),
            name: Some(name.to_owned()),
        }
    }

    /// Reads the file; none where there is none.
    ///
    /// # Errors
    /// A file that can't be read or understood.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        let Some(text) = if_exists(fs::read(path))? else { return Ok(None) };
        let record: Self = serde_json::from_slice(&text)?;
        if record.format != FORMAT {
            let message = format!("format {} is not {FORMAT}", record.format);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Some(record))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Where it can't be written.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        write_lasting_secret(path, &serde_json::to_vec_pretty(self)?)
    }

    /// The name under which the machine enrolled.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Is the machine of the record this one?
    pub(crate) fn belongs(&self, here: &Self) -> Belongs {
        match (self.machine, here.machine) {
            (Some(recorded), Some(here)) if recorded != here => Belongs::Elsewhere,
            _ => Belongs::Here,
        }
    }

    /// The record with the machine's id, where that wasn't known before.
    pub(crate) fn completed(&self, here: &Self) -> Self {
        Self { format: FORMAT, machine: self.machine.or(here.machine), name: self.name.clone() }
    }
}

fn machine_id(path: &Path) -> Option<Digest> {
    let text = fs::read_to_string(path).ok()?;
    let id = text.trim();
    let is_id = id.len() == ID_CHARACTERS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    // The id itself is not for others (machine-id(5)).
    is_id.then(|| Digest::of(format!("sojourn {id}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_machine_is_noticed_and_one_without_an_id_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let id = |text: &str| {
            let path = folder.path().join("machine-id");
            fs::write(&path, text).unwrap();
            machine_id(&path)
        };
        let of = |machine| MachineRecord { format: FORMAT, machine, name: Some("a".to_owned()) };
        let (first, second) = (id(&"a".repeat(32)), id(&format!("{}\n", "b".repeat(32))));
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!(
            (id("uninitialized\n"), id(""), machine_id(Path::new("/no/such"))),
            (None, None, None)
        );
        assert_eq!(of(first).belongs(&of(second)), Belongs::Elsewhere);
        for (recorded, here) in [(first, first), (first, None), (None, first), (None, None)] {
            assert_eq!(of(recorded).belongs(&of(here)), Belongs::Here);
        }
        assert_eq!(of(None).completed(&of(first)), of(first));
        let path = folder.path().join("machine.json");
        assert_eq!(MachineRecord::read(&path).unwrap(), None);
        of(first).write(&path).unwrap();
        assert_eq!(MachineRecord::read(&path).unwrap(), Some(of(first)));
        fs::write(&path, "{").unwrap();
        MachineRecord::read(&path).unwrap_err();
    }
}
