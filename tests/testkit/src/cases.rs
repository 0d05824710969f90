//! Case files of an author's kinds: each is validated by the command `check`, through the API server with the webhook,
//! and by the controller without the webhook. All of them must give the result that the file expects.

mod at_api_server;
mod case_file;
mod check_result;
mod in_controller;
mod objects;

use std::path::{Path, PathBuf};
use std::process::Command;

use lockstep_envtest::{Cluster, Installation, Options};
use serde_json::json;

pub use self::case_file::{Case, Expected};
pub use self::check_result::{CheckResult, Finding, check};

/// Case files of a program.
///
/// A file is YAML and has an `object`, and `errors` if the object is invalid. An update also has the `old` object. This one
/// expects an error of the rule `service-name`:
///
/// ```yaml
/// object:
///   apiVersion: demo.example.com/v1
///   kind: Greeting
///   metadata:
///     name: 1st
///   spec:
///     text: hello
/// errors:
///   - rule: service-name
///     type: FieldValueInvalid
///     field: metadata.name
///     detail: "must begin with a letter [service-name]"
/// ```
///
/// The rule of an error of the schema is the path of the field and the keyword, such as `spec.text/minLength`, or
/// `spec.members[]/minLength` for the items of a list; it needs no `detail`. The subcommand `rules` lists all rules. A case of an
/// update has the key `old` with the object before it. In the cluster, objects are named after their files. An object keeps its
/// name if an error is about `metadata.name`, or if the name of the file begins with `name-`.
///
/// ```no_run
/// # async fn example() {
/// let cases = lockstep_test::Cases::read("target/debug/greeter", "tests/cases");
/// cases.are_as_expected_everywhere().await;
/// # }
/// ```
pub struct Cases {
    program: PathBuf,
    files: Vec<Case>,
    controller_args: Vec<String>,
    controller_env: Vec<(String, String)>,
}

impl Cases {
    /// Reads the files of a folder. `program` is the path of the executable file: `env!("CARGO_BIN_EXE_NAME")` in an
    /// integration test.
    ///
    /// # Panics
    ///
    /// If the folder has no file, or a file is no case.
    pub fn read(program: impl Into<PathBuf>, folder: impl AsRef<Path>) -> Self {
        Self {
            program: program.into(),
            files: Case::read_folder(folder.as_ref()),
            controller_args: Vec::new(),
            controller_env: Vec::new(),
        }
    }

    /// Adds an argument of the controller, such as the address of a simulator. A controller that manages something outside the
    /// cluster needs one that answers: an object with a finalizer is deleted only after its cleanup.
    #[must_use]
    pub fn controller_arg(mut self, argument: impl Into<String>) -> Self {
        self.controller_args.push(argument.into());
        self
    }

    /// Adds an environment variable of the controller.
    #[must_use]
    pub fn controller_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.controller_env.push((name.into(), value.into()));
        self
    }

    /// Validates every case by the command `check`, through an API server that calls the webhook, and in the controller
    /// without the webhook.
    ///
    /// # Panics
    ///
    /// If a result is not the expected one, or the program cannot be installed.
    pub async fn are_as_expected_everywhere(&self) {
        let results = self.by_check();
        let cluster = Cluster::start_without_workloads().await;
        let cluster = cluster.expect("the control plane starts");
        let mut installation = self.install(&cluster).await;
        let cases = || self.files.iter().zip(&results);
        for (case, result) in cases() {
            at_api_server::is_equal(&cluster, case, result).await;
        }
        installation
            .remove_webhook_configurations(&cluster)
            .expect("the webhook configurations are deleted");
        installation.webhook().kill();
        // The API server itself denies the others.
        let stored = cases().filter(|(_, result)| result.is_for_rust_alone());
        for (case, result) in stored {
            in_controller::is_equal(&cluster, case, result).await;
        }
    }

    /// Validates every case by the command `check`, and returns the results.
    ///
    /// # Panics
    ///
    /// If a result is not the expected one.
    pub fn by_check(&self) -> Vec<CheckResult> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut lines = String::new();
        for (id, case) in self.files.iter().enumerate() {
            let mut line = json!({"id": id, "object": case.object.to_string()});
            if let Some(old) = &case.old {
                line["operation"] = json!("UPDATE");
                line["oldObject"] = json!(old.to_string());
            }
            lines += &format!("{line}\n");
        }
        let file = directory.path().join("cases.jsonl");
        std::fs::write(&file, lines).expect("a file");
        let found = check(&self.program, &["--input-format=jsonl"], &file);
        assert_eq!(found.len(), self.files.len(), "results of `check`");
        let compared = self.files.iter().zip(&found);
        compared
            .map(|(case, result)| CheckResult::expected_by(case, result))
            .collect()
    }

    /// Installs all kinds of the program and starts its processes.
    async fn install(&self, cluster: &Cluster) -> Installation {
        let manifests = cluster.directory().join("manifests");
        let mut command = Command::new(&self.program);
        command.arg("manifests").arg(&manifests);
        let output = command.output().expect("the program runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let options = Options {
            program: self.program.clone(),
            controller_env: self.controller_env.clone(),
            controller_args: self.controller_args.clone(),
            controller_server: None,
        };
        let installation = Installation::apply(cluster, &manifests, options).await;
        let mut installation = installation.expect("the manifests are applied");
        if let Err(error) = installation.start(cluster).await {
            panic!("{error}\n{}", installation.output());
        }
        installation
    }
}
