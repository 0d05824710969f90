//! Certificate authorities, and the TLS key pairs that they sign.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, KeyIdentifier, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::x509::X509Name;

/// Allowance for clock skew between nodes: a certificate is valid from this long before it was created.
pub(crate) const CLOCK_SKEW: Duration = Duration::from_mins(5);

/// Error in creating or parsing a certificate or a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// rcgen cannot create a certificate.
    #[error("cannot create a certificate: {0}")]
    Generate(#[from] rcgen::Error),
    /// A stored certificate is not a valid PEM certificate.
    #[error("cannot parse a stored certificate: {0}")]
    Parse(String),
}

/// CA that signs serving certificates, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateAuthority {
    /// CA certificate, which API servers trust.
    pub certificate: String,
    /// Private key of the CA. It never leaves the Secret.
    pub key: String,
}

/// TLS key pair to serve, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct CertKeyPair {
    /// Serving certificate, and the intermediate certificates up to the CA.
    pub certificate: String,
    /// Private key of the certificate.
    pub key: String,
}

/// Returns true if a key is the one of a certificate, and false if one of them cannot be parsed.
pub(crate) fn is_key_of(key: &str, certificate: &str) -> bool {
    let Ok(key) = KeyPair::from_pem(key) else {
        return false;
    };
    let Ok((_, pem)) = parse_x509_pem(certificate.as_bytes()) else {
        return false;
    };
    pem.parse_x509().is_ok_and(|certificate| {
        let held = &certificate.public_key().subject_public_key.data;
        **held == *key.public_key_raw()
    })
}

impl CertificateAuthority {
    /// Generates a new CA.
    pub fn generate(lifetime: Duration, now: OffsetDateTime) -> Result<Self, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        // A unique name: the issuer field of a certificate must identify one CA.
        params.distinguished_name = common_name(&ca_name(&params.key_identifier(&key)));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        (params.not_before, params.not_after) = (now - CLOCK_SKEW, now + lifetime);
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Signs a new serving certificate, which expires no later than the CA.
    pub fn sign(
        &self,
        dns_names: &[String],
        lifetime: Duration,
        now: OffsetDateTime,
    ) -> Result<CertKeyPair, AuthorityError> {
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, KeyPair::from_pem(&self.key)?)?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new(dns_names.to_vec())?;
        params.distinguished_name = common_name(dns_names.first().map_or("", String::as_str));
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let until = Validity::of(&self.certificate)?
            .not_after
            .min(now + lifetime);
        (params.not_before, params.not_after) = (now - CLOCK_SKEW, until);
        let certificate = params.signed_by(&key, &issuer)?;
        Ok(CertKeyPair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

impl CertificateAuthority {
    /// Returns a CA whose key is lost: it is trusted, and signs nothing.
    pub(crate) fn without_key(certificate: String) -> Self {
        Self {
            certificate,
            key: String::new(),
        }
    }

    /// Returns true if the key is lost.
    pub(crate) fn is_without_key(&self) -> bool {
        self.key.is_empty()
    }

    /// Returns true if the key matches the certificate, and false if one of them cannot be parsed.
    pub(crate) fn has_matching_key(&self) -> bool {
        is_key_of(&self.key, &self.certificate)
    }
}

/// Returns the name of a generated CA, which contains the beginning of its key identifier.
fn ca_name(key_identifier: &[u8]) -> String {
    let beginning = key_identifier.iter().take(4);
    let serial = beginning.fold(0_u32, |serial, byte| serial << 8 | u32::from(*byte));
    format!("webhook CA {serial:08x}")
}

/// Returns true if [`CertificateAuthority::generate`] has made a CA certificate: its name contains its key identifier.
pub(crate) fn is_generated_ca(certificate: &str) -> bool {
    is_parsed_and(certificate, |certificate| {
        let mut extensions = certificate.iter_extensions();
        extensions.any(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => {
                is_ca_name(certificate.subject(), identifier)
            }
            _ => false,
        })
    })
}

/// Returns true if such a CA has signed a certificate: the name of the issuer contains the identifier of its key.
pub(crate) fn is_of_generated_ca(certificate: &str) -> bool {
    is_parsed_and(certificate, |certificate| {
        let mut extensions = certificate.iter_extensions();
        extensions.any(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(authority) => {
                let identifier = authority.key_identifier.as_ref();
                identifier.is_some_and(|identifier| is_ca_name(certificate.issuer(), identifier))
            }
            _ => false,
        })
    })
}

