//! Namespace for which work is done.

use tokio::task_local;

task_local! {
    static NAMESPACE: String;
}

/// Does work for the objects of a namespace: what it waits for together with others, it gets in turn with those of other
/// namespaces.
pub(crate) async fn within<F: Future>(namespace: &str, work: F) -> F::Output {
    NAMESPACE.scope(namespace.to_owned(), work).await
}

/// Returns the namespace for which this task works. It is empty outside of a reconciliation and for cluster-scoped objects.
pub(crate) fn current() -> String {
    NAMESPACE.try_with(Clone::clone).unwrap_or_default()
}
