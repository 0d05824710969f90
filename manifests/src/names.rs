//! Names of the objects of an installation.

/// Namespace of the installation.
pub const NAMESPACE: &str = "lockstep-system";
/// Label of the Deployments and their Pods, whatever their names are. Its value is [`APP`].
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// Name of the Deployment, and value of the label `app.kubernetes.io/name` of every object.
pub const APP: &str = "lockstep";
/// Name of the webhook's Service.
pub const SERVICE: &str = "lockstep-webhook";
/// Name of the Service port.
pub const SERVICE_PORT: &str = "https";
/// Name of the Pods' `ServiceAccount`.
pub const SERVICE_ACCOUNT: &str = "lockstep";
/// Name of the Secret with the webhook's CA and TLS key pair.
pub const TLS_SECRET: &str = "lockstep-webhook-tls";
/// Name of both webhook configurations.
pub const WEBHOOK_CONFIGURATION: &str = "lockstep";
/// Name of the validating webhook.
pub const VALIDATING_WEBHOOK: &str = "validate.lockstep.dev";
/// Name of the mutating webhook, which sets defaults.
pub const MUTATING_WEBHOOK: &str = "mutate.lockstep.dev";
/// Name of the Lease for leader election of the controllers.
pub const LEASE: &str = "lockstep-controller";
/// Name of the optional `ConfigMap` with the policy, in its key `policy.yaml`.
pub const POLICY: &str = "lockstep-policy";
/// Name of the policy and its binding that deny the deletion of the CRDs.
pub const CRD_DELETION_POLICY: &str = "lockstep-crd-deletion";
/// Name of the `ClusterRole` with the rights on Secrets, which is bound in single namespaces.
pub const SECRET_READER: &str = "lockstep-secret-reader";
/// Annotation that allows the deletion of a CRD, with the value `true`.
pub const ALLOW_DELETION: &str = "lockstep.dev/allow-deletion";

/// Names that depend on the installation. The files of the Helm chart contain template expressions instead.
pub(crate) struct Names {
    pub(crate) namespace: &'static str,
    pub(crate) deployment: &'static str,
    pub(crate) service: &'static str,
    pub(crate) tls_secret: &'static str,
    pub(crate) webhook_configuration: &'static str,
    pub(crate) lease: &'static str,
}

/// Names in the manifests.
pub(crate) const DEFAULT: Names = Names {
    namespace: NAMESPACE,
    deployment: APP,
    service: SERVICE,
    tls_secret: TLS_SECRET,
    webhook_configuration: WEBHOOK_CONFIGURATION,
    lease: LEASE,
};
