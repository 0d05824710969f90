//! Repair of a Secret whose content is damaged: truncated, incomplete, or with keys of other certificates.

use time::OffsetDateTime;

use crate::ca::authority::{
    AuthorityError, CertKeyPair, CertificateAuthority, Validity, is_generated_ca, is_key_of,
    is_of_generated_ca,
};
use crate::ca::bundle::{CertificateBundle, NextCa};
use crate::ca::rotation::RotationPolicy;

/// Readable parts of a Secret.
#[derive(Default)]
pub(crate) struct Remains {
    /// Certificates in `ca.crt`.
    pub(crate) cas: Vec<String>,
    /// If true, `ca.crt` is missing or contains a block that is not a certificate.
    pub(crate) has_lost_cas: bool,
    pub(crate) ca_key: Option<String>,
    pub(crate) next_ca_key: Option<String>,
    /// Time since which every configuration has contained the next CA.
    pub(crate) injected_at: Option<OffsetDateTime>,
    /// First readable certificate in `tls.crt`. It shows the owner even if another part is damaged.
    pub(crate) leaf: Option<String>,
    /// Content of `tls.crt`, if all of it is certificates.
    pub(crate) certificate: Option<String>,
    pub(crate) key: Option<String>,
    /// If true, a user has requested a new CA.
    pub(crate) rotation_requested: bool,
    /// If true, another controller, such as cert-manager, has written the Secret.
    pub(crate) has_other_owner: bool,
}

impl Remains {
    /// Returns the reason why the content belongs to another owner and must not be replaced. Text without a readable
    /// certificate has none.
    pub(crate) fn foreign_content(&self) -> Option<&'static str> {
        let signing = self.ca_with(self.ca_key.as_deref(), &[]);
        let is_own = |certificate: &String| {
            is_of_generated_ca(certificate)
                || signing
                    .as_ref()
                    .is_some_and(|ca| is_issued_by(certificate, &ca.certificate))
        };
        let has_own_ca = signing.is_some() || self.cas.iter().any(|ca| is_generated_ca(ca));
        if self.has_other_owner {
            Some("another controller is its owner")
        } else if !self.leaf.iter().all(is_own) {
            Some("`tls.crt` was not signed by a CA that Lockstep generated")
        } else if !self.cas.is_empty() && !has_own_ca {
            Some("`ca.crt` contains only CAs that Lockstep did not generate")
        } else {
            None
        }
    }

    /// Returns the CA with a key, from `ca.crt` or from other certificates.
    fn ca_with(&self, key: Option<&str>, others: &[String]) -> Option<CertificateAuthority> {
        let key = key?;
        let certificate = self
            .cas
            .iter()
            .chain(others)
            .find(|ca| is_key_of(key, ca))?;
        Some(CertificateAuthority {
            certificate: certificate.clone(),
            key: key.to_owned(),
        })
    }

    /// Returns the pair in `tls.crt` and `tls.key`, if they match.
    fn pair(&self) -> Option<CertKeyPair> {
        let (certificate, key) = (self.certificate.clone()?, self.key.clone()?);
        is_key_of(&key, &certificate).then_some(CertKeyPair { certificate, key })
    }
}

/// Other places in which the lost content may still be. They must have been read after the Secret: what they contained
/// before may no longer be trusted.
#[derive(Default)]
pub(crate) struct Witnesses {
    /// CA certificates in the configurations. They are used only if `ca.crt` does not contain all of them any more.
    pub(crate) injected: Vec<String>,
    /// Pair that this replica serves.
    pub(crate) served: Option<CertKeyPair>,
}

