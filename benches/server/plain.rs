//! The anchor: a server that decides nothing. Each request's body is appended to a file; whoever waits is
//! answered when a group has been synced. It groups as much as comes while the last sync runs.

use actix_web::{App, HttpServer, web};
use std::{
    fs::File,
    io::Write as _,
    path::Path,
    sync::mpsc::{Receiver, Sender},
};
use tokio::sync::oneshot;

/// Makes this program be that server, in a folder.
pub(crate) const FLAG: &str = "--plain";

/// About what a lease weighs on the wire.
const ANSWER: usize = 900;

type Waiting = (web::Bytes, oneshot::Sender<()>);

/// Serves until it is killed.
pub(crate) fn serve(folder: &Path) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut file = File::create(folder.join("log")).unwrap();
    std::thread::spawn(move || write(&mut file, &receiver));
    actix_web::rt::System::new().block_on(async {
        let server = HttpServer::new(move || {
            let route = web::to(request);
            App::new().app_data(web::Data::new(sender.clone())).default_service(route)
        })
        .bind("127.0.0.1:0")
        .unwrap();
        println!("serving at http://{}", server.addrs()[0]);
        server.run().await.unwrap();
    });
}

async fn request(sender: web::Data<Sender<Waiting>>, body: web::Bytes) -> String {
    let (done, synced) = oneshot::channel();
    sender.send((body, done)).unwrap();
    synced.await.unwrap();
    "x".repeat(ANSWER)
}

fn write(file: &mut File, requests: &Receiver<Waiting>) {
    while let Ok(first) = requests.recv() {
        let group: Vec<Waiting> = std::iter::once(first).chain(requests.try_iter()).collect();
        for (body, _) in &group {
            file.write_all(body).unwrap();
        }
        file.sync_data().unwrap();
        for (_, done) in group {
            let _ = done.send(());
        }
    }
}
