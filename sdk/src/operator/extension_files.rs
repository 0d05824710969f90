//! Files of an extension of rulesets, which may change while the program runs.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

#[cfg(doc)]
use lockstep_shared_validation::Ruleset;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Value that the Rust rules of an operator read, see [`Ruleset::with_extension`].
pub(crate) type Extension = Arc<dyn Any + Send + Sync>;

/// Value that the Rust rules of an operator read, with the files that it is made from.
///
/// ```
/// use std::sync::{Arc, Mutex, PoisonError};
///
/// use lockstep_sdk::{ExtensionReload, JsonFolders, RulesetExtension};
///
/// /// Reserved names, as files list them. Rules read it with `RuleContext::extension`.
/// type ReservedNames = Mutex<Vec<String>>;
///
/// fn extension(mut files: JsonFolders<Vec<String>>) -> RulesetExtension {
///     let names = Arc::new(ReservedNames::default());
///     let reload = {
///         let names = Arc::clone(&names);
///         move || {
///             let is_changed = files.scan();
///             let all = files.files().flat_map(|(_, _, names)| names.iter().cloned());
///             *names.lock().unwrap_or_else(PoisonError::into_inner) = all.collect();
///             ExtensionReload { is_changed, is_valid: files.problems().is_empty() }
///         }
///     };
///     RulesetExtension::new(names).reloaded_by("reserved_names_valid", "1 if all files are valid", reload)
/// }
/// ```
pub struct RulesetExtension {
    pub(crate) value: Extension,
    pub(crate) files: Option<ExtensionFiles>,
}

/// Files that are read again while the program runs.
pub(crate) struct ExtensionFiles {
    metric: &'static str,
    help: &'static str,
    reload: Box<dyn FnMut() -> ExtensionReload + Send>,
}

/// Result of reading the files of an extension again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionReload {
    /// If true, the extension has changed: objects are validated again.
    pub is_changed: bool,
    /// If true, all files are valid and in use.
    pub is_valid: bool,
}

impl RulesetExtension {
    /// Returns an extension that does not change.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(value: Arc<T>) -> Self {
        Self { value, files: None }
    }

    /// Sets a function that reads the files of the extension and changes its value. The commands `webhook` and `controller`
    /// call it once before they validate, and then every few seconds, on a thread for blocking work. The gauge `metric` is 1
    /// while all files are valid.
    ///
    /// # Assumptions
    ///
    /// If a file is invalid, the function reports the error to the log and keeps the last valid content: a typing error must
    /// not stop the webhook.
    #[must_use]
    pub fn reloaded_by(
        mut self,
        metric: &'static str,
        help: &'static str,
        reload: impl FnMut() -> ExtensionReload + Send + 'static,
    ) -> Self {
        self.files = Some(ExtensionFiles {
            metric,
            help,
            reload: Box::new(reload),
        });
        self
    }
}

impl ExtensionFiles {
    /// Reads the files, and reads them again in this interval. Calls `on_change` when the extension has changed.
    pub(crate) fn watch(
        mut self,
        registry: &mut Registry,
        interval: Duration,
        on_change: impl Fn() + Send + 'static,
    ) {
        let valid = Gauge::<i64>::default();
        registry.register(self.metric, self.help, valid.clone());
        valid.set((self.reload)().is_valid.into());
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(interval);
            let mut reload = self.reload;
            loop {
                ticks.tick().await;
                let read = tokio::task::spawn_blocking(move || {
                    let found = reload();
                    (reload, found)
                });
                let found;
                (reload, found) = match read.await {
                    Ok(read) => read,
                    Err(error) => {
                        tracing::error!(%error, metric = self.metric, "the files are not read any more");
                        valid.set(0);
                        return;
                    }
                };
                valid.set(found.is_valid.into());
                if found.is_changed {
                    on_change();
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_is_reported_and_an_invalid_file_is_in_the_metric() {
        let reads = Arc::new(AtomicU32::new(0));
        let (sender, mut changes) = tokio::sync::mpsc::unbounded_channel();
        let of_reload = Arc::clone(&reads);
        let extension =
            RulesetExtension::new(Arc::new(())).reloaded_by("files_valid", "1 if", move || {
                let number = of_reload.fetch_add(1, Ordering::SeqCst);
                ExtensionReload {
                    is_changed: number == 2,
                    is_valid: number < 2,
                }
            });
        let mut registry = Registry::default();
        let files = extension.files.expect("files");
        files.watch(&mut registry, Duration::from_secs(1), move || {
            let _ = sender.send(());
        });
        let metric = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).expect("a text");
            text.contains("files_valid 1\n")
        };
        assert_eq!(reads.load(Ordering::SeqCst), 1, "read before it returns");
        assert!(metric());
        changes.recv().await.expect("a change");
        assert!(reads.load(Ordering::SeqCst) >= 3);
        assert!(!metric());
        assert!(changes.try_recv().is_err(), "only one read found a change");
    }
}
