//! The certificates that a user trusts instead of the system's.

use super::verifier::Verifier;
use rustls::{
    ClientConfig, RootCertStore,
    client::WebPkiServerVerifier,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Certificates of authorities, or of servers that signed their own: these are believed, and nobody else.
#[derive(Debug, Clone)]
pub struct Authorities {
    config: ClientConfig,
}

/// Why a file of authorities can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant's message says it")]
pub enum AuthoritiesError {
    #[error("can't read the certificates of authorities in `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("`{}` holds no certificate: a PEM file is wanted, with `-----BEGIN CERTIFICATE-----`", path.display())]
    Empty { path: PathBuf },
    #[error("certificate {number} of `{}` can't be read", path.display())]
    Certificate { path: PathBuf, number: usize, source: rustls::Error },
    #[error("TLS can't be set up with the certificates of `{}`", path.display())]
    SetUp { path: PathBuf, source: rustls::Error },
}

impl Authorities {
    /// Reads a PEM file of one or more certificates.
    ///
    /// # Errors
    /// Where it can't be read, or something in it is no certificate.
    pub fn read(path: &Path) -> Result<Self, AuthoritiesError> {
        let path = path.to_owned();
        let pem = match fs::read(&path) {
            Ok(pem) => pem,
            Err(source) => return Err(AuthoritiesError::File { path, source }),
        };
        let mut roots = RootCertStore::empty();
        let mut trusted = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let added = certificate
                .map_err(|error| rustls::Error::General(error.to_string()))
                .and_then(|certificate| roots.add(certificate.clone()).map(|()| certificate));
            match added {
                Ok(certificate) => trusted.push(certificate),
                Err(source) => {
                    let number = trusted.len() + 1;
                    return Err(AuthoritiesError::Certificate { path, number, source });
                }
            }
        }
        if trusted.is_empty() {
            return Err(AuthoritiesError::Empty { path });
        }
        match Self::config_of(roots, trusted) {
            Ok(config) => Ok(Self { config }),
            Err(source) => Err(AuthoritiesError::SetUp { path, source }),
        }
    }

    fn config_of(
        roots: RootCertStore,
        trusted: Vec<CertificateDer<'static>>,
    ) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let chains =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| rustls::Error::General(error.to_string()))?;
        let verifier = Arc::new(Verifier::new(chains, trusted));
        Ok(ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth())
    }

    /// For connections on which they decide.
    pub(crate) fn config(&self) -> ClientConfig {
        self.config.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_good_certificates_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let refused = || Authorities::read(&path).unwrap_err().to_string();
        assert!(refused().contains("can't read the certificates of authorities in `"));
        for none in ["", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
        {
            fs::write(&path, none).unwrap();
            assert!(refused().contains("ca.pem` holds no certificate: "), "{}", refused());
        }
        let good = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap().cert.pem();
        fs::write(&path, &good).unwrap();
        Authorities::read(&path).unwrap();
        for bad in ["AAAA", "?"] {
            let bad = format!("-----BEGIN CERTIFICATE-----\n{bad}\n-----END CERTIFICATE-----\n");
            fs::write(&path, format!("{good}{bad}")).unwrap();
            assert!(refused().contains("certificate 2 of `"), "{}", refused());
        }
    }
}
