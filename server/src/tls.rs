//! The server's certificate and key: read from PEM files, checked, and read again when they change.

use parking_lot::Mutex;
use rustls::{
    ServerConfig,
    crypto::ring::{default_provider, sign::any_supported_type},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use std::{
    fmt, fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use webpki::{EndEntityCert, KeyUsage};

/// How often the files are checked for a renewal while connections are made.
const DEFAULT_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Where certificate and key are.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// PEM: the server's certificate, then those that lead to its authority's.
    pub certificate: PathBuf,
    /// PEM: the certificate's private key, not encrypted.
    pub key: PathBuf,
    /// How often they are looked at for changes.
    pub look_every: Duration,
}

/// Why TLS can't be served with these files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum TlsError {
    #[error("can't read `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("`{}` holds no {what}: a section that begins with `-----BEGIN {label}` is wanted", path.display())]
    Empty { path: PathBuf, what: &'static str, label: &'static str },
    #[error("`{}`, line {line}: the {what} can't be understood ({reason})", path.display())]
    Section { path: PathBuf, line: usize, what: &'static str, reason: String },
    /// The key can be read only with a passphrase.
    #[error(
        "`{}`, line {line}: the key is encrypted; write it without a passphrase: \
         `openssl pkey -in {} -out FILE`", path.display(), path.display()
    )]
    Encrypted { path: PathBuf, line: usize },
    #[error(
        "the key in `{}` doesn't belong to the first certificate in `{}`", key.display(),
        certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("TLS can't be set up")]
    SetUp(#[source] rustls::Error),
}

impl TlsFiles {
    /// These files, looked at every ten seconds.
    #[must_use]
    pub const fn new(certificate: PathBuf, key: PathBuf) -> Self {
        Self { certificate, key, look_every: DEFAULT_CHECK_INTERVAL }
    }

    fn read(&self) -> Result<Contents, TlsError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
        };
        Ok(Contents { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn parse(&self, contents: &Contents) -> Result<CertifiedKey, TlsError> {
        let certificates = Pem { path: &self.certificate, bytes: &contents.certificate };
        let chain: Vec<CertificateDer<'static>> = certificates.sections(CERTIFICATE)?;
        for (index, certificate) in chain.iter().enumerate() {
            EndEntityCert::try_from(certificate)
                .map_err(|error| certificates.refuse(CERTIFICATE, index, &error))?;
        }
        let keys = Pem { path: &self.key, bytes: &contents.key };
        // Both of the ways in which an encrypted key says so.
        if let Some(line) = keys.lines().position(|line| line.contains("ENCRYPTED")) {
            return Err(TlsError::Encrypted { path: self.key.clone(), line: line + 1 });
        }
        let key: PrivateKeyDer<'static> =
            keys.sections(KEY)?.into_iter().next().ok_or_else(|| keys.without(KEY))?;
        let key = any_supported_type(&key).map_err(|error| keys.refuse(KEY, 0, &error))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) => Ok(certified),
            Err(_) => Err(TlsError::Mismatch {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
            }),
        }
    }
}

/// A kind of PEM section: its name, and the end of its first line.
#[derive(Debug, Clone, Copy)]
struct Kind {
    what: &'static str,
    label: &'static str,
}

const CERTIFICATE: Kind = Kind { what: "certificate", label: "CERTIFICATE-----" };
/// `RSA PRIVATE KEY` and `EC PRIVATE KEY` too.
const KEY: Kind = Kind { what: "private key", label: "PRIVATE KEY-----" };

/// A file of PEM sections.
struct Pem<'a> {
    path: &'a Path,
    bytes: &'a [u8],
}

impl Pem<'_> {
    /// At least one.
    fn sections<T: PemObject>(&self, kind: Kind) -> Result<Vec<T>, TlsError> {
        let sections = T::pem_slice_iter(self.bytes).enumerate();
        let read: Vec<T> = sections
            .map(|(index, read)| read.map_err(|error| self.refuse(kind, index, &error)))
            .collect::<Result<_, _>>()?;
        if read.is_empty() { Err(self.without(kind)) } else { Ok(read) }
    }

    fn without(&self, kind: Kind) -> TlsError {
        TlsError::Empty { path: self.path.to_owned(), what: kind.what, label: kind.label }
    }

    /// The contents of a section have no line numbers, so the error names the section's first line.
    fn refuse(&self, kind: Kind, index: usize, reason: &dyn fmt::Display) -> TlsError {
        let begins = |line: &str| line.starts_with("-----BEGIN ") && line.ends_with(kind.label);
        let mut lines = self.lines().enumerate().filter(|(_, line)| begins(line.trim_end()));
        let line = lines.nth(index).map_or(1, |(line, _)| line + 1);
        let (path, reason) = (self.path.to_owned(), reason.to_string());
        TlsError::Section { path, line, what: kind.what, reason }
    }

    fn lines(&self) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
        self.bytes.split(|byte| *byte == b'\n').map(String::from_utf8_lossy)
    }
}

