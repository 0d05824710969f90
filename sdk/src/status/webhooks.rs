//! Webhook configurations: failure policy and CA bundle, and the serving certificate.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::api::Api;
use serde::Serialize;

use crate::installation::Installation;
use crate::installation::installed_names::InstalledNames;
use crate::status::certificate::{Certificate, SecretCertificates};
use crate::status::section::Section;
use crate::status::visible::Visible;

/// Webhook in a configuration.
#[derive(Serialize)]
pub(crate) struct WebhookReport {
    pub(crate) kind: &'static str,
    pub(crate) webhook: String,
    pub(crate) failure_policy: String,
    /// CAs that the API server trusts.
    pub(crate) ca_bundle: Vec<Certificate>,
    /// Service of another installation that the configuration refers to, if it does not refer to this one.
    pub(crate) foreign_service: Option<String>,
}

/// Webhook configurations of an installation.
#[derive(Serialize)]
pub(crate) struct Webhooks {
    pub(crate) validating: Visible<Vec<WebhookReport>>,
    pub(crate) mutating: Visible<Vec<WebhookReport>>,
    /// Certificates that the webhook serves, from the Secret.
    pub(crate) serving: Visible<Vec<Certificate>>,
}

/// Webhook, whatever its kind.
struct Webhook {
    name: String,
    failure_policy: Option<String>,
    client: WebhookClientConfig,
}

pub(crate) async fn read(
    installation: &Installation<'_>,
    secret: Visible<Option<SecretCertificates>>,
    has_own_files: bool,
) -> Result<Section<Webhooks>, kube::Error> {
    let mut problems = Vec::new();
    let trusted = secret.known().and_then(Option::as_ref);
    let trusted = trusted.map(|secret| secret.ca_bundle.clone());
    let client = || installation.client.clone();
    let names = &installation.names;
    let name = names.full_name();
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client());
    let found = Visible::of(api.get_opt(name).await)?;
    let found = found.map(|found| {
        let webhooks = found?.webhooks.unwrap_or_default().into_iter();
        let webhooks = webhooks.map(|webhook| Webhook {
            name: webhook.name,
            failure_policy: webhook.failure_policy,
            client: webhook.client_config,
        });
        Some(webhooks.collect())
    });
    let kind = "ValidatingWebhookConfiguration";
    let validating = report(kind, found, installation, trusted.as_deref(), &mut problems);
    let api: Api<MutatingWebhookConfiguration> = Api::all(client());
    let found = Visible::of(api.get_opt(name).await)?;
    let found = found.map(|found| {
        let webhooks = found?.webhooks.unwrap_or_default().into_iter();
        let webhooks = webhooks.map(|webhook| Webhook {
            name: webhook.name,
            failure_policy: webhook.failure_policy,
            client: webhook.client_config,
        });
        Some(webhooks.collect())
    });
    let mutating = if installation.is_webhook_only {
        Visible::Known(Vec::new())
    } else {
        let kind = "MutatingWebhookConfiguration";
        report(kind, found, installation, trusted.as_deref(), &mut problems)
    };
    for webhook in validating.known().into_iter().flatten() {
        if webhook.failure_policy != "Fail" && webhook.foreign_service.is_none() {
            problems.push(format!(
                "the failure policy of {} is {}: objects are stored without validation while the webhook does not answer",
                webhook.webhook, webhook.failure_policy
            ));
        }
    }
    let serving = serving(secret, names, has_own_files, &mut problems);
    let content = Webhooks {
        validating,
        mutating,
        serving,
    };
    Ok(Section { content, problems })
}

