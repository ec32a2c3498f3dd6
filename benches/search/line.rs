//! A slow line between a client and its server: what it carries in each direction in a second is bounded,
//! whatever the client makes of it.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// Bytes carried at once.
const PIECE: usize = 16 << 10;

/// One direction of the line.
struct Way {
    rate: f64,
    /// When all that was carried will have passed.
    free_at: Mutex<Instant>,
}

impl Way {
    fn new(rate: f64) -> Arc<Self> {
        Arc::new(Self { rate, free_at: Mutex::new(Instant::now()) })
    }

    /// Waits as long as so many bytes take, after all before them.
    fn carry(&self, bytes: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a few thousand bytes")]
        let takes = Duration::from_secs_f64(bytes as f64 / self.rate);
        let until = {
            let mut free_at = self.free_at.lock().unwrap();
            *free_at = (*free_at).max(Instant::now()) + takes;
            *free_at
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

/// Starts a line to `server` of so many bytes a second each way, and gives its own end.
pub(crate) fn line(server: SocketAddr, rate: f64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ways = [Way::new(rate), Way::new(rate)];
    thread::spawn(move || {
        for near in listener.incoming() {
            let (Ok(near), Ok(far)) = (near, TcpStream::connect(server)) else { continue };
            let [up, down] = ways.clone();
            let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { continue };
            thread::spawn(move || carry(near, far, &up));
            thread::spawn(move || carry(far_too, near_too, &down));
        }
    });
    address
}

/// Carries until one side closes.
fn carry(mut from: TcpStream, mut to: TcpStream, way: &Way) {
    let mut buffer = vec![0; PIECE];
    let mut all = || -> io::Result<()> {
        to.set_nodelay(true)?;
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                return to.shutdown(std::net::Shutdown::Write);
            }
            way.carry(read);
            to.write_all(&buffer[..read])?;
        }
    };
    // However it ends, the connection is over.
    let _ = all();
}
