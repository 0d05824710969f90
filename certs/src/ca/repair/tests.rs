use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::*;
use crate::ca::bundle::RotationPhase;
use crate::store::secret;

const DAY: Duration = Duration::from_hours(24);
/// Change of a Secret by another client.
type Damage = fn(Site) -> Site;

const TRUNCATED: &str = "-----BEGIN";

fn policy() -> RotationPolicy {
    RotationPolicy {
        dns_names: vec!["webhook".to_owned()],
        ca_duration: 90 * DAY,
        cert_duration: 30 * DAY,
        propagation_delay: Duration::from_mins(10),
    }
}

fn now() -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + 20_000 * DAY
}

/// Secret as it was before the damage, with the witnesses.
struct Site {
    keys: CertificateBundle,
    secret: Secret,
    witnesses: Witnesses,
}

impl Site {
    fn new(keys: CertificateBundle) -> Self {
        let mut secret = Secret::default();
        secret::write(&mut secret, &keys);
        Self {
            witnesses: Witnesses {
                injected: secret::readable_certificates(&keys.ca_bundle()),
                served: Some(keys.serving.clone()),
            },
            keys,
            secret,
        }
    }

    fn stable() -> Self {
        Self::new(policy().generate(now()).expect("keys"))
    }

    /// Returns a site whose configurations have contained the next CA for a while.
    fn introducing() -> Self {
        let next = CertificateAuthority::generate(90 * DAY, now()).expect("a CA");
        let mut keys = Self::stable().keys;
        keys.next_ca = Some(NextCa {
            ca: next,
            injected_at: Some(now()),
        });
        Self::new(keys)
    }

    fn put(mut self, name: &str, value: &str) -> Self {
        let data = self.secret.data.as_mut().expect("data");
        data.insert(name.to_owned(), ByteString(value.as_bytes().to_vec()));
        self
    }

    fn remove(mut self, names: &[&str]) -> Self {
        let data = self.secret.data.as_mut().expect("data");
        for name in names {
            data.remove(*name);
        }
        self
    }

    /// Pod that has restarted with an empty volume.
    fn restarted(mut self) -> Self {
        self.witnesses.served = None;
        self
    }

    fn is_damaged(&self) -> bool {
        let keys = secret::read(&self.secret);
        keys.is_none_or(|keys| keys.check().is_err())
    }

    /// Returns the repaired keys, read from the Secret.
    fn repaired(&self) -> CertificateBundle {
        assert!(self.is_damaged());
        let remains = secret::remains(&self.secret);
        assert_eq!(remains.foreign_content(), None);
        let keys = policy().repair(&remains, &self.witnesses, now());
        let mut secret = self.secret.clone();
        secret::write(&mut secret, &keys.expect("keys"));
        let keys = secret::read(&secret).expect("the repaired Secret is readable");
        assert_eq!(keys.check(), Ok(()));
        keys
    }
}

fn other_ca() -> CertificateAuthority {
    CertificateAuthority::generate(90 * DAY, now()).expect("a CA")
}

fn other_pair() -> CertKeyPair {
    let names = ["webhook".to_owned()];
    other_ca().sign(&names, DAY, now()).expect("a pair")
}

/// Pair of another owner: the name of the CA is not that of a generated one.
fn foreign_pair() -> CertKeyPair {
    let lifetime = 30 * DAY;
    CertKeyPair::self_signed("webhook", lifetime, now().into()).expect("a pair")
}

