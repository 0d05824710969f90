//! Self-signed certificates, for a server whose clients trust exactly this certificate.

use std::time::{Duration, SystemTime};

use rcgen::{
    CertificateParams, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use time::OffsetDateTime;

use crate::ca::authority::{
    AuthorityError, CLOCK_SKEW, CertKeyPair, Validity, common_name, is_key_of,
};

impl CertKeyPair {
    /// Generates a key and a certificate that is signed by this key.
    ///
    /// # Errors
    ///
    /// The name is no DNS name.
    pub fn self_signed(
        dns_name: &str,
        lifetime: Duration,
        now: SystemTime,
    ) -> Result<Self, AuthorityError> {
        let now = OffsetDateTime::from(now);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new([dns_name.to_owned()])?;
        params.distinguished_name = common_name(dns_name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        (params.not_before, params.not_after) = (now - CLOCK_SKEW, now + lifetime);
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Returns the time until the certificate needs to be renewed, after two thirds of its lifetime. None if it needs that
    /// now, or cannot be served under this name.
    pub fn renewal_in(&self, dns_name: &str, now: SystemTime) -> Option<Duration> {
        if !self.covers_dns_names(&[dns_name.to_owned()])
            || !is_key_of(&self.key, &self.certificate)
        {
            return None;
        }
        let validity = Validity::of(&self.certificate).ok()?;
        let left = validity.renewal_at() - OffsetDateTime::from(now);
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn pair() -> CertKeyPair {
        let pair = CertKeyPair::self_signed("server", 90 * DAY, SystemTime::UNIX_EPOCH);
        pair.expect("a pair")
    }

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_its_lifetime() {
        let pair = pair();
        let at = |days: u32| pair.renewal_in("server", SystemTime::UNIX_EPOCH + days * DAY);
        assert_eq!(at(0), Some(60 * DAY));
        assert_eq!(at(59), Some(DAY));
        assert_eq!([at(60), at(61), at(91)], [None; 3]);
    }

    #[test]
    fn what_cannot_be_served_is_renewed_at_once() {
        let now = SystemTime::UNIX_EPOCH;
        assert_eq!(pair().renewal_in("other", now), None);
        let with_key = |key: String| CertKeyPair { key, ..pair() };
        assert_eq!(with_key(pair().key).renewal_in("server", now), None);
        assert_eq!(with_key(String::new()).renewal_in("server", now), None);
        let empty = CertKeyPair {
            certificate: String::new(),
            ..pair()
        };
        assert_eq!(empty.renewal_in("server", now), None);
    }
}
