//! Access of the controller to the Secrets of single namespaces.

/// Rights on the Secrets of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretRights {
    /// Rights to read and watch Secrets.
    View,
    /// Rights to read, create, change and delete Secrets.
    Edit,
}

/// Names by which an administrator grants the controller the rights on the Secrets of a namespace.
///
/// ```
/// use lockstep_controller::{SecretAccess, SecretRights};
///
/// let access = SecretAccess::ByBinding {
///     viewer: "greeter-secret-viewer".to_owned(),
///     editor: "greeter-secret-editor".to_owned(),
///     service_account: "greeter-system:greeter".to_owned(),
/// };
/// assert_eq!(
///     access.remedy(SecretRights::View, "team-a"),
///     "run `kubectl create rolebinding greeter-secret-viewer --namespace team-a --clusterrole=greeter-secret-viewer \
///      --serviceaccount=greeter-system:greeter`"
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecretAccess {
    /// The administrator binds one of two `ClusterRole`s in the namespace.
    ByBinding {
        /// Name of the `ClusterRole` with the rights to read.
        viewer: String,
        /// Name of the `ClusterRole` with the rights to read and write.
        editor: String,
        /// Namespace and name of the service account of the controller, separated by `:`.
        service_account: String,
    },
    /// The role of the controller in the namespace contains the rights: the installation is limited to some namespaces.
    #[default]
    ByRole,
}

impl SecretAccess {
    /// Returns the instruction for an administrator if the rights are missing in a namespace, as a part of a sentence.
    #[must_use]
    pub fn remedy(&self, rights: SecretRights, namespace: &str) -> String {
        match self {
            Self::ByBinding {
                viewer,
                editor,
                service_account,
            } => {
                let role = match rights {
                    SecretRights::View => viewer,
                    SecretRights::Edit => editor,
                };
                format!(
                    "run `kubectl create rolebinding {role} --namespace {namespace} --clusterrole={role} \
                     --serviceaccount={service_account}`"
                )
            }
            Self::ByRole => format!(
                "apply the Role of the manifests in the namespace {namespace} again: it contains the rights on Secrets"
            ),
        }
    }
}
