//! Uploads: resumable, bounded, hashed, one owner at a time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use sojourn_blobs::{
    Encoding, FullDisk, RealDisk, UploadError, UploadName, Uploads, WriteAheadLog,
};
use sojourn_protocol::{
    api::UploadState,
    digest::{BlobRef, Digest},
    ids::LeaseId,
};
use std::{
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

const NAME: UploadName = UploadName::Lease(LeaseId(7));

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}

fn put(
    uploads: &Uploads,
    declared: BlobRef,
    offset: u64,
    encoding: Encoding,
    body: &[u8],
) -> Result<UploadState, UploadError> {
    let mut upload = uploads.begin(NAME, declared, offset, encoding)?;
    upload.write(body)?;
    upload.finish()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_upload_is_resumed_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let declared = blob(b"hello world");
    let uploads = Uploads::open(folder.path()).unwrap();
    assert_eq!(uploads.state(NAME), None);
    let state = put(&uploads, declared, 0, Encoding::Identity, b"hello").unwrap();
    assert_eq!(state, UploadState { offset: 5, complete: false });
    assert!(uploads.complete(NAME, declared).is_err());
    let refused = put(&uploads, declared, 0, Encoding::Identity, b"hello").unwrap_err();
    assert!(matches!(refused, UploadError::WrongOffset { held: 5, given: 0 }), "{refused}");

    let uploads = Uploads::open(folder.path()).unwrap();
    assert_eq!(uploads.state(NAME), Some((declared, UploadState { offset: 5, complete: false })));
    let refused = put(&uploads, declared, 6, Encoding::Identity, b"world").unwrap_err();
    assert!(matches!(refused, UploadError::WrongOffset { held: 5, given: 6 }), "{refused}");
    let state = put(&uploads, declared, 5, Encoding::Identity, b" world").unwrap();
    assert_eq!(state, UploadState { offset: 11, complete: true });

    let uploads = Uploads::open(folder.path()).unwrap();
    assert_eq!(uploads.read(NAME, declared).unwrap().bytes(), &b"hello world"[..]);
    assert!(matches!(
        uploads.read(NAME, blob(b"other")),
        Err(UploadError::NotComplete { name: NAME, .. })
    ));
    // Asking again where it stands changes nothing.
    assert_eq!(put(&uploads, declared, 11, Encoding::Identity, b"").unwrap(), state);
    uploads.remove(NAME).unwrap();
    uploads.remove(NAME).unwrap();
    assert_eq!(uploads.state(NAME), None);
    assert!(files(folder.path()).is_empty());
}

#[test]
fn an_empty_upload_can_be_declared() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    let state = put(&uploads, blob(b""), 0, Encoding::Identity, b"").unwrap();
    assert_eq!(state, UploadState { offset: 0, complete: true });
}

#[test]
fn wrong_or_too_many_bytes_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    let declared = blob(b"right");
    let refused = put(&uploads, declared, 0, Encoding::Identity, b"wrong").unwrap_err();
    assert!(
        matches!(refused, UploadError::DigestMismatch { found, .. } if found == Digest::of(b"wrong")),
        "{refused}"
    );
    assert!(files(folder.path()).is_empty());
    let refused = put(&uploads, declared, 0, Encoding::Identity, b"right!").unwrap_err();
    assert!(matches!(refused, UploadError::TooLarge { declared: 5 }), "{refused}");
    assert!(files(folder.path()).is_empty());
    assert!(put(&uploads, declared, 0, Encoding::Identity, b"right").unwrap().complete);
}

#[test]
fn another_declaration_restarts_the_upload() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    put(&uploads, blob(b"first"), 0, Encoding::Identity, b"fir").unwrap();
    let refused = put(&uploads, blob(b"second"), 3, Encoding::Identity, b"ond").unwrap_err();
    assert!(matches!(refused, UploadError::WrongOffset { held: 0, given: 3 }), "{refused}");
    assert!(put(&uploads, blob(b"second"), 0, Encoding::Identity, b"second").unwrap().complete);
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn zstd_is_decoded_in_pieces_and_resumed_by_decoded_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    let bytes: Vec<u8> = (0..1_000_000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
    let declared = blob(&bytes);
    let packed = zstd::bulk::compress(&bytes, 1).unwrap();

    // A body that is cut off keeps what could be decoded.
    let half = put(&uploads, declared, 0, Encoding::Zstd, &packed[..packed.len() / 2]).unwrap();
    assert!(!half.complete && half.offset > 0, "{half:?}");
    let rest = &bytes[usize::try_from(half.offset).unwrap()..];
    let packed_rest = zstd::bulk::compress(rest, 1).unwrap();
    let mut upload = uploads.begin(NAME, declared, half.offset, Encoding::Zstd).unwrap();
    for piece in packed_rest.chunks(1000) {
        upload.write(piece).unwrap();
    }
    assert!(upload.finish().unwrap().complete);
    assert_eq!(uploads.read(NAME, declared).unwrap().bytes(), &bytes);
}

