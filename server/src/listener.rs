//! Accepts connections: each is counted, has its TLS handshake within a time, and gets deadlines before HTTP is spoken over it.

use crate::{
    http::{self, AppState},
    network::AddressKey,
    network::{Admission, GuardedStream, HEAD_TIMEOUT, Network, TLS_HANDSHAKE_TIMEOUT},
};
use actix_http::{HttpService, Protocol};
use actix_service::{ServiceFactoryExt as _, map_config};
use actix_web::{
    App,
    dev::{AppConfig, Server, fn_service},
    middleware::from_fn,
    web,
};
use rustls::ServerConfig;
use std::{
    io,
    net::{SocketAddr, TcpListener},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Connections of one worker. [`Network`] counts them, and answers those beyond its limits: a worker that takes no more would let
/// health checks wait.
const MAX_WORKER_CONNECTIONS: usize = 1 << 20;
/// Seconds that answers in progress have when the server stops.
const SHUTDOWN_TIMEOUT_S: u64 = 2;
/// The only version of HTTP that is spoken.
const ALPN: &[u8] = b"http/1.1";

/// Encrypted or not.
enum Wire {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Starts to accept connections.
pub(crate) fn serve(
    app: &web::Data<AppState>,
    listener: TcpListener,
    tls: Option<ServerConfig>,
) -> io::Result<Server> {
    let network = Arc::clone(&app.network);
    let acceptor = tls.map(|mut tls| {
        tls.alpn_protocols = vec![ALPN.to_vec()];
        TlsAcceptor::from(Arc::new(tls))
    });
    let builder = Server::build()
        .disable_signals()
        .max_concurrent_connections(MAX_WORKER_CONNECTIONS)
        .shutdown_timeout(SHUTDOWN_TIMEOUT_S);
    let shutdown = builder.graceful_shutdown_signal();
    let app = app.clone();
    let builder = builder.listen("http", listener, move || {
        let (network, acceptor) = (Arc::clone(&network), acceptor.clone());
        let shutdown = shutdown.clone();
        let service = App::new()
            .app_data(app.clone())
            .wrap(from_fn(http::authenticate))
            .wrap(from_fn(http::relative_links))
            .wrap(from_fn(http::protocol))
            .wrap(from_fn(http::guard))
            .wrap(from_fn(http::time_requests))
            .wrap(from_fn(http::trace))
            .configure(http::routes);
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let shutdown = shutdown.clone();
                async move { shutdown.notified().await }
            })
            // The stream's own deadline comes first, for each head, and is counted.
            .client_request_timeout(2 * HEAD_TIMEOUT)
            // The server must notice a host that hangs up while it waits for work.
            .h1_allow_half_closed(false)
            .on_connect_ext(|stream: &GuardedStream<Wire>, data| {
                data.insert(Rc::clone(stream.connection()));
            })
            .finish(map_config(service, |()| AppConfig::default()));
        fn_service(move |stream: TcpStream| {
            let (network, acceptor) = (Arc::clone(&network), acceptor.clone());
            async move {
                let (stream, peer) = admit(&network, acceptor, stream).await?;
                Ok::<_, actix_http::error::DispatchError>((stream, Protocol::Http1, Some(peer)))
            }
        })
        .and_then(http)
    })?;
    Ok(builder.run())
}

/// A connection's place, and its encryption.
async fn admit(
    network: &Network,
    acceptor: Option<TlsAcceptor>,
    stream: TcpStream,
) -> io::Result<(GuardedStream<Wire>, SocketAddr)> {
    let peer = stream.peer_addr()?;
    let address = AddressKey::of(peer.ip());
    let Some(permit) = network.connections().admit(address) else {
        return Err(io::ErrorKind::ConnectionRefused.into());
    };
    if let Admission::Refusal(reason) = permit.admission() {
        network.log_refused_connection(address, reason);
    }
    // Without it the second write of an answer waits up to 40 ms for the first one's acknowledgement.
    stream.set_nodelay(true)?;
    let wire = match acceptor {
        None => Wire::Clear(stream),
        Some(acceptor) => {
            let handshake = timeout(TLS_HANDSHAKE_TIMEOUT, acceptor.accept(stream));
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time");
            Wire::Tls(Box::new(handshake.await.map_err(late)??))
        }
    };
    Ok((GuardedStream::new(wire, permit, Arc::clone(network.traffic())), peer))
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