fn is_parsed_and(certificate: &str, check: impl FnOnce(&X509Certificate<'_>) -> bool) -> bool {
    let Ok((_, pem)) = parse_x509_pem(certificate.as_bytes()) else {
        return false;
    };
    pem.parse_x509()
        .is_ok_and(|certificate| check(&certificate))
}

/// Returns true if a name is the one of a generated CA with this key.
fn is_ca_name(name: &X509Name<'_>, identifier: &KeyIdentifier<'_>) -> bool {
    let mut names = name.iter_common_name();
    names.any(|name| {
        name.as_str()
            .is_ok_and(|name| name == ca_name(identifier.0))
    })
}

impl CertKeyPair {
    /// Returns true if the issuer of the certificate is this CA.
    pub(crate) fn is_issued_by(&self, ca: &str) -> bool {
        let parsed = |pem: &str| parse_x509_pem(pem.as_bytes()).ok().map(|(_, pem)| pem);
        let (Some(leaf), Some(ca)) = (parsed(&self.certificate), parsed(ca)) else {
            return false;
        };
        match (leaf.parse_x509(), ca.parse_x509()) {
            (Ok(leaf), Ok(ca)) => leaf.issuer() == ca.subject(),
            _ => false,
        }
    }

    /// Returns true if the certificate is valid for all these names.
    pub(crate) fn covers_dns_names(&self, dns_names: &[String]) -> bool {
        let Ok((_, pem)) = parse_x509_pem(self.certificate.as_bytes()) else {
            return false;
        };
        let Ok(certificate) = pem.parse_x509() else {
            return false;
        };
        let Ok(Some(names)) = certificate.subject_alternative_name() else {
            return false;
        };
        let held = |name: &String| {
            let mut held = names.value.general_names.iter();
            held.any(|held| matches!(held, GeneralName::DNSName(held) if held == name))
        };
        dns_names.iter().all(held)
    }
}

/// Validity period of a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validity {
    from: OffsetDateTime,
    pub(crate) not_after: OffsetDateTime,
}

impl Validity {
    /// Returns the validity period of a PEM certificate.
    pub(crate) fn of(certificate: &str) -> Result<Self, AuthorityError> {
        let unreadable = |error: String| AuthorityError::Parse(error);
        let (_, pem) = parse_x509_pem(certificate.as_bytes())
            .map_err(|error| unreadable(error.to_string()))?;
        let certificate = pem
            .parse_x509()
            .map_err(|error| unreadable(error.to_string()))?;
        let validity = certificate.validity();
        Ok(Self {
            from: validity.not_before.to_datetime(),
            not_after: validity.not_after.to_datetime(),
        })
    }

    pub(crate) fn is_expired(&self, now: OffsetDateTime) -> bool {
        now >= self.not_after
    }

    /// Returns true once two thirds of the lifetime have passed, counted from the creation of the certificate.
    pub(crate) fn needs_renewal(&self, now: OffsetDateTime) -> bool {
        now >= self.renewal_at()
    }

    /// Returns the time at which two thirds of the lifetime have passed.
    pub(crate) fn renewal_at(&self) -> OffsetDateTime {
        let made = self.from + CLOCK_SKEW;
        made + (self.not_after - made) * 2 / 3
    }
}

pub(crate) fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    // A common name has at most 64 characters (RFC 5280, ub-common-name); clients read the SANs.
    distinguished.push(
        DnType::CommonName,
        name.chars().take(64).collect::<String>(),
    );
    distinguished
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn names() -> Vec<String> {
        vec!["webhook.system.svc".to_owned()]
    }

    fn now() -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + 20_000 * DAY
    }

    #[test]
    fn a_serving_certificate_names_its_issuer_and_dns_names() {
        let ca = CertificateAuthority::generate(365 * DAY, now()).expect("a CA");
        let pair = ca.sign(&names(), 30 * DAY, now()).expect("a pair");
        let (_, ca) = parse_x509_pem(ca.certificate.as_bytes()).expect("pem");
        let (_, leaf) = parse_x509_pem(pair.certificate.as_bytes()).expect("pem");
        let (ca, leaf) = (
            ca.parse_x509().expect("x509"),
            leaf.parse_x509().expect("x509"),
        );
        assert_eq!(leaf.issuer(), ca.subject());
        assert!(ca.is_ca() && !leaf.is_ca());
        assert!(pair.covers_dns_names(&names()));
        assert!(!pair.covers_dns_names(&["webhook.system.svc".to_owned(), "other".to_owned()]));
    }

    #[test]
    fn a_certificate_needs_renewal_after_two_thirds_of_its_lifetime() {
        let ca = CertificateAuthority::generate(365 * DAY, now()).expect("a CA");
        let pair = ca.sign(&names(), 30 * DAY, now()).expect("a pair");
        let period = Validity::of(&pair.certificate).expect("a period");
        assert!(!period.needs_renewal(now() + 19 * DAY));
        assert!(period.needs_renewal(now() + 20 * DAY));
        assert!(!period.is_expired(now() + 29 * DAY));
        assert!(period.is_expired(now() + 30 * DAY));
    }

    #[test]
    fn a_serving_certificate_expires_no_later_than_its_ca() {
        let ca = CertificateAuthority::generate(10 * DAY, now()).expect("a CA");
        let pair = ca.sign(&names(), 30 * DAY, now()).expect("a pair");
        let until = Validity::of(&pair.certificate).expect("a period").not_after;
        assert_eq!(until, now() + 10 * DAY);
    }
}
