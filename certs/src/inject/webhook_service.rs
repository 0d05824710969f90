//! Service of the webhook: the CA bundle is injected only into a `clientConfig` that refers to it.

use serde_json::Value;

/// Service of the webhook of one installation.
///
/// Two installations with configurations of the same name differ by their Services. A URL does not show whose webhook it
/// leads to, such as that of a proxy in front of a control plane outside the cluster: it counts as the own one.
///
/// ```
/// use lockstep_certs::WebhookService;
/// use serde_json::json;
///
/// let own = WebhookService {
///     namespace: "team-a".to_owned(),
///     name: "webhook".to_owned(),
/// };
/// let of = |namespace: &str| json!({"service": {"namespace": namespace, "name": "webhook"}});
/// assert!(own.is_called_by(&of("team-a")));
/// assert!(!own.is_called_by(&of("team-b")));
/// assert!(own.is_called_by(&json!({"url": "https://webhook.example.com:8443/validate"})));
/// assert!(own.is_called_by(&json!({"url": "https://192.0.2.1/validate"})));
/// assert_eq!(WebhookService::server(&of("team-b")), "the Service team-b/webhook");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebhookService {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
}

impl WebhookService {
    /// Returns true if a `clientConfig` refers to this Service, or to a URL.
    #[must_use]
    pub fn is_called_by(&self, client_config: &Value) -> bool {
        let service = &client_config["service"];
        !service.is_object()
            || (service["namespace"] == self.namespace && service["name"] == self.name)
    }

    /// Returns the Service that a `clientConfig` refers to, as text.
    #[must_use]
    pub fn server(client_config: &Value) -> String {
        let text = |key: &str| client_config["service"][key].as_str().unwrap_or_default();
        format!("the Service {}/{}", text("namespace"), text("name"))
    }
}
