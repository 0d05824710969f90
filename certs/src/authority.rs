//! Making keys: the CA, and serving certificates that it signs.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use time::{Duration, OffsetDateTime};
use x509_parser::pem::parse_x509_pem;

/// Until CAs are rotated, one has to outlive its installation.
const CA_LIFE: Duration = Duration::days(3650);

/// The life of a serving certificate; renewed at two thirds of it.
const LEAF_LIFE: Duration = Duration::days(30);

/// Clocks of a cluster's nodes differ a little.
const CLOCK_SKEW: Duration = Duration::minutes(5);

/// Why keys cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// rcgen refuses.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A stored certificate is no PEM certificate.
    #[error("the stored serving certificate cannot be read: {0}")]
    Read(String),
}

/// A CA and a serving pair that it signed, all PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMaterial {
    /// The CA's certificate: what API servers trust.
    pub ca_certificate: String,
    /// The CA's key. It never leaves the Secret.
    pub ca_key: String,
    /// The serving certificate.
    pub certificate: String,
    /// The serving certificate's key.
    pub key: String,
}

impl KeyMaterial {
    /// Makes a new CA and a serving pair for the given DNS names.
    pub fn generate(dns_names: &[String], now: OffsetDateTime) -> Result<Self, AuthorityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name("lockstep webhook CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        (params.not_before, params.not_after) = (now - CLOCK_SKEW, now + CA_LIFE);
        let ca =
            CertifiedIssuer::self_signed(params, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)?;
        let (certificate, key) = sign_leaf(&ca, dns_names, now)?;
        Ok(Self {
            ca_certificate: ca.pem(),
            ca_key: ca.key().serialize_pem(),
            certificate,
            key,
        })
    }

    /// The same CA with a new serving pair.
    pub fn with_new_leaf(
        &self,
        dns_names: &[String],
        now: OffsetDateTime,
    ) -> Result<Self, AuthorityError> {
        let issuer =
            Issuer::from_ca_cert_pem(&self.ca_certificate, KeyPair::from_pem(&self.ca_key)?)?;
        let (certificate, key) = sign_leaf(&issuer, dns_names, now)?;
        Ok(Self {
            certificate,
            key,
            ..self.clone()
        })
    }

    /// Whether the serving certificate has lived two thirds of its life.
    pub fn is_due(&self, now: OffsetDateTime) -> Result<bool, AuthorityError> {
        let unreadable = |error: String| AuthorityError::Read(error);
        let (_, pem) = parse_x509_pem(self.certificate.as_bytes())
            .map_err(|error| unreadable(error.to_string()))?;
        let certificate = pem
            .parse_x509()
            .map_err(|error| unreadable(error.to_string()))?;
        let validity = certificate.validity();
        let (from, until) = (
            validity.not_before.to_datetime(),
            validity.not_after.to_datetime(),
        );
        Ok(now >= from + (until - from) * 2 / 3)
    }
}

fn sign_leaf(
    issuer: &Issuer<'_, KeyPair>,
    dns_names: &[String],
    now: OffsetDateTime,
) -> Result<(String, String), AuthorityError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(dns_names.to_vec())?;
    params.distinguished_name =
        common_name(dns_names.first().map_or("lockstep webhook", String::as_str));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    (params.not_before, params.not_after) = (now - CLOCK_SKEW, now + LEAF_LIFE);
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn common_name(name: &str) -> DistinguishedName {
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

    fn names() -> Vec<String> {
        vec!["lockstep.lockstep-system.svc".to_owned()]
    }

    #[test]
    fn a_new_leaf_keeps_the_ca() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let made = KeyMaterial::generate(&names(), now).expect("keys");
        let renewed = made.with_new_leaf(&names(), now).expect("a leaf");
        assert_eq!(made.ca_certificate, renewed.ca_certificate);
        assert_ne!(made.certificate, renewed.certificate);
        let (_, ca) = parse_x509_pem(renewed.ca_certificate.as_bytes()).expect("pem");
        let (_, leaf) = parse_x509_pem(renewed.certificate.as_bytes()).expect("pem");
        let (ca, leaf) = (
            ca.parse_x509().expect("x509"),
            leaf.parse_x509().expect("x509"),
        );
        assert_eq!(leaf.issuer(), ca.subject());
        assert!(ca.is_ca() && !leaf.is_ca());
    }

    #[test]
    fn a_leaf_is_due_at_two_thirds_of_its_life() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let made = KeyMaterial::generate(&names(), now).expect("keys");
        assert!(!made.is_due(now + Duration::days(19)).expect("readable"));
        assert!(made.is_due(now + Duration::days(20)).expect("readable"));
    }
}
