//! Related objects of the objects that `audit` validates, and its findings.

use clap::{ArgMatches, Args, Command};
use lockstep_shared_validation::Policy;
use serde_json::Value;

/// Creates the snapshot of an operator from its arguments.
pub(crate) struct AuditSnapshotDefinition {
    /// Adds the arguments to the command `audit`.
    pub(crate) add_arguments: fn(Command) -> Command,
    pub(crate) create: CreateSnapshotFn,
}

/// Creates a snapshot from the arguments of the command `audit`.
pub(crate) type CreateSnapshotFn =
    Box<dyn Fn(&ArgMatches) -> anyhow::Result<Box<dyn AuditSnapshot>> + Send + Sync>;

impl AuditSnapshotDefinition {
    pub(crate) fn new<A: Args + 'static, T: AuditSnapshot + 'static>(create: fn(A) -> T) -> Self {
        Self {
            add_arguments: A::augment_args,
            create: Box::new(move |arguments| {
                Ok(Box::new(create(A::from_arg_matches(arguments)?)))
            }),
        }
    }
}

/// Snapshot of objects in a cluster, from which `audit` takes what the rules of a kind receive as [related
/// objects](lockstep_shared_validation::RuleContext::related). It replaces
/// [`Reconciler::related_for_validation`](lockstep_controller::Reconciler::related_for_validation), which needs a
/// running controller.
///
/// # Expected flow
///
/// First, all objects of the included kinds are added, and the Namespaces if they are included. Then the related objects of each
/// validated object are read, and finally the findings.
///
/// ```
/// use lockstep_sdk::AuditSnapshot;
/// use serde_json::{Value, json};
///
/// /// Names of all hosts, so that a rule finds one that occurs twice.
/// #[derive(Default)]
/// struct Hosts(Vec<Value>);
///
/// impl AuditSnapshot for Hosts {
///     fn includes(&self, kind: &str) -> bool {
///         kind == "Website"
///     }
///
///     fn add(&mut self, object: &Value) {
///         self.0.push(object["spec"]["host"].clone());
///     }
///
///     fn related(&self, _object: &Value) -> Value {
///         json!({"hosts": self.0})
///     }
/// }
/// ```
pub trait AuditSnapshot {
    /// Returns true if objects of this kind belong in the snapshot.
    fn includes(&self, kind: &str) -> bool;

    /// Adds an object.
    fn add(&mut self, object: &Value);

    /// Returns what the rules receive for an object as related objects, or null.
    fn related(&self, object: &Value) -> Value;

    /// Returns true if Namespaces belong in the snapshot, too.
    fn includes_namespaces(&self) -> bool {
        false
    }

    /// Adds a Namespace, of which only the metadata is read.
    fn add_namespace(&mut self, _namespace: &Value) {}

    /// Returns the findings besides the results of the rules, with the policy that they follow. It is not called if the
    /// Namespaces are included and cannot be read.
    fn findings(&self, _policy: &Policy) -> Vec<AuditFinding> {
        Vec::new()
    }
}

/// Report of `audit` on something that no rule of a kind describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFinding {
    /// Stable id, as that of a rule.
    pub id: &'static str,
    /// If true, objects will not be reconciled before this is corrected, and `audit` exits with the code 1. Otherwise, it is for
    /// information.
    pub is_error: bool,
    /// Message for people: what was found and what to do.
    pub message: String,
    /// Namespace whose content the finding is about: `audit` lists the users, groups and service accounts that can read it.
    pub access_to: Option<SensitiveNamespace>,
}

impl AuditFinding {
    /// Returns true unless the finding is about another namespace than the given one.
    pub(crate) fn concerns(&self, namespace: Option<&str>) -> bool {
        let own = self.access_to.as_ref().map(|own| own.name.as_str());
        own.is_none() || namespace.is_none() || own == namespace
    }
}

/// Namespace with Secrets that contain more than the users of the namespace may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitiveNamespace {
    /// Name of the namespace.
    pub name: String,
    /// Names of the CRDs whose objects run Pods of their author's choice in the namespace. Who may create such an object can read
    /// the Secrets of the namespace, as with a Pod.
    pub workloads: Vec<String>,
}
