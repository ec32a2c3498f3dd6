//! The side of whoever asks: one question, one answer.

use super::{
    SOCKET_FILE,
    messages::{Answer, Ask},
};
use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long an answer may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum CallError {
    #[error("no client runs on the data folder `{}`", data.display())]
    Nobody { data: PathBuf },
    #[error("the client on the data folder `{}` is another user's", data.display())]
    NotYours { data: PathBuf },
    #[error("the client on the data folder `{}` doesn't answer", data.display())]
    Silent { data: PathBuf, source: io::Error },
}

/// Asks the daemon that runs on a data folder. Blocks for ten seconds at most.
///
/// # Errors
/// Where nobody answers.
pub fn call(data: &Path, ask: &Ask) -> Result<Answer, CallError> {
    let folder = || data.to_owned();
    let stream =
        UnixStream::connect(data.join(SOCKET_FILE)).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                CallError::Nobody { data: folder() }
            }
            io::ErrorKind::PermissionDenied => CallError::NotYours { data: folder() },
            _ => CallError::Silent { data: folder(), source },
        })?;
    exchange(stream, ask).map_err(|source| CallError::Silent { data: folder(), source })
}

fn exchange(mut stream: UnixStream, ask: &Ask) -> io::Result<Answer> {
    stream.set_read_timeout(Some(CALL_TIMEOUT))?;
    stream.set_write_timeout(Some(CALL_TIMEOUT))?;
    let mut line = serde_json::to_vec(ask)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&answer)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_call_without_a_daemon_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let error = call(folder.path(), &Ask::Status).unwrap_err();
        assert!(matches!(error, CallError::Nobody { .. }), "{error:?}");
        // A socket that a killed daemon has left.
        drop(UnixListener::bind(folder.path().join(SOCKET_FILE)).unwrap());
        let error = call(folder.path(), &Ask::Status).unwrap_err();
        let text = format!("no client runs on the data folder `{}`", folder.path().display());
        assert_eq!(error.to_string(), text);
    }
}
