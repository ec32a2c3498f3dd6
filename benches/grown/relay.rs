//! A relay before a server that counts every byte of every connection.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    passed: Arc<AtomicU64>,
}

impl Relay {
    /// Starts one to a server.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let passed: Arc<AtomicU64> = Arc::default();
        let counter = Arc::clone(&passed);
        thread::spawn(move || {
            for near in listener.incoming() {
                let (Ok(near), Ok(far)) = (near, TcpStream::connect(server)) else { continue };
                let ways = [(near.try_clone(), far.try_clone()), (Ok(far), Ok(near))];
                for (from, to) in ways {
                    let (Ok(from), Ok(to), counter) = (from, to, Arc::clone(&counter)) else {
                        continue;
                    };
                    thread::spawn(move || pass(from, to, &counter));
                }
            }
        });
        Self { address, passed }
    }

    /// Bytes so far, in both directions.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

/// Until one side closes; however it ends, the connection is over.
fn pass(mut from: TcpStream, mut to: TcpStream, counter: &AtomicU64) {
    let _ = to.set_nodelay(true);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        counter.fetch_add(u64::try_from(count).unwrap(), Ordering::Relaxed);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
