//! The program `sojourn-trainer`: trains units with libtorch, as a child process of the client.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    match sojourn_trainer::Options::parse(arguments) {
        Ok(options) => sojourn_trainer::serve(&options),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
