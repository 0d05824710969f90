//! Certificates of the webhook and their validity.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use serde::Serialize;
use x509_parser::pem::Pem;

use crate::installation::Installation;
use crate::status::visible::Visible;

/// Validity of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Certificate {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

impl Certificate {
    /// Parses all certificates of a PEM file. Returns `None` if there is none, or if one cannot be parsed.
    pub(crate) fn parse_all(pem: &[u8]) -> Option<Vec<Self>> {
        let all: Option<Vec<_>> = Pem::iter_from_buffer(pem)
            .map(|block| {
                let block = block.ok()?;
                let certificate = block.parse_x509().ok()?;
                let validity = certificate.validity();
                let time = |seconds| Timestamp::from_second(seconds).ok();
                Some(Self {
                    not_before: time(validity.not_before.timestamp())?,
                    not_after: time(validity.not_after.timestamp())?,
                })
            })
            .collect();
        all.filter(|all| !all.is_empty())
    }

    /// Returns what is wrong with the validity, as the end of a sentence.
    pub(crate) fn problem(&self, now: Timestamp) -> Option<String> {
        let (begin, end) = (self.not_before.as_second(), self.not_after.as_second());
        let now = now.as_second();
        if now >= end {
            return Some(format!("expired at {}", self.not_after));
        }
        if now < begin {
            return Some(format!("is not valid before {}", self.not_before));
        }
        // It is renewed after two thirds of the validity. After nine tenths, the renewal has failed for long.
        let is_overdue = (now - begin) * 10 > (end - begin) * 9;
        is_overdue.then(|| {
            format!(
                "expires at {} and has not been renewed in time",
                self.not_after
            )
        })
    }
}

/// Content of the Secret with the certificates.
pub(crate) struct SecretCertificates {
    pub(crate) ca_bundle: Vec<u8>,
    pub(crate) serving: Vec<u8>,
}

/// Reads the Secret with the certificates, if it exists.
pub(crate) async fn read_secret(
    installation: &Installation<'_>,
) -> Result<Visible<Option<SecretCertificates>>, kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(installation.client.clone(), &installation.home);
    let found = Visible::of(secrets.get_opt(installation.names.tls_secret()).await)?;
    Ok(found.map(|found| {
        let mut data = found?.data?;
        let mut take = |key: &str| data.remove(key).map(|bytes| bytes.0).unwrap_or_default();
        Some(SecretCertificates {
            ca_bundle: take("ca.crt"),
            serving: take("tls.crt"),
        })
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockstep_certs::CertificateAuthority;

    use super::*;

    #[test]
    fn an_expired_certificate_and_an_overdue_renewal_are_problems() {
        let certificate = Certificate {
            not_before: Timestamp::from_second(0).expect("a time"),
            not_after: Timestamp::from_second(1_000).expect("a time"),
        };
        let problem = |second| certificate.problem(Timestamp::from_second(second).expect("a time"));
        assert_eq!(problem(700), None);
        assert!(problem(950).is_some_and(|problem| problem.contains("renewed")));
        assert!(problem(1_000).is_some_and(|problem| problem.contains("expired")));
        assert!(problem(-1).is_some_and(|problem| problem.contains("before")));
    }

    #[test]
    fn every_certificate_of_a_bundle_is_parsed() {
        let now = std::time::SystemTime::now().into();
        let ca = || CertificateAuthority::generate(Duration::from_hours(1), now);
        let ca = || ca().expect("a CA").certificate;
        let bundle = format!("{}{}", ca(), ca());
        let parsed = Certificate::parse_all(bundle.as_bytes());
        assert_eq!(parsed.map(|all| all.len()), Some(2));
        assert_eq!(Certificate::parse_all(b"no certificate"), None);
    }
}