#[test]
fn a_damaged_serving_pair_is_replaced_by_one_of_the_same_ca() {
    let bundle = |site: &Site| site.keys.ca_bundle();
    let with_garbage = |site: &Site| format!("{}{TRUNCATED}", site.keys.serving.certificate);
    let half = |text: &str| text[..text.len() / 2].to_owned();
    let damages: [(&str, Damage); 9] = [
        ("truncated tls.crt", |it| it.put("tls.crt", TRUNCATED)),
        ("half of tls.crt", |it| {
            let text = it.keys.serving.certificate.clone();
            it.put("tls.crt", &text[..text.len() / 2])
        }),
        ("empty tls.crt", |it| it.put("tls.crt", "")),
        ("no tls.crt", |it| it.remove(&["tls.crt"])),
        ("truncated tls.key", |it| it.put("tls.key", TRUNCATED)),
        ("empty tls.key", |it| it.put("tls.key", "")),
        ("no tls.key", |it| it.remove(&["tls.key"])),
        ("key of another certificate", |it| {
            it.put("tls.key", &other_pair().key)
        }),
        ("neither", |it| it.remove(&["tls.crt", "tls.key"])),
    ];
    for (name, damage) in damages {
        for site in [Site::stable(), Site::introducing()] {
            let (trusted, phase) = (bundle(&site), site.keys.phase());
            // This replica still has the pair.
            let served = site.keys.serving.clone();
            let site = damage(site);
            assert!(site.repaired().serving == served, "{name}");
            let keys = site.restarted().repaired();
            assert!(keys.ca_bundle() == trusted, "{name}");
            assert_eq!(keys.phase(), phase, "{name}");
            assert!(keys.serving != served, "{name}");
            assert!(
                keys.serving.is_issued_by(&keys.current_ca.certificate),
                "{name}"
            );
        }
    }
    let site = Site::stable();
    let text = with_garbage(&site);
    let keys = site.put("tls.crt", &text).restarted().repaired();
    assert!(!keys.serving.certificate.ends_with(TRUNCATED));
    let site = Site::stable();
    let text = half(&site.keys.serving.key);
    assert!(site.put("tls.key", &text).restarted().is_damaged());
}

#[test]
fn damaged_cas_are_recovered_from_the_configurations() {
    for text in [TRUNCATED, "", "no certificate"] {
        for site in [Site::stable(), Site::introducing()] {
            let before = site.keys.clone();
            let keys = site.put("ca.crt", text).restarted().repaired();
            assert!(keys == before, "{text}");
        }
    }
    // Whole certificates beside one that is not.
    let site = Site::introducing();
    let before = site.keys.clone();
    let text = format!("{TRUNCATED} CERTIFICATE-----\nAAAA\n{}", before.ca_bundle());
    assert!(site.put("ca.crt", &text).repaired() == before);
    let site = Site::stable();
    let before = site.keys.clone();
    let text = format!("{}{TRUNCATED}", before.ca_bundle());
    assert!(site.put("ca.crt", &text).repaired() == before);
}

#[test]
fn a_ca_whose_key_is_lost_is_replaced_after_the_propagation_delay() {
    for text in ["", TRUNCATED, &other_ca().key] {
        let site = Site::stable().put("ca.key", text).restarted();
        let before = site.keys.clone();
        let keys = site.repaired();
        assert_eq!(keys.phase(), RotationPhase::Introducing);
        assert!(
            keys.serving == before.serving,
            "the serving certificate is trusted"
        );
        assert!(keys.current_ca.certificate == before.current_ca.certificate);
        // Nothing signs with it until the next CA does.
        let step = |keys: &CertificateBundle, after: Duration| {
            let next = policy().next(keys, false, now() + after).expect("keys");
            next.map(|(keys, _)| keys)
        };
        let injected = step(&keys, Duration::ZERO).expect("the delay starts");
        assert!(step(&injected, Duration::from_mins(9)).is_none());
        let promoted = step(&injected, Duration::from_mins(10)).expect("it signs");
        assert_eq!(promoted.check(), Ok(()));
        assert_eq!(promoted.previous_cas, [before.current_ca.certificate]);
        // An expired serving certificate cannot become worse.
        let late = step(&injected, 31 * DAY).expect("it signs");
        assert_eq!(late.phase(), RotationPhase::Retiring);
        let late = step(&keys, 31 * DAY).expect("it signs at once");
        assert_eq!(late.phase(), RotationPhase::Retiring);
    }
    // The next CA is there already.
    let site = Site::introducing().remove(&["ca.key"]);
    let before = site.keys.clone();
    assert!(!site.is_damaged(), "the next CA will sign");
    let keys = secret::read(&site.secret).expect("keys");
    assert!(keys.next_ca == before.next_ca);
}

#[test]
fn a_next_ca_without_its_key_is_only_trusted() {
    let site = Site::introducing().put("next-ca.key", TRUNCATED);
    let before = site.keys.clone();
    let keys = site.repaired();
    assert!(keys.current_ca == before.current_ca && keys.serving == before.serving);
    assert!(keys.next_ca.is_none());
    let next = before.next_ca.map(|next| next.ca.certificate);
    assert_eq!(keys.previous_cas.first(), next.as_ref());
}

