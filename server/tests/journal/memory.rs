//! The journal in memory, its faults, and the chain.

use crate::contract::{at, contract, records};
use sojourn_core::JournalPosition;
use sojourn_protocol::digest::Digest;
use sojourn_server::journal::{Fault, Journal, JournalError, MemoryJournal};

#[test]
fn memory_keeps_the_contract() {
    let journal = MemoryJournal::default();
    contract(|| Box::new(journal.clone()));
}

#[test]
fn injected_faults_write_as_much_as_they_say() {
    for (fault, left) in [(Fault::Fails, 0), (Fault::Torn, 2), (Fault::Unknown, 4)] {
        let mut journal = MemoryJournal::default();
        journal.inject(fault);
        assert!(matches!(journal.append(&records(1..=4)), Err(JournalError::Storage(_))));
        assert_eq!(journal.tail(), at(left));
        journal.append(&records(left + 1..=5)).unwrap();
        assert_eq!(journal.read(at(0), 9).unwrap(), records(1..=5));
    }
    let mut journal = MemoryJournal::default();
    journal.append(&records(1..=4)).unwrap();
    journal.alter(at(3), |payload| payload[0] ^= 1);
    let refused = journal.read(at(0), 9).unwrap_err();
    assert!(matches!(refused, JournalError::Corrupt { position: JournalPosition(3), .. }));
}

#[test]
fn a_chain_hash_covers_the_hash_before_position_and_payload() {
    use sojourn_server::journal::ChainHash;
    let zero = ChainHash::default();
    let one = zero.then(at(1), b"payload");
    assert_eq!(one, zero.then(at(1), b"payload"));
    assert_ne!(one, zero.then(at(2), b"payload"));
    assert_ne!(one, zero.then(at(1), b"payloae"));
    assert_ne!(one, one.then(at(1), b"payload"));
    assert_ne!(Digest(one.0), Digest::of(b"payload"));
}
