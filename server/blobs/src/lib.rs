//! Content-addressed blobs, and the uploads that become blobs once somebody has verified them.
//!
//! ```text
//!   bytes --> Uploads (spool: resumable, bounded, hashed) --verified file--> BlobStore (by digest)
//! ```
//!
//! A large blob may be stored in pieces; whoever reads it needn't know.
//!
//! Nothing here knows jobs, leases' states or who may read what; that is the core's.

mod ages;
mod connect;
mod direct;
mod disk;
mod error;
mod hold;
mod named;
mod proof;
mod ranged;
mod settings;
mod staging;
mod store;
mod upload;
mod uploads;

pub use connect::ConnectError;
pub use direct::SignedPut;
pub use disk::{Disk, FullDisk, RealDisk};
pub use error::{BlobError, UploadError};
pub use hold::Hold;
pub use named::Named;
pub use proof::ProofError;
pub use settings::StoreSettings;
pub use staging::{Staged, Staging};
pub use store::{BlobBytes, BlobStore};
pub use upload::{Encoding, Upload};
pub use uploads::{UploadName, Uploads};
