//! Content-addressed blobs, and the uploads that become blobs once they are verified.
//!
//! ```text
//!   bytes --> Uploads (spool: resumable, bounded, hashed) --verified file--> BlobStore (by digest)
//!                '---------------- WriteAheadLog (small files, synced in groups) -----'
//! ```
//!
//! A large blob may be stored in pieces. Reading it is the same.
//!
//! This package knows nothing of jobs, the state of leases, or access rights: those are the core's.
//!
//! ```
//! use sojourn_blobs::{BlobStore, HashedBytes};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let blobs = BlobStore::in_memory();
//! let named = HashedBytes::of("some bytes".into());
//! let blob = named.blob();
//! blobs.publish_bytes(named).await?;
//!
//! assert_eq!(blobs.size(blob.sha256).await?, Some(10));
//! assert_eq!(blobs.bytes(blob.sha256).await?, "some bytes");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connect;
mod disk;
mod error;
mod folder;
mod folder_copy;
mod hashed_bytes;
mod hold;
mod identity;
mod logged;
mod object_times;
mod objects;
mod packed;
mod prepared;
mod probe;
mod ranged;
#[cfg_attr(not(feature = "object-stores"), path = "remote_absent.rs")]
mod remote;
mod settings;
mod signed_urls;
mod slot;
mod spool;
mod staging;
mod store;
#[cfg(test)]
mod test_disks;
mod upload;
mod upload_name;
mod uploads;
mod write_ahead_log;

pub use connect::ConnectError;
pub use disk::{Disk, FullDisk, RealDisk};
pub use error::{BlobError, UploadError};
pub use folder_copy::{
    BLOBS_FOLDER, FilesCount, FolderCopy, LoggedFiles, UPLOADS_FOLDER, WantedFiles,
};
pub use hashed_bytes::HashedBytes;
pub use hold::Hold;
pub use packed::PackedCopy;
pub use prepared::Prepared;
pub use probe::ProbeError;
pub use settings::StoreSettings;
pub use signed_urls::SignedPut;
pub use staging::{Staged, Staging};
pub use store::{BlobBytes, BlobStore};
pub use upload::{Encoding, Upload};
pub use upload_name::UploadName;
pub use uploads::Uploads;
pub use write_ahead_log::WriteAheadLog;