impl RotationPolicy {
    /// Returns keys that replace a damaged Secret.
    ///
    /// # Guarantees
    ///
    /// API servers trust the serving certificate at any time, if its CA is known: from `ca.crt`, or from the CA bundle
    /// of a configuration. A CA whose key is lost does not sign any more: the next CA, an existing or a new one,
    /// replaces it after the propagation delay. Only if no CA that has signed a usable serving certificate is left,
    /// a new CA signs at once. If the next CA has signed the serving certificate already, it is the current one.
    pub(crate) fn repair(
        &self,
        remains: &Remains,
        witnesses: &Witnesses,
        now: OffsetDateTime,
    ) -> Result<CertificateBundle, AuthorityError> {
        let is_valid = |certificate: &str| {
            let period = Validity::of(certificate);
            period.is_ok_and(|period: Validity| !period.is_expired(now))
        };
        let injected = witnesses.injected.iter();
        let injected = injected.filter(|ca| remains.has_lost_cas && is_generated_ca(ca));
        let injected: Vec<_> = injected.cloned().collect();
        let ca_with = |key: &Option<String>| {
            let ca = remains.ca_with(key.as_deref(), &injected);
            ca.filter(|ca| is_valid(&ca.certificate))
        };
        let signing = ca_with(&remains.ca_key);
        let next = ca_with(&remains.next_ca_key).filter(|next| signing.as_ref() != Some(next));
        let issuer = |pair: &CertKeyPair| {
            let mut cas = remains.cas.iter().chain(&injected);
            cas.find(|ca| is_valid(ca) && pair.is_issued_by(ca))
                .cloned()
        };
        let usable = |pair: CertKeyPair| {
            let issuer = issuer(&pair).filter(|_| is_valid(&pair.certificate))?;
            is_key_of(&pair.key, &pair.certificate).then_some((pair, issuer))
        };
        let stored = remains.pair().and_then(usable);
        let serving = stored.or_else(|| witnesses.served.clone().and_then(usable));
        let is_introduced = |ca| NextCa {
            ca,
            injected_at: remains.injected_at,
        };
        let sign = |ca: &CertificateAuthority| ca.sign(&self.dns_names, self.cert_duration, now);
        let has_signed = |ca: &CertificateAuthority| {
            let issuer = serving.as_ref().map(|(_, issuer)| issuer);
            issuer == Some(&ca.certificate)
        };
        // The previous one remains trusted: other replicas may still serve a certificate of it.
        let (signing, next) = match next {
            Some(next) if has_signed(&next) => (Some(next), None),
            next => (signing, next),
        };
        let (current_ca, next_ca, serving) = match (signing, next, serving) {
            (Some(signing), next, Some((pair, _))) => (signing, next.map(is_introduced), pair),
            (Some(signing), next, None) => {
                let pair = sign(&signing)?;
                (signing, next.map(is_introduced), pair)
            }
            (None, next, Some((pair, issuer))) => {
                let next = match next {
                    Some(next) => is_introduced(next),
                    None => NextCa {
                        ca: CertificateAuthority::generate(self.ca_duration, now)?,
                        injected_at: None,
                    },
                };
                (CertificateAuthority::without_key(issuer), Some(next), pair)
            }
            (None, Some(next), None) => {
                let pair = sign(&next)?;
                (next, None, pair)
            }
            (None, None, None) => {
                let fresh = self.generate(now)?;
                (fresh.current_ca, None, fresh.serving)
            }
        };
        let trusted = remains.cas.iter().chain(&injected);
        let listed = [Some(&current_ca), next_ca.as_ref().map(|next| &next.ca)];
        let previous_cas = without(trusted.filter(|ca| is_valid(ca)), &listed);
        Ok(CertificateBundle {
            previous_cas,
            rotation_requested: remains.rotation_requested,
            current_ca,
            next_ca,
            serving,
        })
    }
}

/// Returns each certificate once, without those of some CAs.
fn without<'a>(
    certificates: impl Iterator<Item = &'a String>,
    cas: &[Option<&CertificateAuthority>],
) -> Vec<String> {
    let mut others: Vec<String> = Vec::new();
    for certificate in certificates {
        let mut listed = cas.iter().flatten().map(|ca| &ca.certificate);
        if !listed.any(|listed| listed == certificate) && !others.contains(certificate) {
            others.push(certificate.clone());
        }
    }
    others
}

fn is_issued_by(certificate: &str, ca: &str) -> bool {
    let pair = CertKeyPair {
        certificate: certificate.to_owned(),
        key: String::new(),
    };
    pair.is_issued_by(ca)
}

#[cfg(test)]
mod tests;
