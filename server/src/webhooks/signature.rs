//! The signature of a delivery, as Standard Webhooks has it: HMAC-SHA256 over its id, its time and its body.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;

/// How a secret begins, so that people and scanners know it.
const PREFIX: &str = "whsec_";
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The secret that sender and receiver share.
#[derive(Clone)]
pub(super) struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// `whsec_` and 24 to 64 bytes in base64, with white space around.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.trim().strip_prefix(PREFIX)?).ok()?;
        BYTES.contains(&bytes.len()).then_some(Self(bytes))
    }

    /// The headers of an attempt. `seconds`: its time, since 1970.
    pub(super) fn headers(
        &self,
        id: &str,
        seconds: u64,
        body: &str,
    ) -> [(&'static str, String); 3] {
        [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", seconds.to_string()),
            ("webhook-signature", format!("v1,{}", self.sign(id, seconds, body))),
        ]
    }

    fn sign(&self, id: &str, seconds: u64, body: &str) -> String {
        // Keys of any length are taken.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(format!("{id}.{seconds}.{body}").as_bytes());
        STANDARD.encode(mac.finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_has_its_signature() {
        // The example of the libraries at github.com/standard-webhooks/standard-webhooks, computed anew with Python's `hmac`.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let [_, time, signature] = secret.headers(id, 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(time.1, "1614265330");
        assert_eq!(signature.1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_has_its_prefix_and_its_length_and_is_never_shown() {
        let of = |bytes: usize| format!("{PREFIX}{}\n", STANDARD.encode(vec![7; bytes]));
        assert!(Secret::parse(&of(23)).is_none() && Secret::parse(&of(65)).is_none());
        assert!(
            Secret::parse(&STANDARD.encode([7; 32])).is_none()
                && Secret::parse("whsec_?").is_none()
        );
        let secret = Secret::parse(&of(32)).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
