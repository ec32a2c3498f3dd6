//! The state that was seen, and notifications that are still to be delivered: a file of the data folder. The file is written
//! before anything is sent, so that a restart neither loses a notification nor makes another of it.

use super::notice::{Known, Notification};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sojourn_files::{Access, Durability, if_exists};
use sojourn_protocol::time::UnixMillis;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::PathBuf,
};
use tokio::sync::watch;

/// Deliveries that wait for one address at most: beyond them the oldest is given up.
const MAX_WAITING: usize = 1_000;

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Book {
    /// The journal's position of the last look.
    pub(super) position: u64,
    /// None before the first look.
    pub(super) known: Option<Known>,
    /// By the name of the webhook, in the order in which they were noticed.
    waiting: BTreeMap<String, Vec<Delivery>>,
}

/// A notification on its way to an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Delivery {
    pub(super) id: String,
    pub(super) body: String,
    pub(super) noticed_at: UnixMillis,
    /// Attempts that have failed.
    pub(super) attempts: u32,
    /// No attempt comes before.
    pub(super) next_at: UnixMillis,
}

/// The book, and its file.
#[derive(Debug)]
pub(super) struct BookFile {
    path: PathBuf,
    book: Mutex<Book>,
    /// Says that there may be more to deliver.
    more: watch::Sender<()>,
}

impl BookFile {
    /// The file's book, of these webhooks. One that isn't there yet is empty.
    pub(super) fn open(path: PathBuf, names: &BTreeSet<String>) -> io::Result<Self> {
        let mut book = match if_exists(fs::read(&path))? {
            Some(text) => serde_json::from_slice(&text).map_err(io::Error::other)?,
            None => Book::default(),
        };
        book.waiting.retain(|name, waiting| {
            let is_there = names.contains(name);
            if !is_there && !waiting.is_empty() {
                tracing::warn!(
                    webhook = name,
                    given_up = waiting.len(),
                    "a webhook is gone, with what waited for it"
                );
            }
            is_there
        });
        Ok(Self { path, book: Mutex::new(book), more: watch::Sender::new(()) })
    }

    /// Hears when there may be more to deliver.
    pub(super) fn listen(&self) -> watch::Receiver<()> {
        self.more.subscribe()
    }

    /// The state that was seen at the last look; `None` before the first.
    pub(super) fn known(&self) -> Option<Known> {
        self.book.lock().known.clone()
    }

    /// Takes the result of a look: each notification goes to the webhooks that are named with it. Blocks.
    pub(super) fn take(
        &self,
        known: Known,
        position: u64,
        noticed_at: UnixMillis,
        found: &[(Notification, Vec<String>)],
    ) {
        let mut book = self.book.lock();
        (book.known, book.position) = (Some(known), position);
        for (notification, names) in found {
            for name in names {
                book.add(name, notification, noticed_at);
            }
        }
        self.save(&book);
        drop(book);
        self.more.send_replace(());
    }

    /// The delivery to this address whose turn it is next.
    pub(super) fn next(&self, name: &str) -> Option<Delivery> {
        let book = self.book.lock();
        book.waiting.get(name)?.iter().min_by_key(|delivery| delivery.next_at).cloned()
    }

    /// A delivery has ended: it came there, or is given up. Blocks.
    pub(super) fn end(&self, name: &str, id: &str) {
        self.change(name, |waiting| waiting.retain(|delivery| delivery.id != id));
    }

    /// An attempt has failed. Blocks.
    pub(super) fn put_off(&self, name: &str, id: &str, next_at: UnixMillis) {
        self.change(name, |waiting| {
            for delivery in waiting.iter_mut().filter(|delivery| delivery.id == id) {
                delivery.attempts = delivery.attempts.saturating_add(1);
                delivery.next_at = next_at;
            }
        });
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<Delivery>)) {
        let mut book = self.book.lock();
        if let Some(waiting) = book.waiting.get_mut(name) {
            change(waiting);
            self.save(&book);
        }
    }

    /// Where it can't be written, what is in memory counts until the server ends.
    fn save(&self, book: &Book) {
        let text = serde_json::to_vec(book).map_err(io::Error::other);
        let written = text.and_then(|text| {
            sojourn_files::write(&self.path, &text, Access::Owner, Durability::Synced)
        });
        if let Err(error) = written {
            tracing::warn!(file = %self.path.display(), %error, "deliveries of webhooks can't be written");
        }
    }
}

impl Book {
    fn add(&mut self, name: &str, notification: &Notification, noticed_at: UnixMillis) {
        let Notification { id, body, .. } = notification.clone();
        let waiting = self.waiting.entry(name.to_owned()).or_default();
        if waiting.iter().any(|delivery| delivery.id == id) {
            return;
        }
        if waiting.len() >= MAX_WAITING {
            let given_up = waiting.remove(0);
            tracing::error!(
                webhook = name,
                id = given_up.id,
                "too many deliveries wait: the oldest is given up"
            );
        }
        waiting.push(Delivery { id, body, noticed_at, attempts: 0, next_at: noticed_at });
    }
}

#[cfg(test)]
mod tests {
    use super::{super::notice::Kind, *};

    fn names() -> BTreeSet<String> {
        ["chat", "log"].map(str::to_owned).into()
    }

    fn notification(id: usize) -> Notification {
        Notification { kind: Kind::JobDone, id: id.to_string(), body: format!("{{\"id\":{id}}}") }
    }

    fn take(book: &BookFile, ids: std::ops::Range<usize>, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let found: Vec<_> = ids.map(|id| (notification(id), names.clone())).collect();
        book.take(Known::default(), 7, UnixMillis(1_000), &found);
    }

    #[test]
    fn what_waits_is_there_after_a_restart_and_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("webhooks");
        let open = || BookFile::open(path.clone(), &names()).unwrap();
        let book = open();
        assert_eq!((book.known(), book.next("chat")), (None, None));
        let heard = book.listen();
        take(&book, 0..2, &["chat", "log"]);
        take(&book, 1..2, &["chat"]);
        assert!(heard.has_changed().unwrap());
        book.put_off("chat", "0", UnixMillis(5_000));
        book.end("log", "0");
        for book in [book, open()] {
            assert_eq!(book.known(), Some(Known::default()));
            let (chat, log) = (book.next("chat").unwrap(), book.next("log").unwrap());
            assert_eq!((chat.id.as_str(), log.id.as_str()), ("1", "1"), "the first is put off");
        }
        let book = open();
        book.end("chat", "1");
        let last = book.next("chat").unwrap();
        assert_eq!((last.id.as_str(), last.attempts, last.next_at), ("0", 1, UnixMillis(5_000)));
        book.end("chat", "0");
        assert_eq!(book.next("chat"), None);
    }

    #[test]
    fn a_webhook_that_is_gone_takes_what_waited_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("webhooks");
        take(&BookFile::open(path.clone(), &names()).unwrap(), 0..1, &["chat", "log"]);
        let book = BookFile::open(path.clone(), &["log".to_owned()].into()).unwrap();
        assert!(book.next("chat").is_none() && book.next("log").is_some());
        fs::write(&path, "damaged").unwrap();
        BookFile::open(path, &names()).unwrap_err();
    }

    #[test]
    fn an_address_that_is_never_there_keeps_the_last_deliveries() {
        let folder = tempfile::tempdir().unwrap();
        let book = BookFile::open(folder.path().join("webhooks"), &names()).unwrap();
        take(&book, 0..MAX_WAITING + 1, &["chat"]);
        assert_eq!(book.next("chat").unwrap().id, "1");
    }
}
