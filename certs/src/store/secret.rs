//! Secret with the CAs and the TLS key pair of an installation.
//!
//! `ca.crt` contains all trusted CAs: first the CA that signs, then the next CA if `next-ca.key` exists, then
//! previous CAs. Every state is one object, so that each write is atomic.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::ca::authority::{CertKeyPair, CertificateAuthority, Validity};
use crate::ca::bundle::{CertificateBundle, NextCa};
use crate::ca::repair::Remains;

/// Annotation with the time since which every configuration has contained the next CA.
const INJECTED_AT: &str = "certs.lockstep.dev/injected-at";

/// Annotation with which a user requests a new CA. It is removed when the rotation starts.
const ROTATE: &str = "certs.lockstep.dev/rotate-ca";

const CA_BUNDLE: &str = "ca.crt";
const CURRENT_CA_KEY: &str = "ca.key";
const NEXT_CA_KEY: &str = "next-ca.key";
pub(crate) const CERTIFICATE: &str = "tls.crt";
pub(crate) const KEY: &str = "tls.key";

/// Reads the keys in a Secret. Returns `None` if it is incomplete, or if a certificate is not readable.
pub(crate) fn read(secret: &Secret) -> Option<CertificateBundle> {
    let trusted = text(secret, CA_BUNDLE).filter(|trusted| contains_only_certificates(trusted))?;
    let mut trusted = certificates(&trusted)?.into_iter();
    let next_ca_key = text(secret, NEXT_CA_KEY);
    let signing = CertificateAuthority {
        certificate: trusted.next()?,
        // A key that is lost is missing until the next CA signs.
        key: match text(secret, CURRENT_CA_KEY) {
            None if next_ca_key.is_some() => String::new(),
            key => key?,
        },
    };
    let next_ca = match next_ca_key {
        None => None,
        Some(key) => Some(NextCa {
            ca: CertificateAuthority {
                certificate: trusted.next()?,
                key,
            },
            injected_at: injected_at(secret),
        }),
    };
    let serving = pair(secret)?;
    contains_only_certificates(&serving.certificate).then(|| CertificateBundle {
        current_ca: signing,
        next_ca,
        previous_cas: trusted.collect(),
        serving,
        rotation_requested: annotation(secret, ROTATE).is_some(),
    })
}

/// Reads the parts of a Secret that are readable.
pub(crate) fn remains(secret: &Secret) -> Remains {
    let certificate = text(secret, CERTIFICATE);
    let trusted = text(secret, CA_BUNDLE).unwrap_or_default();
    Remains {
        has_lost_cas: !contains_only_certificates(&trusted),
        cas: readable_certificates(&trusted),
        ca_key: text(secret, CURRENT_CA_KEY),
        next_ca_key: text(secret, NEXT_CA_KEY),
        injected_at: injected_at(secret),
        leaf: certificate
            .as_deref()
            .and_then(|text| readable_certificates(text).into_iter().next()),
        certificate: certificate.filter(|text| contains_only_certificates(text)),
        key: text(secret, KEY),
        rotation_requested: annotation(secret, ROTATE).is_some(),
        has_other_owner: has_other_owner(secret),
    }
}

/// Returns true if the Secret contains neither certificates nor keys.
pub(crate) fn is_empty(secret: &Secret) -> bool {
    let mut names = [CA_BUNDLE, CURRENT_CA_KEY, NEXT_CA_KEY, CERTIFICATE, KEY].iter();
    names.all(|name| text(secret, name).is_none())
}

/// Returns true if another controller has written the Secret: it has content and an owner, or a label or an annotation
/// of cert-manager. The owner of an empty Secret, such as a custom resource of an installer, leaves the content to
/// Lockstep. cert-manager will fill its own.
fn has_other_owner(secret: &Secret) -> bool {
    let metadata = &secret.metadata;
    let owners = metadata.owner_references.iter().flatten();
    let annotations = metadata.annotations.iter().flatten();
    let mut marks = annotations.chain(metadata.labels.iter().flatten());
    let is_cert_manager = |key: &str| {
        let prefix = key.split_once('/').map(|(prefix, _)| prefix);
        prefix.is_some_and(|it| it == "cert-manager.io" || it.ends_with(".cert-manager.io"))
    };
    (owners.count() > 0 && !is_empty(secret)) || marks.any(|(key, _)| is_cert_manager(key))
}

fn annotation<'a>(secret: &'a Secret, name: &str) -> Option<&'a String> {
    secret.metadata.annotations.as_ref()?.get(name)
}

fn injected_at(secret: &Secret) -> Option<OffsetDateTime> {
    let since = annotation(secret, INJECTED_AT)?;
    OffsetDateTime::parse(since, &Rfc3339).ok()
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
    put(CERTIFICATE, &keys.serving.certificate);
    put(KEY, &keys.serving.key);
    if !keys.current_ca.is_without_key() {
        put(CURRENT_CA_KEY, &keys.current_ca.key);
    }
    if let Some(next_ca) = &keys.next_ca {
        put(NEXT_CA_KEY, &next_ca.ca.key);
    }
    if keys.current_ca.is_without_key() {
        data.remove(CURRENT_CA_KEY);
    }
    if keys.next_ca.is_none() {
        data.remove(NEXT_CA_KEY);
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

/// Returns the certificates in a text, without what is not one.
pub(crate) fn readable_certificates(text: &str) -> Vec<String> {
    blocks(text).into_iter().flatten().collect()
}

/// Returns true if a text contains a certificate and no block that is not one.
fn contains_only_certificates(text: &str) -> bool {
    let blocks = blocks(text);
    !blocks.is_empty() && blocks.iter().all(Option::is_some)
}

/// Returns the certificate of each PEM block, and `None` for a block that is not a whole certificate. A text without
/// any block is not valid either.
fn blocks(text: &str) -> Vec<Option<String>> {
    const BEGIN: &str = "-----BEGIN";
    let starts: Vec<_> = text.match_indices(BEGIN).map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let blocks = starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &text[*start..end]);
    blocks
        .map(|block| {
            let certificate = certificates(block)?.into_iter().next()?;
            Validity::of(&certificate).is_ok().then_some(certificate)
        })
        .collect()
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
