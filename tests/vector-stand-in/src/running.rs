//! The running configuration, and its replacement by another one.

use std::path::{Path, PathBuf};

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::log::{log, now};
use crate::{configuration, reports, secrets, stuck, validator};

/// State of the process.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Running {
    /// Number of attempts to load a configuration, including those that failed.
    pub(crate) loads: u64,
    /// Time of the last successful one, in milliseconds since 1970.
    loaded_at: u64,
    /// The configuration, with references instead of the values of secrets.
    pub(crate) configuration: Value,
    /// Digest of these values.
    secrets: String,
    /// Reason why the last change was rejected.
    rejected: Option<String>,
}

/// Process with a running configuration.
pub(crate) struct Process {
    directory: PathBuf,
    running: watch::Sender<Running>,
}

impl Process {
    /// Loads the configuration of a directory.
    ///
    /// # Errors
    ///
    /// Vector would not start with it.
    pub(crate) async fn start(directory: PathBuf) -> anyhow::Result<Self> {
        let (configuration, secrets) = load(&directory).await?;
        let running = Running {
            loads: 1,
            loaded_at: now(),
            configuration,
            secrets,
            rejected: None,
        };
        log("INFO vector: Vector has started.");
        reports::print(&Value::Null, &running.configuration);
        Ok(Self {
            directory,
            running: watch::Sender::new(running),
        })
    }

    /// Returns the state, and each later one.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Running> {
        self.running.subscribe()
    }

    /// Loads the configuration again. If it is not valid, the running one is kept.
    pub(crate) async fn reload(&self) {
        let loaded = self.load_again().await;
        if let Ok((configuration, _)) = &loaded {
            log(
                "INFO vector::topology::running: Reloading running topology with new configuration.",
            );
            let before = self.running.borrow().configuration.clone();
            stuck::wait(&before, configuration).await;
        }
        self.running.send_modify(|running| {
            running.loads += 1;
            match loaded {
                Ok((configuration, secrets)) => {
                    reports::print(&running.configuration, &configuration);
                    log("INFO vector: Vector has reloaded.");
                    running.loaded_at = now();
                    running.configuration = configuration;
                    running.secrets = secrets;
                    running.rejected = None;
                }
                Err(error) => {
                    log(&format!(
                        "ERROR vector::topology: Configuration error. error={error:#}"
                    ));
                    log("ERROR vector: Reload was not successful.");
                    running.rejected = Some(format!("{error:#}"));
                }
            }
        });
    }

    async fn load_again(&self) -> anyhow::Result<(Value, String)> {
        let (configuration, secrets) = load(&self.directory).await?;
        let running = self.running.borrow();
        let changed = configuration::changed_global_options(&running.configuration, &configuration);
        if !changed.is_empty() {
            bail!("global options changed: {}", changed.join(", "));
        }
        Ok((configuration, secrets))
    }
}

/// Returns the configuration of a directory, and a digest of the values of its secrets.
async fn load(directory: &Path) -> anyhow::Result<(Value, String)> {
    let directory = directory.to_owned();
    let loaded = tokio::task::spawn_blocking(move || {
        let configuration = configuration::read(&directory)?;
        let secrets = secrets::digest(&configuration)?;
        validator::validate(&directory, &configuration)?;
        Ok((configuration, secrets))
    });
    loaded.await?
}
