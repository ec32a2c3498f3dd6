//! Checkpoints and shards: canonical safetensors, deltas of them, and blobs in ranges.

use crate::expect::is_said;
use sojourn_codec::{
    Dtype, Tensor, TensorView, decode, decode_header,
    delta::{self, Head, Named},
    encode,
    ranges::{Index, MAX_PIECE_BYTES, Piece, pack},
};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    error::error_chain,
    quantity::to_u64,
};
use std::sync::LazyLock;

/// A file that is taken is the one that its tensors are written as.
pub(crate) fn safetensors(input: &[u8]) -> bool {
    let header = decode_header(input);
    let views = match decode(input) {
        Ok(views) => views,
        Err(error) => {
            is_said(&error, input);
            return false;
        }
    };
    let bytes = header.map(|header| header.file_bytes()).ok();
    assert_eq!(bytes, Some(to_u64(input.len())), "the header says another size");
    for view in &views {
        let numbers = match view.dtype {
            Dtype::U8 => view.u8s().map(<[u8]>::len),
            Dtype::F32 => view.f32s().map(|numbers| numbers.count()),
            Dtype::I64 => view.i64s().map(|numbers| numbers.count()),
            dtype => Ok(view.data.len() / usize::try_from(dtype.bytes()).unwrap_or(1)),
        };
        let expected: u64 = view.shape.iter().product();
        assert_eq!(numbers.map(to_u64), Ok(expected), "{}", view.name);
    }
    let tensors: Vec<Tensor> = views.iter().map(TensorView::to_tensor).collect();
    assert_eq!(encode(&tensors).as_deref(), Ok(input), "two files for the same tensors");
    true
}

/// Two small checkpoints, which deltas are of: one of several tensors, and one of none.
static BASES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let numbers: Vec<f32> = (0..200u16).map(|n| (f32::from(n) - 90.0) / 77.0).collect();
    let tensors = [
        Tensor::f32("layers.0.bias", [20u64], numbers.get(..20).unwrap_or_default()),
        Tensor::f32("layers.0.weight", [10u64, 20], &numbers),
        Tensor::i64("lineage", [6u64], &[7, 0, 1, 2, 3, 4]),
    ];
    [&tensors[..], &[]].map(|tensors| encode(tensors).unwrap_or_default())
});

/// Reads a delta of a known checkpoint, and makes one of the input's bytes as another checkpoint.
pub(crate) fn delta(input: &[u8]) -> bool {
    let mut taken = false;
    for bytes in BASES.iter() {
        let base = Named { digest: Digest::of(bytes).0, bytes };
        let mut addressed = input.to_vec();
        // Else nearly all inputs would be deltas of other bases.
        for (place, byte) in addressed.iter_mut().skip(8).zip(base.digest) {
            *place = byte;
        }
        for delta in [input, &addressed] {
            if let Err(error) = Head::read(delta) {
                is_said(&error_chain(&error), input);
            }
            match delta::decode(base, delta, to_u64(bytes.len())) {
                Ok(made) => {
                    let head = Head::read(delta).ok().map(|head| head.result);
                    assert_eq!(head, Some(Digest::of(&made).0), "other bytes than were declared");
                    taken = true;
                }
                Err(error) => is_said(&error_chain(&error), input),
            }
        }
        comes_back(base, input);
    }
    taken
}

/// The base with the input's bytes in its tensors comes back from its delta.
fn comes_back(base: Named<'_>, input: &[u8]) {
    let mut new = base.bytes.to_vec();
    let header = decode_header(base.bytes).map(|layout| layout.header().len()).unwrap_or_default();
    for (place, byte) in new.iter_mut().skip(header).zip(input) {
        *place = *byte;
    }
    let named = Named { digest: Digest::of(&new).0, bytes: &new };
    let delta = delta::encode(base, named);
    assert!(delta.is_ok(), "there is no delta: {:?}", delta.err());
    let back = delta::decode(base, &delta.unwrap_or_default(), to_u64(new.len()));
    assert!(back.as_ref().ok() == Some(&new), "another checkpoint comes back: {:?}", back.err());
}

/// Reads an index of ranges, and unpacks the input as a piece of a blob.
pub(crate) fn ranges(input: &[u8]) -> bool {
    let mut taken = false;
    match Index::read(input) {
        Ok(index) => {
            assert_eq!(index.write().as_bytes(), input, "two texts of one index");
            let all: u64 = index.within(0..u64::MAX).map(|(_, part)| part.end - part.start).sum();
            assert_eq!(all, index.blob().bytes, "pieces that aren't the whole");
            taken = true;
        }
        Err(error) => is_said(&error, input),
    }
    // The digest of an index is of all its lines: a line alone is read where it is right.
    let body = input.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"end "));
    let body = body.flat_map(|line| [line, b"\n"]).collect::<Vec<_>>().concat();
    let signed = [&body[..], format!("end {}\n", Digest::of(&body)).as_bytes()].concat();
    if let Err(error) = Index::read(&signed) {
        is_said(&error, input);
    }
    for bytes in [0, 1, to_u64(input.len()), 1 << 16, MAX_PIECE_BYTES, u64::MAX] {
        let raw = BlobRef { sha256: Digest::of(input), bytes };
        let piece = Piece { name: "a".into(), raw, packed: to_u64(input.len()) };
        match piece.unpack(input) {
            Ok(unpacked) => assert_eq!(to_u64(unpacked.len()), bytes),
            Err(error) => is_said(&error_chain(&error), input),
        }
    }
    let raw = BlobRef { sha256: Digest::of(input), bytes: to_u64(input.len()) };
    let packed = pack(input).unwrap_or_default();
    let piece = Piece { name: "a".into(), raw, packed: to_u64(packed.len()) };
    assert_eq!(piece.unpack(&packed).ok().as_deref(), Some(input), "other bytes come back");
    taken
}