fn report(
    kind: &'static str,
    found: Visible<Option<Vec<Webhook>>>,
    installation: &Installation<'_>,
    trusted: Option<&[u8]>,
    problems: &mut Vec<String>,
) -> Visible<Vec<WebhookReport>> {
    let names = &installation.names;
    if matches!(found, Visible::Known(None)) {
        problems.push(format!(
            "the {kind} {} does not exist: the API server does not call the webhook",
            names.full_name()
        ));
    }
    found.map(|found| {
        let webhooks = found.unwrap_or_default().into_iter();
        let reports = webhooks.map(|webhook| {
            let foreign_service = foreign_service(&webhook.client, installation);
            let bundle = webhook.client.ca_bundle.unwrap_or(ByteString(Vec::new())).0;
            let parsed = Certificate::parse_all(&bundle);
            problems.extend(match &foreign_service {
                Some(service) => Some(foreign_problem(
                    &format!("the {kind} {}", names.full_name()),
                    service,
                    installation,
                )),
                None => bundle_problem(
                    &webhook.name,
                    names.tls_secret(),
                    &bundle,
                    parsed.as_deref(),
                    trusted,
                ),
            });
            WebhookReport {
                kind,
                webhook: webhook.name,
                failure_policy: webhook.failure_policy.unwrap_or_default(),
                ca_bundle: parsed.unwrap_or_default(),
                foreign_service,
            }
        });
        reports.collect()
    })
}

/// Returns the Service that the API server calls, as `namespace/name`, if it is not the one of this installation. A URL
/// may lead to this installation.
pub(crate) fn foreign_service(
    client: &WebhookClientConfig,
    installation: &Installation<'_>,
) -> Option<String> {
    let service = client.service.as_ref()?;
    let own = installation.names.webhook_service();
    let is_own = service.namespace == installation.home && service.name == own;
    (!is_own).then(|| format!("{}/{}", service.namespace, service.name))
}

/// Returns the problem that a configuration refers to the Service of another installation.
pub(crate) fn foreign_problem(
    configuration: &str,
    service: &str,
    installation: &Installation<'_>,
) -> String {
    format!(
        "{configuration} refers to the Service {service}, and not to {}/{}: it belongs to another installation, and \
         this one does not modify it. Install one of the two under another name, or uninstall it",
        installation.home,
        installation.names.webhook_service()
    )
}

/// Returns what is wrong with a CA bundle. During a rotation, one of its CAs may be about to expire.
fn bundle_problem(
    webhook: &str,
    secret: &str,
    bundle: &[u8],
    parsed: Option<&[Certificate]>,
    trusted: Option<&[u8]>,
) -> Option<String> {
    let what = format!("the CA bundle of {webhook}");
    if bundle.is_empty() {
        return Some(format!(
            "{what} is empty: the API server cannot call the webhook"
        ));
    }
    let Some(parsed) = parsed else {
        return Some(format!("{what} contains no valid PEM certificate"));
    };
    let now = Timestamp::now();
    let mut problems = parsed.iter().map(|certificate| certificate.problem(now));
    let has_valid = problems.clone().any(|problem| problem.is_none());
    if let Some(problem) = problems.find_map(|problem| problem).filter(|_| !has_valid) {
        return Some(format!("{what}: the CA {problem}"));
    }
    let differs = trusted.is_some_and(|trusted| trusted != bundle);
    differs.then(|| {
        format!(
            "{what} is not the one in the Secret {secret}: the API server may reject the serving certificate"
        )
    })
}

fn serving(
    secret: Visible<Option<SecretCertificates>>,
    names: &InstalledNames,
    has_own_files: bool,
    problems: &mut Vec<String>,
) -> Visible<Vec<Certificate>> {
    let Some(secret) = secret.known() else {
        return secret.map(|_| Vec::new());
    };
    let Some(secret) = secret else {
        if !has_own_files {
            problems.push(format!(
                "the Secret {} does not exist: the webhook has no serving certificate",
                names.tls_secret()
            ));
        }
        return Visible::because("no Secret");
    };
    let Some(serving) = Certificate::parse_all(&secret.serving) else {
        problems.push("the serving certificate in the Secret is not valid PEM".to_owned());
        return Visible::because("not valid PEM");
    };
    let problem = serving
        .first()
        .and_then(|leaf| leaf.problem(Timestamp::now()));
    problems.extend(problem.map(|problem| format!("the serving certificate {problem}")));
    Visible::Known(serving)
}
