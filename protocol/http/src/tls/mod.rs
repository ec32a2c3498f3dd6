//! TLS to a server: which certificates are trusted, and what is wrong with one that isn't.
//!
//! | file | is about |
//! |---|---|
//! | `authorities` | the certificates that a user trusts instead of the system's |
//! | `verifier` | the check of a server's certificate against them |
//! | `fault` | why a connection isn't secure, in words that say what to do |

mod authorities;
mod fault;
mod verifier;

pub use authorities::{Authorities, AuthoritiesError};
pub use fault::TlsFault;