#[test]
fn a_zstd_bomb_and_garbage_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap();
    assert!(bomb.len() < 16 << 10);
    let refused = put(&uploads, blob(&[0; 1000]), 0, Encoding::Zstd, &bomb).unwrap_err();
    assert!(matches!(refused, UploadError::TooLarge { declared: 1000 }), "{refused}");
    assert!(files(folder.path()).is_empty());
    let refused = put(&uploads, blob(b"x"), 0, Encoding::Zstd, b"not zstd at all").unwrap_err();
    assert!(matches!(refused, UploadError::Undecodable(_)), "{refused}");
    // Nor may a body choose how much memory decoding it takes.
    let mut wide = zstd::Encoder::new(Vec::new(), 1).unwrap();
    wide.window_log(27).unwrap();
    wide.write_all(b"x").unwrap();
    let wide = wide.finish().unwrap();
    let refused = put(&uploads, blob(b"x"), 0, Encoding::Zstd, &wide).unwrap_err();
    assert!(matches!(refused, UploadError::Undecodable(_)), "{refused}");
}

#[test]
fn an_upload_that_is_begun_anew_while_it_is_removed_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    let bytes = vec![7; 300_000];
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            for _ in 0..2_000 {
                uploads.remove(NAME).unwrap();
            }
        });
        while !remover.is_finished() {
            let ended = put(&uploads, blob(&bytes), 0, Encoding::Identity, &bytes);
            // Removed under it, or still there from the turn before.
            let expected = match &ended {
                Ok(state) => state.complete || state.offset == 0,
                Err(error) => matches!(
                    error,
                    UploadError::TakenOver(_) | UploadError::WrongOffset { held: 300_000, .. }
                ),
            };
            assert!(expected, "{ended:?}");
        }
    });
    uploads.remove(NAME).unwrap();
    assert!(put(&uploads, blob(&bytes), 0, Encoding::Identity, &bytes).unwrap().complete);
    assert_eq!(uploads.read(NAME, blob(&bytes)).unwrap().bytes(), &bytes);
}

#[test]
fn the_later_of_two_concurrent_uploads_continues_and_the_earlier_fails() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    let declared = blob(b"twice");
    let mut first = uploads.begin(NAME, declared, 0, Encoding::Identity).unwrap();
    first.write(b"tw").unwrap();
    let mut second = uploads.begin(NAME, declared, 2, Encoding::Identity).unwrap();
    assert!(matches!(first.write(b"ice"), Err(UploadError::TakenOver(NAME))));
    second.write(b"ice").unwrap();
    assert!(matches!(first.finish(), Err(UploadError::TakenOver(NAME))));
    assert!(second.finish().unwrap().complete);

    let removed = uploads.begin(NAME, blob(b"gone"), 0, Encoding::Identity).unwrap();
    uploads.remove(NAME).unwrap();
    assert!(matches!(removed.finish(), Err(UploadError::TakenOver(NAME))));
}

#[test]
fn a_full_disk_keeps_all_stored_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(FullDisk::with_left(8));
    let uploads = Uploads::with_disk(folder.path(), disk.clone()).unwrap();
    let declared = blob(b"0123456789");
    let mut upload = uploads.begin(NAME, declared, 0, Encoding::Identity).unwrap();
    upload.write(b"01234").unwrap();
    let refused = upload.write(b"56789").unwrap_err();
    assert!(matches!(refused, UploadError::Full), "{refused}");
    // The three bytes that fitted don't count, on disk neither.
    assert_eq!(uploads.state(NAME).unwrap().1.offset, 5);
    let again = Uploads::open(folder.path()).unwrap();
    assert_eq!(again.state(NAME).unwrap().1, UploadState { offset: 5, complete: false });

    disk.make_room(100);
    assert!(put(&uploads, declared, 5, Encoding::Identity, b"56789").unwrap().complete);
    assert_eq!(uploads.read(NAME, declared).unwrap().bytes(), &b"0123456789"[..]);
}

#[test]
fn files_that_others_changed_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    let declared = blob(b"whole");
    put(&uploads, declared, 0, Encoding::Identity, b"whole").unwrap();
    let path = uploads.complete(NAME, declared).unwrap();
    std::fs::write(&path, b"whol!").unwrap();
    assert!(matches!(uploads.read(NAME, declared), Err(UploadError::DigestMismatch { .. })));

    // Truncated: not complete any more, and it goes on from there.
    std::fs::write(&path, b"who").unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    assert!(uploads.complete(NAME, declared).is_err());
    assert!(put(&uploads, declared, 3, Encoding::Identity, b"le").unwrap().complete);

    // All bytes came, but a crash kept the file from its final name.
    let path = uploads.complete(NAME, declared).unwrap();
    std::fs::rename(&path, path.with_extension("part")).unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    assert!(!uploads.state(NAME).unwrap().1.complete);
    assert!(put(&uploads, declared, 5, Encoding::Identity, b"").unwrap().complete);
}

