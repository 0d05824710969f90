//! Secret with the CAs and the TLS key pair of an installation.
//!
//! `ca.crt` contains all trusted CAs: first the CA that signs, then the incoming CA if `incoming-ca.key` exists, then
//! previous CAs. Every state is one object, so that each write is atomic.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::authority::{Ca, Pair};
use crate::keys::{Incoming, Keys};

/// Annotation with the time since which every configuration has contained the incoming CA.
const CARRIED_SINCE: &str = "certs.lockstep.dev/carried-since";

/// Annotation with which a user requests a new CA. It is removed when the rotation starts.
const ROTATE: &str = "certs.lockstep.dev/rotate-ca";

const TRUSTED: &str = "ca.crt";
const SIGNING_KEY: &str = "ca.key";
const INCOMING_KEY: &str = "incoming-ca.key";
pub(crate) const CERTIFICATE: &str = "tls.crt";
pub(crate) const KEY: &str = "tls.key";

/// Reads the keys in a Secret. Returns `None` if it is incomplete.
pub(crate) fn read(secret: &Secret) -> Option<Keys> {
    let trusted = text(secret, TRUSTED)?;
    let mut trusted = certificates(&trusted)?.into_iter();
    let signing = Ca {
        certificate: trusted.next()?,
        key: text(secret, SIGNING_KEY)?,
    };
    let annotation = |name: &str| secret.metadata.annotations.as_ref()?.get(name);
    let incoming = match text(secret, INCOMING_KEY) {
        None => None,
        Some(key) => Some(Incoming {
            ca: Ca {
                certificate: trusted.next()?,
                key,
            },
            carried_since: annotation(CARRIED_SINCE)
                .and_then(|since| OffsetDateTime::parse(since, &Rfc3339).ok()),
        }),
    };
    Some(Keys {
        signing,
        incoming,
        outgoing: trusted.collect(),
        serving: pair(secret)?,
        rotation_asked: annotation(ROTATE).is_some(),
    })
}

/// Returns the TLS key pair in a Secret.
pub(crate) fn pair(secret: &Secret) -> Option<Pair> {
    Some(Pair {
        certificate: text(secret, CERTIFICATE)?,
        key: text(secret, KEY)?,
    })
}

/// Returns the CA certificates in a Secret.
pub(crate) fn trusted(secret: &Secret) -> Option<String> {
    text(secret, TRUSTED)
}

/// Writes keys into a Secret, and keeps its other content.
pub(crate) fn write(secret: &mut Secret, keys: &Keys) {
    let data = secret.data.get_or_insert_with(BTreeMap::new);
    let mut put = |name: &str, text: &str| {
        data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()));
    };
    put(TRUSTED, &keys.trusted());
    put(SIGNING_KEY, &keys.signing.key);
    put(CERTIFICATE, &keys.serving.certificate);
    put(KEY, &keys.serving.key);
    match &keys.incoming {
        Some(incoming) => put(INCOMING_KEY, &incoming.ca.key),
        None => drop(data.remove(INCOMING_KEY)),
    }
    let annotations = secret.metadata.annotations.get_or_insert_default();
    if keys.rotation_asked {
        annotations.entry(ROTATE.to_owned()).or_default();
    } else {
        annotations.remove(ROTATE);
    }
    let since = keys.incoming.as_ref().and_then(|i| i.carried_since);
    match since.and_then(|since| since.format(&Rfc3339).ok()) {
        Some(since) => drop(annotations.insert(CARRIED_SINCE.to_owned(), since)),
        None => drop(annotations.remove(CARRIED_SINCE)),
    }
}

/// Splits a PEM text into its certificates. Returns `None` if the text is not PEM.
pub(crate) fn certificates(text: &str) -> Option<Vec<String>> {
    let blocks = pem::parse_many(text).ok()?;
    let unix = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    let certificates = blocks.iter().filter(|block| block.tag() == "CERTIFICATE");
    Some(
        certificates
            .map(|block| pem::encode_config(block, unix))
            .collect(),
    )
}

fn text(secret: &Secret, name: &str) -> Option<String> {
    let bytes = secret.data.as_ref()?.get(name)?.0.clone();
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ca() -> Ca {
        let life = Duration::from_hours(1);
        Ca::generate(life, OffsetDateTime::UNIX_EPOCH).expect("a CA")
    }

    #[test]
    fn keys_are_read_from_the_secret_as_they_were_written() {
        let (signing, next, old) = (ca(), ca(), ca());
        let names = ["webhook".to_owned()];
        let serving = signing.sign(&names, Duration::from_hours(1), OffsetDateTime::UNIX_EPOCH);
        let steady = Keys {
            serving: serving.expect("a pair"),
            signing,
            incoming: None,
            outgoing: Vec::new(),
            rotation_asked: false,
        };
        let incoming = |carried_since| {
            Some(Incoming {
                ca: next.clone(),
                carried_since,
            })
        };
        let since = OffsetDateTime::UNIX_EPOCH + Duration::from_millis(1_234_567);
        let mut secret = Secret::default();
        for (incoming, outgoing) in [
            (None, vec![]),
            (incoming(None), vec![]),
            (incoming(Some(since)), vec![old.certificate.clone()]),
            (None, vec![old.certificate.clone()]),
        ] {
            let keys = Keys {
                incoming,
                outgoing,
                ..steady.clone()
            };
            write(&mut secret, &keys);
            assert!(read(&secret).is_some_and(|read| read == keys));
        }
    }

    #[test]
    fn an_incomplete_secret_contains_no_keys() {
        for broken in [TRUSTED, SIGNING_KEY, CERTIFICATE, KEY] {
            let mut secret = Secret::default();
            let signing = ca();
            let serving = Pair {
                certificate: signing.certificate.clone(),
                key: signing.key.clone(),
            };
            let keys = Keys {
                signing,
                incoming: None,
                outgoing: Vec::new(),
                serving,
                rotation_asked: false,
            };
            write(&mut secret, &keys);
            let data = secret.data.as_mut().expect("data");
            data.insert(broken.to_owned(), ByteString(Vec::new()));
            assert!(read(&secret).is_none(), "{broken}");
        }
    }
}
