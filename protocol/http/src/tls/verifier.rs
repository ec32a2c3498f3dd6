//! Checks a server's certificate against authorities of one's own.

use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use std::sync::Arc;

/// The usual check of chains, and one thing more: a certificate that signed itself as an authority's,
/// which is what `openssl req -x509` makes, is believed where exactly it was named as trusted. Its time,
/// its name and its key are checked like any other's.
#[derive(Debug)]
pub(super) struct Verifier {
    chains: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub(super) fn new(
        chains: Arc<WebPkiServerVerifier>,
        trusted: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self { chains, trusted }
    }
}

/// Is all that was found wrong that an authority's certificate is used by a server? Times are looked at
/// before that (RFC 5280, section 6.1.3 a), the name isn't.
fn is_authority_as_server(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.chains.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if is_authority_as_server(&error) && self.trusted.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
    use rustls::{RootCertStore, crypto::ring};
    use std::time::Duration;

    /// A certificate as `openssl req -x509` makes it for `localhost`.
    fn self_signed(last_year: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = date_time_ymd(last_year, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn check(
        trusted: &CertificateDer<'static>,
        shown: &CertificateDer<'_>,
        name: &'static str,
    ) -> Result<ServerCertVerified, Error> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = Verifier::new(chains.build().unwrap(), vec![trusted.clone()]);
        let (name, now) = (ServerName::try_from(name).unwrap(), Duration::from_secs(1_600_000_000));
        verifier.verify_server_cert(shown, &[], &name, &[], UnixTime::since_unix_epoch(now))
    }

    #[test]
    fn a_certificate_that_signed_itself_is_believed_where_it_is_named_and_right() {
        let (one, other) = (self_signed(4000), self_signed(4000));
        check(&one, &one, "localhost").unwrap();
        // Another of the same name; another name; and one whose time is over.
        let refused = |trusted, shown, name| match check(trusted, shown, name).unwrap_err() {
            Error::InvalidCertificate(error) => error,
            other => panic!("{other}"),
        };
        assert!(is_authority_as_server(&refused(&one, &other, "localhost").into()));
        let wrong_name = refused(&one, &one, "example.org");
        assert!(
            matches!(wrong_name, CertificateError::NotValidForNameContext { .. }),
            "{wrong_name}"
        );
        let old = self_signed(2001);
        let expired = refused(&old, &old, "localhost");
        assert!(matches!(expired, CertificateError::ExpiredContext { .. }), "{expired}");
    }
}
