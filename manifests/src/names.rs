//! What things are called in a cluster.

/// The namespace of an installation.
pub const NAMESPACE: &str = "lockstep-system";
/// The Deployment, and the label of everything.
pub const APP: &str = "lockstep";
/// The Service in front of the gate.
pub const SERVICE: &str = "lockstep-webhook";
/// The name of the Service's port.
pub const SERVICE_PORT: &str = "https";
/// The service account of the Pods.
pub const SERVICE_ACCOUNT: &str = "lockstep";
/// The Secret with the gate's keys.
pub const TLS_SECRET: &str = "lockstep-webhook-tls";
/// Both webhook configurations.
pub const WEBHOOK_CONFIGURATION: &str = "lockstep";
/// The webhook that judges.
pub const VALIDATING_WEBHOOK: &str = "validate.lockstep.dev";
/// The webhook that fills defaults.
pub const MUTATING_WEBHOOK: &str = "mutate.lockstep.dev";
/// The Lease that controllers elect their leader by.
pub const LEASE: &str = "lockstep-controller";
/// The `ConfigMap` with the policy, if any: its key `policy.yaml`.
pub const POLICY: &str = "lockstep-policy";
