//! Service of the webhook: the CA bundle is injected only into a `clientConfig` that refers to it.

use serde_json::Value;

/// Service of the webhook of one installation, and the other names under which API servers may call that webhook.
///
/// ```
/// use lockstep_certs::WebhookService;
/// use serde_json::json;
///
/// let own = WebhookService {
///     namespace: "team-a".to_owned(),
///     name: "webhook".to_owned(),
///     dns_names: vec!["webhook.example.com".to_owned()],
/// };
/// let of = |namespace: &str| json!({"service": {"namespace": namespace, "name": "webhook"}});
/// assert!(own.is_called_by(&of("team-a")));
/// assert!(!own.is_called_by(&of("team-b")));
/// assert!(own.is_called_by(&json!({"url": "https://webhook.example.com:8443/validate"})));
/// assert_eq!(WebhookService::server(&of("team-b")), "the Service team-b/webhook");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebhookService {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// DNS names of the webhook, for configurations that contain a URL.
    pub dns_names: Vec<String>,
}

impl WebhookService {
    /// Returns true if a `clientConfig` refers to this Service, or to a URL with a DNS name of the webhook.
    #[must_use]
    pub fn is_called_by(&self, client_config: &Value) -> bool {
        let service = &client_config["service"];
        if service.is_object() {
            return service["namespace"] == self.namespace && service["name"] == self.name;
        }
        let host = client_config["url"].as_str().and_then(host);
        host.is_some_and(|host| self.dns_names.contains(&host))
    }

    /// Returns the server that a `clientConfig` refers to, as text.
    #[must_use]
    pub fn server(client_config: &Value) -> String {
        let service = &client_config["service"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if service.is_object() {
            let (namespace, name) = (text(&service["namespace"]), text(&service["name"]));
            return format!("the Service {namespace}/{name}");
        }
        format!("the URL {}", text(&client_config["url"]))
    }
}

/// Returns the host of a URL.
fn host(url: &str) -> Option<String> {
    let url: http::Uri = url.parse().ok()?;
    url.host().map(str::to_owned)
}
