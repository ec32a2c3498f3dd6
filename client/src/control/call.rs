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
    #[error("the client on the data folder `{}` ended before it answered", data.display())]
    Ended { data: PathBuf },
    #[error("the client on the data folder `{}` doesn't answer", data.display())]
    Silent { data: PathBuf, source: io::Error },
}

impl CallError {
    /// Whether no client is there any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Nobody { .. } | Self::Ended { .. })
    }
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
    exchange(stream, ask).map_err(|source| match source.kind() {
        // A client hangs up on nobody while it runs.
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => CallError::Ended { data: folder() },
        _ => CallError::Silent { data: folder(), source },
    })
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
    use std::{io::Read, os::unix::net::UnixListener, thread};

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
    /// A poll may fall into the moment in which the client ends.
    #[test]
    fn a_client_that_hangs_up_has_ended() {
        for reads_the_question in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let listener = UnixListener::bind(folder.path().join(SOCKET_FILE)).unwrap();
            let client = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                // Bytes that nobody reads make it a reset, otherwise it is an end.
                let mut question = [0; 64];
                let length = if reads_the_question { question.len() } else { 1 };
                let _ = stream.read(&mut question[..length]).unwrap();
            });
            let error = call(folder.path(), &Ask::Status).unwrap_err();
            client.join().unwrap();
            assert!(matches!(error, CallError::Ended { .. }), "{error:?}");
            assert!(error.has_ended());
        }
    }
}
