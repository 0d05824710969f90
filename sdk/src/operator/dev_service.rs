//! Services that the command `dev` starts for an operator.

use std::any::Any;
use std::path::{Path, PathBuf};

use futures::FutureExt;
use futures::future::LocalBoxFuture;

/// Service that an operator needs besides the cluster, as a simulation for the command `dev`.
///
/// ```
/// use std::net::TcpListener;
///
/// use lockstep_sdk::{DevService, RunningService};
///
/// let service = DevService::new("greetings simulator", async |_logs| {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let url = format!("http://{}", listener.local_addr()?);
///     Ok(RunningService {
///         environment: vec![("GREETINGS_URL".to_owned(), url)],
///         guard: Box::new(listener),
///     })
/// })
/// .controller_arg("--greetings-resync-period=1s");
/// ```
pub struct DevService {
    pub(crate) name: &'static str,
    pub(crate) controller_args: Vec<String>,
    install: Option<fn() -> anyhow::Result<()>>,
    start: Box<
        dyn Fn(PathBuf) -> LocalBoxFuture<'static, anyhow::Result<RunningService>> + Send + Sync,
    >,
}

/// Running service. It is stopped when the value is dropped.
pub struct RunningService {
    /// Environment variables with which the controller uses the service.
    pub environment: Vec<(String, String)>,
    /// Value that stops the service when it is dropped.
    pub guard: Box<dyn Any>,
}

impl DevService {
    /// Creates a service from its name and the function that starts it. The function receives the folder for log
    /// files.
    pub fn new<F>(name: &'static str, start: impl Fn(PathBuf) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = anyhow::Result<RunningService>> + 'static,
    {
        Self {
            name,
            controller_args: Vec::new(),
            install: None,
            start: Box::new(move |logs| start(logs).boxed_local()),
        }
    }

    /// Adds an argument of the controller, which applies only in `dev`.
    #[must_use]
    pub fn controller_arg(mut self, argument: &str) -> Self {
        self.controller_args.push(argument.to_owned());
        self
    }

    /// Sets a function that installs the programs of the service, if they are missing. It is called before the start
    /// of the cluster, on a thread of its own, while the programs of the cluster are built.
    #[must_use]
    pub fn installed_by(mut self, install: fn() -> anyhow::Result<()>) -> Self {
        self.install = Some(install);
        self
    }

    pub(crate) async fn install(&self) -> anyhow::Result<()> {
        match self.install {
            Some(install) => tokio::task::spawn_blocking(install).await?,
            None => Ok(()),
        }
    }

    pub(crate) async fn start(&self, logs: &Path) -> anyhow::Result<RunningService> {
        (self.start)(logs.to_owned()).await
    }
}
