//! Names of the objects of an installation.

/// Label of the Deployments and their Pods, whatever their names are. Its value is the name of the program.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// Name of the Service port.
pub const SERVICE_PORT: &str = "https";
/// Annotation that allows the deletion of a CRD, with the value `true`.
pub const ALLOW_DELETION: &str = "lockstep.dev/allow-deletion";

/// Names of the objects of an installation without Helm. All of them begin with the name of the program, so that
/// programs of several authors can be installed in one cluster.
///
/// ```
/// use lockstep_manifests::names::Names;
///
/// let names = Names::new("greeter", "demo.example.com");
/// assert_eq!(names.namespace, "greeter-system");
/// assert_eq!(names.service, "greeter-webhook");
/// assert_eq!(names.validating_webhook, "validate.demo.example.com");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Name of the program, and value of the label `app.kubernetes.io/name` of every object.
    pub program: String,
    /// Name of the Deployment.
    pub deployment: String,
    /// Namespace of the installation.
    pub namespace: String,
    /// Name of the webhook's Service.
    pub service: String,
    /// Name of the Pods' `ServiceAccount`.
    pub service_account: String,
    /// Name of the Secret with the webhook's CA and TLS key pair.
    pub tls_secret: String,
    /// Name of both webhook configurations.
    pub webhook_configuration: String,
    /// Name of the validating webhook.
    pub validating_webhook: String,
    /// Name of the mutating webhook, which sets defaults.
    pub mutating_webhook: String,
    /// Name of the Lease for leader election of the controllers.
    pub lease: String,
    /// Name of the controller's Deployment, if it runs in Pods of its own.
    pub controller: String,
    /// Name of the optional `ConfigMap` with the policy, in its key `policy.yaml`.
    pub policy: String,
    /// Name of the policy and its binding that deny the deletion of the CRDs.
    pub crd_deletion_policy: String,
    /// Name of the `ClusterRole` with the rights on the kinds for administrators.
    pub administrator: String,
    /// Name of the `ClusterRole` with the rights to read Secrets, which is bound in single namespaces.
    pub secret_viewer: String,
    /// Name of the `ClusterRole` with the rights to read and write Secrets, which is bound in single namespaces.
    pub secret_editor: String,
    /// Earlier name of the `ClusterRole` with the rights to read and write Secrets.
    pub secret_reader: String,
}

impl Names {
    /// Returns the names for a program. The names of the webhooks, which the API server prints in its messages, end with
    /// a domain.
    #[must_use]
    pub fn new(program: &str, webhook_domain: &str) -> Self {
        let with = |suffix: &str| format!("{program}-{suffix}");
        Self {
            program: program.to_owned(),
            deployment: program.to_owned(),
            namespace: with("system"),
            service: with("webhook"),
            service_account: program.to_owned(),
            tls_secret: with("webhook-tls"),
            webhook_configuration: program.to_owned(),
            validating_webhook: format!("validate.{webhook_domain}"),
            mutating_webhook: format!("mutate.{webhook_domain}"),
            lease: with("controller"),
            controller: with("controller"),
            policy: with("policy"),
            crd_deletion_policy: with("crd-deletion"),
            administrator: with("administrator"),
            secret_viewer: with("secret-viewer"),
            secret_editor: with("secret-editor"),
            secret_reader: with("secret-reader"),
        }
    }

    /// Returns the names in the files of the Helm chart: template expressions, where a release chooses the name. Their
    /// quotes are backticks, because YAML would escape double quotes.
    pub(crate) fn in_chart(&self) -> Self {
        let include = |template: &str| format!("{{{{ include `{}.{template}` . }}}}", self.program);
        Self {
            namespace: "{{ .Release.Namespace }}".to_owned(),
            deployment: include("fullname"),
            service: include("serviceName"),
            tls_secret: include("tlsSecretName"),
            webhook_configuration: include("fullname"),
            lease: include("leaseName"),
            ..self.clone()
        }
    }
}