/// The bytes of both files.
#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate that connections are shown.
pub(crate) struct Certificates {
    files: TlsFiles,
    served: Mutex<Served>,
}

struct Served {
    key: Arc<CertifiedKey>,
    /// The files as they were last read, valid or not.
    contents: Contents,
    looked: Instant,
}

impl fmt::Debug for Certificates {
    /// The files, not what is in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// Where they can't be read or served.
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let contents = files.read()?;
        let key = Arc::new(files.parse(&contents)?);
        warn_of_time(&files, &key);
        let served = Served { key, contents, looked: Instant::now() };
        Ok(Self { files, served: Mutex::new(served) })
    }

    /// The TLS settings: versions 1.2 and 1.3, no client certificates.
    ///
    /// # Errors
    /// Where the TLS library refuses.
    pub(crate) fn config(self: &Arc<Self>) -> Result<ServerConfig, TlsError> {
        let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(self) as _;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(TlsError::SetUp)?;
        Ok(config.with_no_client_auth().with_cert_resolver(resolver))
    }

    /// A name that the certificate has, for an address at which people find the server: `address` itself
    /// where it is in there; `None` where no name is of use.
    pub(crate) fn name(&self, address: IpAddr) -> Option<String> {
        let served = self.served.lock();
        let certificate = EndEntityCert::try_from(served.key.cert.first()?).ok()?;
        let by_address = ServerName::from(address);
        if certificate.verify_is_valid_for_subject_name(&by_address).is_ok() {
            return Some(by_address.to_str().into_owned());
        }
        certificate.valid_dns_names().find(|name| !name.contains('*')).map(str::to_owned)
    }

    /// The certificate's file, where it signed itself.
    pub(crate) fn own_authority(&self) -> Option<PathBuf> {
        let served = self.served.lock();
        let certificate = EndEntityCert::try_from(served.key.cert.first()?).ok()?;
        let file = &self.files.certificate;
        (certificate.issuer() == certificate.subject())
            .then(|| std::path::absolute(file).unwrap_or_else(|_| file.clone()))
    }

    /// The certificate to show, from files that were looked at not long ago.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut served = self.served.lock();
        if served.looked.elapsed() >= self.files.look_every {
            served.looked = Instant::now();
            if let Err(error) = self.look(&mut served) {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::error!(error, "the new certificate can't be used; the one before stays");
            }
        }
        Arc::clone(&served.key)
    }

    fn look(&self, served: &mut Served) -> Result<(), TlsError> {
        let contents = self.files.read()?;
        if contents == served.contents {
            return Ok(());
        }
        let parsed = self.files.parse(&contents);
        // Invalid files are logged once.
        served.contents = contents;
        served.key = Arc::new(parsed?);
        tracing::info!(file = %self.files.certificate.display(), "the certificate was renewed");
        warn_of_time(&self.files, &served.key);
        Ok(())
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Logs an error if every client will refuse the certificate because of its validity period.
fn warn_of_time(files: &TlsFiles, key: &CertifiedKey) {
    let check = || -> Result<(), webpki::Error> {
        let certificate = key.cert.first().ok_or(webpki::Error::BadDer)?;
        // Without trusted roots this fails in any case; the validity period is checked first.
        EndEntityCert::try_from(certificate)?
            .verify_for_usage(&[], &[], &[], UnixTime::now(), KeyUsage::server_auth(), None, None)
            .map(|_| ())
    };
    let file = files.certificate.display();
    match check() {
        Err(webpki::Error::CertExpired { .. }) => {
            tracing::error!(%file, "the certificate has expired: clients will refuse it");
        }
        Err(webpki::Error::CertNotValidYet { .. }) => {
            tracing::error!(%file, "the certificate isn't valid yet: clients will refuse it");
        }
        _ => {}
    }
}
