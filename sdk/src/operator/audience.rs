//! Audiences of kinds.

/// Audience of a kind: the users who may create, change and delete its objects. The generated RBAC roles follow it.
///
/// The question to ask of a kind: what can the creator of an object read, write, start or stop afterwards, and could not before?
/// The controller acts with the rights of its own service account, which the creator does not have.
///
/// | audience | `create`, `delete`, `patch` and `update` | `get`, `list` and `watch` |
/// |---|---|---|
/// | [`Tenants`](Self::Tenants) | users with the built-in role `edit` or `admin` | users with `view` |
/// | [`Administrators`](Self::Administrators) | users with the `ClusterRole` `PROGRAM-administrator` | the same, and users with `view` if the kind is namespaced |
///
/// There is no default: every registration of a kind names its audience.
///
/// ```compile_fail,E0061
/// # use lockstep_sdk::Operator;
/// # use lockstep_sdk::controller::Reconciler;
/// fn register<R: Reconciler>(reconciler: fn() -> R) -> Operator {
///     Operator::of(reconciler)
/// }
/// ```
///
/// ```compile_fail,E0061
/// # use lockstep_sdk::Operator;
/// # use lockstep_sdk::controller::Reconciler;
/// fn register<R: Reconciler>(reconciler: fn() -> R) -> Operator {
///     Operator::new().kind(move |(), _| reconciler())
/// }
/// ```
///
/// ```compile_fail,E0061
/// # use lockstep_sdk::Operator;
/// # use lockstep_sdk::controller::Reconciler;
/// fn register<R: Reconciler>(reconciler: fn() -> R) -> Operator {
///     Operator::new().kind_that_owns(&[], Vec::new, move |(), _| reconciler())
/// }
/// ```
///
/// With an audience, the same code compiles:
///
/// ```
/// # use lockstep_sdk::{Audience, Operator};
/// # use lockstep_sdk::controller::Reconciler;
/// fn register<R: Reconciler>(reconciler: fn() -> R) -> Operator {
///     Operator::of(Audience::Tenants, reconciler)
/// }
///
/// fn register_one<R: Reconciler>(reconciler: fn() -> R) -> Operator {
///     Operator::new().kind(Audience::Tenants, move |(), _| reconciler())
/// }
///
/// fn register_owner<R: Reconciler>(reconciler: fn() -> R) -> Operator {
///     Operator::new().kind_that_owns(Audience::Administrators, &[], Vec::new, move |(), _| reconciler())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Users of single namespaces, who need not trust each other. An object of such a kind gives its creator nothing that the
    /// creator did not have, or only what quotas and lists of an administrator allow. The kind must be namespaced.
    Tenants,
    /// Administrators of the cluster, and users whom they trust with more than a namespace. An object of such a kind reads,
    /// writes or starts what its creator could not.
    Administrators,
}

#[cfg(test)]
mod tests;
