//! Secret with the CAs and the TLS key pair of an installation.
//!
//! `ca.crt` contains all trusted CAs: first the CA that signs, then the next CA if `next-ca.key` exists, then
//! previous CAs. Every state is one object, so that each write is atomic.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::ca::authority::{CertKeyPair, CertificateAuthority};
use crate::ca::bundle::{CertificateBundle, NextCa};

/// Annotation with the time since which every configuration has contained the next CA.
const INJECTED_AT: &str = "certs.lockstep.dev/injected-at";

/// Annotation with which a user requests a new CA. It is removed when the rotation starts.
const ROTATE: &str = "certs.lockstep.dev/rotate-ca";

const CA_BUNDLE: &str = "ca.crt";
const CURRENT_CA_KEY: &str = "ca.key";
const NEXT_CA_KEY: &str = "next-ca.key";
pub(crate) const CERTIFICATE: &str = "tls.crt";
pub(crate) const KEY: &str = "tls.key";

/// Reads the keys in a Secret. Returns `None` if it is incomplete.
pub(crate) fn read(secret: &Secret) -> Option<CertificateBundle> {
    let trusted = text(secret, CA_BUNDLE)?;
    let mut trusted = certificates(&trusted)?.into_iter();
    let signing = CertificateAuthority {
        certificate: trusted.next()?,
        key: text(secret, CURRENT_CA_KEY)?,
    };
    let annotation = |name: &str| secret.metadata.annotations.as_ref()?.get(name);
    let next_ca = match text(secret, NEXT_CA_KEY) {
        None => None,
        Some(key) => Some(NextCa {
            ca: CertificateAuthority {
                certificate: trusted.next()?,
                key,
            },
            injected_at: annotation(INJECTED_AT)
                .and_then(|since| OffsetDateTime::parse(since, &Rfc3339).ok()),
        }),
    };
    Some(CertificateBundle {
        current_ca: signing,
        next_ca,
        previous_cas: trusted.collect(),
        serving: pair(secret)?,
        rotation_requested: annotation(ROTATE).is_some(),
    })
}

/// Returns the TLS key pair in a Secret.
pub(crate) fn pair(secret: &Secret) -> Option<CertKeyPair> {
    Some(CertKeyPair {
        certificate: text(secret, CERTIFICATE)?,
        key: text(secret, KEY)?,
    })
}

/// Returns the CA certificates in a Secret.
pub(crate) fn ca_bundle(secret: &Secret) -> Option<String> {
    text(secret, CA_BUNDLE)
}

/// Writes keys into a Secret, and keeps its other content.
pub(crate) fn write(secret: &mut Secret, keys: &CertificateBundle) {
    let data = secret.data.get_or_insert_with(BTreeMap::new);
    let mut put = |name: &str, text: &str| {
        data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec()));
    };
    put(CA_BUNDLE, &keys.ca_bundle());
    put(CURRENT_CA_KEY, &keys.current_ca.key);
    put(CERTIFICATE, &keys.serving.certificate);
    put(KEY, &keys.serving.key);
    match &keys.next_ca {
        Some(next_ca) => put(NEXT_CA_KEY, &next_ca.ca.key),
        None => drop(data.remove(NEXT_CA_KEY)),
    }
    let annotations = secret.metadata.annotations.get_or_insert_default();
    if keys.rotation_requested {
        annotations.entry(ROTATE.to_owned()).or_default();
    } else {
        annotations.remove(ROTATE);
    }
    let since = keys.next_ca.as_ref().and_then(|i| i.injected_at);
    match since.and_then(|since| since.format(&Rfc3339).ok()) {
        Some(since) => drop(annotations.insert(INJECTED_AT.to_owned(), since)),
        None => drop(annotations.remove(INJECTED_AT)),
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

    fn ca() -> CertificateAuthority {
        let lifetime = Duration::from_hours(1);
        CertificateAuthority::generate(lifetime, OffsetDateTime::UNIX_EPOCH).expect("a CA")
    }

    #[test]
    fn keys_are_read_from_the_secret_as_they_were_written() {
        let (signing, next, old) = (ca(), ca(), ca());
        let names = ["webhook".to_owned()];
        let serving = signing.sign(&names, Duration::from_hours(1), OffsetDateTime::UNIX_EPOCH);
        let steady = CertificateBundle {
            serving: serving.expect("a pair"),
            current_ca: signing,
            next_ca: None,
            previous_cas: Vec::new(),
            rotation_requested: false,
        };
        let next_ca = |injected_at| {
            Some(NextCa {
                ca: next.clone(),
                injected_at,
            })
        };
        let since = OffsetDateTime::UNIX_EPOCH + Duration::from_millis(1_234_567);
        let mut secret = Secret::default();
        for (next_ca, previous_cas) in [
            (None, vec![]),
            (next_ca(None), vec![]),
            (next_ca(Some(since)), vec![old.certificate.clone()]),
            (None, vec![old.certificate.clone()]),
        ] {
            let keys = CertificateBundle {
                next_ca,
                previous_cas,
                ..steady.clone()
            };
            write(&mut secret, &keys);
            assert!(read(&secret).is_some_and(|read| read == keys));
        }
    }

    #[test]
    fn an_incomplete_secret_contains_no_keys() {
        for broken in [CA_BUNDLE, CURRENT_CA_KEY, CERTIFICATE, KEY] {
            let mut secret = Secret::default();
            let signing = ca();
            let serving = CertKeyPair {
                certificate: signing.certificate.clone(),
                key: signing.key.clone(),
            };
            let keys = CertificateBundle {
                current_ca: signing,
                next_ca: None,
                previous_cas: Vec::new(),
                serving,
                rotation_requested: false,
            };
            write(&mut secret, &keys);
            let data = secret.data.as_mut().expect("data");
            data.insert(broken.to_owned(), ByteString(Vec::new()));
            assert!(read(&secret).is_none(), "{broken}");
        }
    }
}