#[test]
fn the_next_ca_signs_if_it_has_signed_the_serving_certificate() {
    let site = Site::introducing();
    let before = site.keys.clone();
    let next = before.next_ca.expect("a next CA").ca;
    let pair = next.sign(&["webhook".to_owned()], DAY, now());
    let pair = pair.expect("a pair");
    let site = site
        .put("tls.crt", &pair.certificate)
        .put("tls.key", &pair.key);
    let keys = site.repaired();
    assert!(keys.current_ca == next && keys.next_ca.is_none() && keys.serving == pair);
    assert_eq!(keys.previous_cas, [before.current_ca.certificate]);
    // So does one that replaces a CA without its key.
    let keys = site.remove(&["ca.key"]).repaired();
    assert!(keys.current_ca == next && keys.next_ca.is_none() && keys.serving == pair);
}

#[test]
fn what_is_lost_completely_is_generated() {
    let names = ["ca.crt", "ca.key", "tls.crt", "tls.key"];
    // This replica and the configurations know enough to keep admission working.
    let site = Site::stable().remove(&names);
    let before = site.keys.clone();
    let keys = site.repaired();
    assert!(keys.serving == before.serving && keys.phase() == RotationPhase::Introducing);
    let site = Site::stable().remove(&names).restarted();
    let keys = site.repaired();
    assert!(keys.serving.is_issued_by(&keys.current_ca.certificate));
    // Other replicas may still serve a certificate of the old CA.
    assert_eq!(keys.previous_cas, [site.keys.current_ca.certificate]);
    // An expired CA is of no use.
    let site = Site::stable().put("tls.crt", TRUNCATED).restarted();
    let remains = secret::remains(&site.secret);
    let late = policy().repair(&remains, &site.witnesses, now() + 91 * DAY);
    assert!(late.expect("keys").current_ca != site.keys.current_ca);
}

#[test]
fn the_secret_of_another_owner_is_not_repaired() {
    let reason = |site: &Site| {
        assert!(site.is_damaged());
        secret::remains(&site.secret).foreign_content()
    };
    let pair = foreign_pair();
    // As cert-manager writes it: without the key of the CA.
    let issued = Site::stable()
        .put("tls.crt", &pair.certificate)
        .put("tls.key", &pair.key)
        .put("ca.crt", &pair.certificate)
        .remove(&["ca.key"]);
    assert!(reason(&issued).is_some_and(|it| it.contains("`tls.crt`")));
    // A person has replaced the pair only.
    let replaced = Site::stable()
        .put("tls.crt", &pair.certificate)
        .put("tls.key", &pair.key);
    assert!(reason(&replaced).is_some_and(|it| it.contains("`tls.crt`")));
    // The same, with an intermediate certificate that was copied only partly.
    let chain = format!("{}{TRUNCATED}", pair.certificate);
    let partly = Site::stable()
        .put("tls.crt", &chain)
        .put("tls.key", &pair.key);
    assert!(reason(&partly).is_some_and(|it| it.contains("`tls.crt`")));
    // The same, while the pair of that person is damaged.
    let damaged = issued.put("tls.crt", TRUNCATED);
    assert!(reason(&damaged).is_some_and(|it| it.contains("`ca.crt`")));
    let mut marked = Site::stable().put("tls.crt", TRUNCATED);
    let name = "cert-manager.io/certificate-name".to_owned();
    marked.secret.metadata.annotations = Some([(name, "webhook".to_owned())].into());
    assert!(reason(&marked).is_some_and(|it| it.contains("owner")));
    // The CA of a person, with its key in the Secret.
    let ca = other_ca();
    let own = Site::stable()
        .put("ca.crt", &ca.certificate)
        .put("ca.key", &ca.key)
        .put("tls.crt", TRUNCATED);
    assert_eq!(reason(&own), None);
}

#[test]
fn an_empty_secret_is_filled_unless_it_is_of_cert_manager() {
    let site = || Site::stable().remove(&["ca.crt", "ca.key", "tls.crt", "tls.key"]);
    let is_foreign = |site: &Site| secret::remains(&site.secret).foreign_content().is_some();
    let references = || Some(vec![OwnerReference::default()]);
    let mut owned = site();
    owned.secret.metadata.owner_references = references();
    assert!(!is_foreign(&owned));
    let mut with_content = Site::stable();
    with_content.secret.metadata.owner_references = references();
    assert!(is_foreign(&with_content));
    let mut marked = site();
    let name = "controller.cert-manager.io/fao".to_owned();
    marked.secret.metadata.labels = Some([(name, "true".to_owned())].into());
    assert!(is_foreign(&marked));
}
