//! Prometheus metrics for certificates and CA rotation.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::ca::authority::Validity;
use crate::ca::bundle::{CertificateBundle, RotationPhase};
use crate::inject::target::InjectTarget;

/// Metrics of certificates and CA rotation.
#[derive(Clone)]
pub struct Metrics {
    phase: Family<PhaseLabels, Gauge>,
    expiry: Family<CertificateLabels, Gauge>,
    pub(crate) errors: Counter,
    repairs: Family<TargetLabels, Counter>,
    foreign: Family<TargetLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateLabels {
    certificate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabels {
    kind: String,
    name: String,
}

impl TargetLabels {
    fn new(target: &InjectTarget) -> Self {
        Self {
            kind: target.kind.resource().kind,
            name: target.name.clone(),
        }
    }
}

impl Metrics {
    /// Registers the metrics.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            phase: Family::default(),
            expiry: Family::default(),
            errors: Counter::default(),
            repairs: Family::default(),
            foreign: Family::default(),
        };
        registry.register(
            "lockstep_ca_rotation_phase",
            "Phase of the CA rotation: 1 for the current phase, 0 for the others",
            metrics.phase.clone(),
        );
        registry.register(
            "lockstep_certificate_expiration_timestamp_seconds",
            "Expiration time of a certificate, in seconds since the Unix epoch",
            metrics.expiry.clone(),
        );
        registry.register(
            "lockstep_certificate_sync_errors",
            "Failed synchronizations of certificates and CA bundles",
            metrics.errors.clone(),
        );
        registry.register(
            "lockstep_ca_bundle_repairs",
            "Total number of times a CA bundle that another client had changed was restored",
            metrics.repairs.clone(),
        );
        registry.register(
            "lockstep_webhook_configuration_foreign",
            "1 if a configuration refers to the Service of another installation, which maintains it, 0 otherwise",
            metrics.foreign.clone(),
        );
        metrics
    }

    /// Creates the samples of the targets. Alerts see an increase only of a counter that exists before.
    pub(crate) fn add_targets(&self, targets: &[InjectTarget]) {
        for target in targets {
            drop(self.repairs.get_or_create(&TargetLabels::new(target)));
        }
    }

    pub(crate) fn count_repair(&self, target: &InjectTarget) {
        self.repairs.get_or_create(&TargetLabels::new(target)).inc();
    }

    pub(crate) fn set_foreign(&self, target: &InjectTarget, is_foreign: bool) {
        let gauge = self.foreign.get_or_create_owned(&TargetLabels::new(target));
        gauge.set(i64::from(is_foreign));
    }

    pub(crate) fn set(&self, keys: &CertificateBundle) {
        for phase in RotationPhase::ALL {
            let labels = PhaseLabels {
                phase: phase.as_str(),
            };
            let is_this = i64::from(phase == keys.phase());
            self.phase.get_or_create(&labels).set(is_this);
        }
        for (certificate, pem) in [
            ("ca", &keys.current_ca.certificate),
            ("serving", &keys.serving.certificate),
        ] {
            if let Ok(period) = Validity::of(pem) {
                let labels = CertificateLabels { certificate };
                let until = period.not_after.unix_timestamp();
                self.expiry.get_or_create(&labels).set(until);
            }
        }
    }
}
