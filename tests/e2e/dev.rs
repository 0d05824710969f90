//! The command `dev`: the first command that a new user runs, and the commands that it suggests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::env::root;

/// Demo that runs until the value is dropped.
struct Demo {
    process: Child,
    /// Lines that it has printed until it was ready.
    printed: Vec<String>,
}

impl Demo {
    fn start() -> Self {
        let mut process = dev()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        let stdout = process.stdout.take().expect("a pipe");
        let mut printed = Vec::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let is_last = line.contains("Press Ctrl-C");
            printed.push(line);
            if is_last {
                break;
            }
        }
        Self { process, printed }
    }

    /// Runs a printed line in a shell, as a user who copies it does.
    fn run(&self, line: &str) -> Output {
        let export = self.printed.iter().find(|line| line.starts_with("export"));
        let export = export.expect("a line that sets KUBECONFIG");
        Command::new("sh")
            .args(["-c", &format!("{export}\n{line}")])
            .current_dir(root())
            .output()
            .expect("a shell")
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let id = self.process.id().to_string();
        let stopped = Command::new("kill").args(["-INT", &id]).status();
        if stopped.is_ok_and(|status| status.success()) {
            let _ = self.process.wait();
        }
    }
}

/// The command in the folder of the repository.
fn dev() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    command.arg("dev").current_dir(root());
    command
}

/// Response of the webhook in an answer of `curl`.
fn response(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{complaints}");
    let review: Value = serde_json::from_str(&text).expect("an AdmissionReview");
    review["response"].clone()
}

#[test]
fn the_commands_that_the_demo_suggests_work_as_they_are_printed() {
    let demo = Demo::start();
    assert!(
        demo.printed
            .iter()
            .any(|line| line.contains("Press Ctrl-C")),
        "{}",
        demo.printed.join("\n")
    );
    // A kind whose operator creates no objects needs no other components.
    let started = "Started etcd and kube-apiserver in";
    assert!(demo.printed.iter().any(|line| line.starts_with(started)));

    let lines = |program: &str| {
        let is_call = |line: &&String| {
            let first = line.split(' ').next().unwrap_or_default();
            first == program || first.ends_with(&format!("/{program}"))
        };
        demo.printed
            .iter()
            .filter(is_call)
            .cloned()
            .collect::<Vec<_>>()
    };
    let kubectl = lines("kubectl");
    assert!(kubectl.len() >= 4, "{kubectl:?}");
    for line in kubectl {
        let output = demo.run(&line);
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.success(),
            !line.contains("invalid"),
            "{line}: {text}"
        );
        assert!(!text.contains("refused"), "{line}: {text}");
    }

    let mut responses: BTreeMap<_, _> = lines("curl")
        .iter()
        .map(|line| {
            let data = line.split("--data @").nth(1).expect("a file");
            let path = Path::new(data.split(' ').next().expect("a path"));
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (name, response(&demo.run(line)))
        })
        .collect();
    let mut response = |name: &str| {
        let found = responses.remove(name);
        let found = found.unwrap_or_else(|| panic!("no curl for {name}"));
        let file = root().join(format!("examples/reviews/{name}.json"));
        let review = std::fs::read_to_string(file).expect("a review");
        let review: Value = serde_json::from_str(&review).expect("a review");
        assert_eq!(found["uid"], review["request"]["uid"]);
        found
    };
    for allowed in ["validate-create", "validate-update", "validate-delete"] {
        assert_eq!(response(allowed)["allowed"], true, "{allowed}");
    }
    let denied = response("validate-create-invalid");
    assert_eq!(
        (&denied["allowed"], &denied["status"]["code"]),
        (&false.into(), &422.into())
    );
    let fields = |denied: &Value| {
        let causes = denied["status"]["details"]["causes"].as_array().cloned();
        let causes = causes.unwrap_or_default();
        let fields = causes
            .iter()
            .map(|cause| cause["field"].as_str().unwrap_or_default().to_owned());
        fields.collect::<Vec<_>>()
    };
    assert_eq!(
        fields(&denied),
        ["spec.credentials.username", "spec.maintenanceWindow"]
    );
    assert_eq!(
        fields(&response("validate-update-invalid")),
        ["spec.engineVersion"]
    );
    let changed = response("mutate-create");
    assert_eq!(
        (&changed["allowed"], &changed["patchType"]),
        (&true.into(), &"JSONPatch".into())
    );
    assert!(
        responses.is_empty(),
        "without an expected answer: {responses:?}"
    );
}

/// Runs the demo where nothing has been built, with other environment variables, and returns its error.
fn error_of(name: &str, variables: &[(&str, &str)]) -> String {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("dev-{name}"));
    let _ = std::fs::remove_dir_all(&target);
    let output = dev()
        .arg("--once")
        .env_remove("KUBEBUILDER_ASSETS")
        .env("CARGO_TARGET_DIR", &target)
        .envs(variables.iter().copied())
        .output()
        .expect("the program runs");
    assert!(!output.status.success());
    let _ = std::fs::remove_dir_all(&target);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn without_go_or_python_the_demo_names_what_to_install() {
    let tools = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dev-path");
    let _ = std::fs::remove_dir_all(&tools);
    std::fs::create_dir_all(&tools).expect("a folder");
    let path = tools.to_str().expect("a path");
    let error = error_of("nothing", &[("PATH", path)]);
    assert!(
        error.contains("cannot find `go` on the PATH") || error.contains("cannot find `python3`"),
        "{error}"
    );
    assert!(error.contains("install "), "{error}");
}

#[test]
fn without_network_the_demo_says_so_and_names_the_alternatives() {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dev-modules");
    let nowhere = "http://127.0.0.1:9";
    let error = error_of(
        "network",
        &[
            ("GOPROXY", nowhere),
            ("GOMODCACHE", home.to_str().expect("a path")),
            ("GOFLAGS", "-modcacherw"),
            ("PIP_CONFIG_FILE", "/dev/null"),
            ("PIP_INDEX_URL", nowhere),
            ("PIP_RETRIES", "0"),
        ],
    );
    assert!(error.contains("the network was not reachable"), "{error}");
    assert!(
        error.contains("KUBEBUILDER_ASSETS") || error.contains("PIP_INDEX_URL"),
        "{error}"
    );
}