#[test]
fn old_uploads_are_swept_as_the_caller_says() {
    let folder = tempfile::tempdir().unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    put(&uploads, blob(b"partial"), 0, Encoding::Identity, b"part").unwrap();
    let done = UploadName::Blob(Digest::of(b"done"));
    let kept = UploadName::Lease(LeaseId(77));
    for name in [done, kept] {
        let mut upload = uploads.begin(name, blob(b"done"), 0, Encoding::Identity).unwrap();
        upload.write(b"done").unwrap();
        upload.finish().unwrap();
    }
    let week = Duration::from_secs(7 * 24 * 3600);
    let keep = |name: UploadName, state: UploadState| {
        assert_eq!(state.complete, name != NAME);
        (name != kept).then_some(week)
    };
    assert_eq!(uploads.sweep(Instant::now(), keep).unwrap(), 0);
    assert_eq!(uploads.sweep(Instant::now() + 2 * week, keep).unwrap(), 2);
    assert_eq!(uploads.state(NAME), None);
    assert_eq!(uploads.state(done), None);
    assert!(uploads.complete(kept, blob(b"done")).is_ok());
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_put_replaces_a_partial_upload() {
    let folder = tempfile::tempdir().unwrap();
    let declared = blob(b"hello world");
    let uploads = Uploads::open(folder.path()).unwrap();
    put(&uploads, declared, 0, Encoding::Identity, b"hello").unwrap();
    let other = uploads.put(NAME, declared, b"hello earth").unwrap_err();
    assert!(matches!(other, UploadError::DigestMismatch { .. }), "{other}");
    uploads.put(NAME, declared, b"hello world").unwrap();
    uploads.put(NAME, declared, b"hello world").unwrap();
    let short = uploads.put(NAME, blob(b"something else"), b"some").unwrap_err();
    assert!(matches!(short, UploadError::NotComplete { .. }), "{short}");
    uploads.put(NAME, declared, b"hello world").unwrap();
    let uploads = Uploads::open(folder.path()).unwrap();
    assert_eq!(uploads.read(NAME, declared).unwrap().bytes(), &b"hello world"[..]);
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_body_that_is_taken_whole_ends_as_one_in_pieces() {
    let (hello, large) = (b"hello".to_vec(), vec![7; 200_000]);
    let cases: [(&[u8], u64, Encoding, &[u8]); 9] = [
        (&hello, 0, Encoding::Identity, b"hello"),
        (&hello, 0, Encoding::Identity, b"hell"),
        (&hello, 0, Encoding::Identity, b"hello!"),
        (&hello, 0, Encoding::Identity, b"hallo"),
        (&hello, 2, Encoding::Identity, b"llo"),
        (&hello, 0, Encoding::Identity, b""),
        (&hello, 0, Encoding::Zstd, &zstd::bulk::compress(b"hello", 1).unwrap()),
        (b"", 0, Encoding::Identity, b""),
        (&large, 0, Encoding::Identity, &large),
    ];
    // With nothing, the begin of it, all of it, or something else there before.
    for before in [None, Some(0), Some(2), Some(5), Some(20)] {
        for (content, offset, encoding, body) in cases {
            let case = format!("{before:?}, {} bytes at {offset}, {encoding:?}", body.len());
            let (plain, logged) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let log = WriteAheadLog::open(logged.path()).unwrap();
            let spool = logged.path().join("uploads");
            let uploads = [
                (plain.path().to_owned(), Uploads::open(plain.path()).unwrap()),
                (spool.clone(), Uploads::with_log(&spool, Arc::new(RealDisk), log).unwrap()),
            ];
            let [(one, two), (three, four)] = uploads.map(|(folder, uploads)| {
                let mut earlier = before.map(|held| {
                    let other = [1; 20];
                    let content = if held > 5 { &other[..] } else { content };
                    let bytes = &content[..held.min(content.len())];
                    put(&uploads, blob(content), 0, Encoding::Identity, bytes).unwrap();
                    let held = bytes.len() as u64;
                    uploads.begin(NAME, blob(content), held, Encoding::Identity).unwrap()
                });
                let declared = blob(content);
                let ended = match folder == spool {
                    true => uploads.receive(NAME, declared, offset, encoding, body),
                    false => put(&uploads, declared, offset, encoding, body),
                };
                let is_taken_over = earlier.as_mut().is_none_or(|earlier| {
                    matches!(earlier.write(b"x"), Err(UploadError::TakenOver(NAME)))
                });
                assert!(is_taken_over, "{case}");
                let after = format!("{ended:?}, {:?}", uploads.state(NAME));
                if ended.as_ref().is_ok_and(|state| state.complete) {
                    assert_eq!(uploads.read(NAME, declared).unwrap().bytes(), content, "{case}");
                    let file = uploads.complete(NAME, declared).unwrap();
                    assert_eq!(std::fs::read(file).unwrap(), content, "{case}");
                }
                let mut left = files(&folder);
                left.sort();
                uploads.remove(NAME).unwrap();
                assert!(files(&folder).is_empty(), "{case}");
                (after, left)
            });
            assert_eq!((one, two), (three, four), "{case}");
        }
    }
}
