//! One request that writes to an upload.

use crate::{error::UploadError, slot::Slot, spool::Spool, upload_name::UploadName};
use parking_lot::Mutex;
use sojourn_protocol::{api::UploadState, digest::BlobRef};
use std::sync::Arc;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

/// The largest decoder window that a body may ask for, as a power of two: 8 MiB. zstd's levels up to 19 need no more.
const MAX_WINDOW_LOG: u32 = 23;

/// How the bytes of one request are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Identity,
    /// zstd; every request is a stream of its own.
    Zstd,
}

/// One request that writes to the spool. Dropping it keeps the bytes that were written.
pub struct Upload {
    name: UploadName,
    slot: Arc<Mutex<Slot>>,
    generation: u64,
    declared: BlobRef,
    decoder: Option<Decoder<'static>>,
    spool: Arc<Spool>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Upload {
    pub(crate) fn new(
        name: UploadName,
        slot: Arc<Mutex<Slot>>,
        generation: u64,
        declared: BlobRef,
        encoding: Encoding,
        spool: Arc<Spool>,
    ) -> Result<Self, UploadError> {
        let decoder = match encoding {
            Encoding::Identity => None,
            Encoding::Zstd => {
                let mut decoder = Decoder::new().map_err(UploadError::Undecodable)?;
                let window = DParameter::WindowLogMax(MAX_WINDOW_LOG);
                decoder.set_parameter(window).map_err(UploadError::Undecodable)?;
                Some(decoder)
            }
        };
        Ok(Self { name, slot, generation, declared, decoder, spool })
    }

    /// Takes the next bytes of the body, decoding and hashing them. No more than the declared size
    /// is ever decoded or written.
    ///
    /// # Errors
    /// [`UploadError::TooLarge`], [`UploadError::Undecodable`], [`UploadError::TakenOver`],
    /// [`UploadError::Full`], or where the disk fails.
    pub fn write(&mut self, body: &[u8]) -> Result<(), UploadError> {
        let Some(decoder) = &mut self.decoder else {
            return Self::append(&self.slot, self.generation, self.name, &self.spool, body);
        };
        let mut decoded = vec![0; 128 << 10];
        let mut input = InBuffer::around(body);
        loop {
            let mut output = OutBuffer::around(decoded.as_mut_slice());
            let before = input.pos();
            decoder.run(&mut input, &mut output).map_err(UploadError::Undecodable)?;
            let bytes = output.as_slice();
            let (made, whole) = (bytes.len(), bytes.len() == 128 << 10);
            Self::append(&self.slot, self.generation, self.name, &self.spool, bytes)?;
            let idle = made == 0 && input.pos() == before;
            if idle || (input.pos() == body.len() && !whole) {
                return Ok(());
            }
        }
    }

    /// The body has ended. Where all declared bytes are there they are compared with the digest,
    /// and once this returns a complete upload lasts.
    ///
    /// # Errors
    /// [`UploadError::DigestMismatch`], [`UploadError::TakenOver`], or where the disk fails.
    pub fn finish(self) -> Result<UploadState, UploadError> {
        let mut slot = self.slot.lock();
        if slot.generation() != self.generation {
            return Err(UploadError::TakenOver(self.name));
        }
        slot.settle(&self.spool, self.name)?;
        let nothing = UploadState { offset: 0, complete: false };
        Ok(slot.state().map_or(nothing, |(_, state)| state))
    }

    /// The declared digest and size.
    #[must_use]
    pub const fn declared(&self) -> BlobRef {
        self.declared
    }

    fn append(
        slot: &Mutex<Slot>,
        generation: u64,
        name: UploadName,
        spool: &Spool,
        bytes: &[u8],
    ) -> Result<(), UploadError> {
        let mut slot = slot.lock();
        if slot.generation() != generation {
            return Err(UploadError::TakenOver(name));
        }
        slot.append(spool, bytes)
    }
}
