//! Server certificate of an instance: its end is reported some weeks before.
//!
//! RDS renews the certificate itself, if the certificate authority supports this. One that is close to its end is not
//! renewed: clients that verify it will fail to connect.

use std::time::Duration;

use aws_sdk_rds::types::DbInstance;
use k8s_openapi::jiff::Timestamp;
use lockstep_cloud_database_api::Certificate;
use lockstep_controller::{ObjectGauge, OperatorCondition, OperatorEvent};
use prometheus_client::encoding::EncodeLabelSet;

/// Time before the end of a certificate from which on the end is reported.
const WARNING_PERIOD: Duration = Duration::from_hours(30 * 24);

/// Condition: the server certificate is valid for some time.
const CERTIFICATE_VALID: &str = "CertificateValid";

/// Times at which the server certificates expire, in seconds since the Unix epoch, by object.
pub type CertificateExpiry = ObjectGauge<CertificateLabels>;

/// Labels of [`CertificateExpiry`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CertificateLabels {
    namespace: String,
    name: String,
}

impl CertificateLabels {
    /// Returns the labels of an object.
    pub(crate) fn of(namespace: Option<&str>, name: Option<&str>) -> Self {
        Self {
            namespace: namespace.unwrap_or_default().to_owned(),
            name: name.unwrap_or_default().to_owned(),
        }
    }
}

/// Name of the metric.
pub const CERTIFICATE_EXPIRY: &str = "lockstep_rds_certificate_expiration_timestamp_seconds";

/// Help text of the metric.
pub const CERTIFICATE_EXPIRY_HELP: &str =
    "Expiration time of the server certificate of an RDS instance, in seconds since the Unix epoch";

/// Returns the server certificate of an instance, as the status reports it.
pub(crate) fn of(instance: &DbInstance) -> Option<Certificate> {
    let details = instance.certificate_details()?;
    let certificate = Certificate {
        ca_identifier: details.ca_identifier().map(String::from),
        valid_till: expiry(instance).map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    };
    (certificate != Certificate::default()).then_some(certificate)
}

/// Returns the time at which the server certificate of an instance expires.
pub(crate) fn expiry(instance: &DbInstance) -> Option<Timestamp> {
    let time = instance.certificate_details()?.valid_till()?;
    Timestamp::from_second(time.secs()).ok()
}

/// Returns the condition about the server certificate, and an Event if it expires.
pub(crate) fn report(
    instance: &DbInstance,
    now: Timestamp,
) -> Option<(OperatorCondition, Option<OperatorEvent>)> {
    let certificate = of(instance)?;
    let expiry = expiry(instance)?;
    let until = certificate.valid_till.unwrap_or_default();
    let authority = certificate.ca_identifier.unwrap_or_default();
    let reason = if expiry <= now {
        "CertificateExpired"
    } else if expiry <= now + WARNING_PERIOD {
        "CertificateExpires"
    } else {
        let condition = OperatorCondition {
            type_: CERTIFICATE_VALID,
            is_true: true,
            reason: "Valid",
            message: format!("the server certificate of '{authority}' is valid until {until}"),
        };
        return Some((condition, None));
    };
    let message = format!(
        "the server certificate of '{authority}' is valid until {until} only, and RDS has not renewed it; give clients the certificates of another authority, and set `spec.caCertificate` to it"
    );
    let event = OperatorEvent {
        is_warning: true,
        reason,
        note: message.clone(),
    };
    let condition = OperatorCondition {
        type_: CERTIFICATE_VALID,
        is_true: false,
        reason,
        message,
    };
    Some((condition, Some(event)))
}

#[cfg(test)]
mod tests {
    use aws_sdk_rds::primitives::DateTime;
    use aws_sdk_rds::types::CertificateDetails;

    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_reported_a_month_before() {
        const DAY: i64 = 24 * 3_600;
        let now = Timestamp::from_second(1_000 * DAY).expect("a time");
        let report = |days: i64| {
            let details = CertificateDetails::builder()
                .ca_identifier("rds-ca-rsa2048-g1")
                .valid_till(DateTime::from_secs((1_000 + days) * DAY));
            let instance = DbInstance::builder().certificate_details(details.build());
            let (condition, event) = report(&instance.build(), now).expect("a certificate");
            (condition.is_true, condition.reason, event.is_some())
        };
        assert_eq!(report(31), (true, "Valid", false));
        assert_eq!(report(30), (false, "CertificateExpires", true));
        assert_eq!(report(0), (false, "CertificateExpired", true));
        assert_eq!(super::report(&DbInstance::builder().build(), now), None);
    }
}
