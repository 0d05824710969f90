//! A server with a certificate and a token, and a script in place of Vector.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::*;
use crate::client::{Client, ClientError, Connection};
use crate::outcome::Outcome;
use crate::protocol::{Answer, CERTIFICATE, Configuration, KEY, SERVER_NAME, TOKEN};

/// Time in which a condition must become true.
const PATIENCE: Duration = Duration::from_secs(20);

/// Server of a test. Its process of Vector is a script.
struct World {
    folder: TempDir,
    address: SocketAddr,
    certificate: String,
    serving: JoinHandle<Result<(), ServerError>>,
    _stop: watch::Sender<bool>,
}

impl World {
    /// Starts a server with a script.
    async fn start(script: &str, timeout: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["credentials", "work"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let left = folder.path().join("work/configuration-left");
        fs::create_dir(&left).expect("a folder");
        fs::write(left.join("agent.json"), "hunter2").expect("a file");
        let program = folder.path().join("vector");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = Server {
            address,
            credentials: folder.path().join("credentials"),
            work: folder.path().join("work"),
            program: Some(program),
            arguments: ["validate", "--skip-healthchecks"]
                .map(OsString::from)
                .into(),
            timeout,
            concurrency: NonZeroUsize::MIN,
        };
        let (stop, stopping) = watch::channel(false);
        let certificate = write_credentials(folder.path(), "right");
        let serving = tokio::spawn(server.serve_on(listener, stopping));
        Self {
            folder,
            address,
            certificate,
            serving,
            _stop: stop,
        }
    }

    /// Connects, once the server serves its certificate.
    async fn connect(&self, token: &str) -> Connection {
        let client = Client::new(self.certificate.as_bytes(), token).expect("a client");
        let connected = async {
            loop {
                match client.connect(self.address).await {
                    Ok(connection) => return connection,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, connected)
            .await
            .expect("a connection")
    }

    async fn validate(&self, files: &[(&str, &str)]) -> Result<Answer, ClientError> {
        self.connect("right")
            .await
            .validate(&configuration(files))
            .await
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// Waits until a file has a content.
    async fn written(&self, name: &str) -> String {
        let written = async {
            while !self.file(name).ends_with('\n') {
                tokio::task::yield_now().await;
            }
        };
        let written = tokio::time::timeout(PATIENCE, written).await;
        written.expect("a file");
        self.file(name)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Writes a new certificate and a token. Returns the certificate.
fn write_credentials(folder: &Path, token: &str) -> String {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([SERVER_NAME.to_owned()]).expect("a certificate");
    let files = [
        (KEY, signing_key.serialize_pem()),
        (TOKEN, token.to_owned()),
        (CERTIFICATE, cert.pem()),
    ];
    for (name, content) in files {
        fs::write(folder.join("credentials").join(name), content).expect("a file");
    }
    cert.pem()
}

fn configuration(files: &[(&str, &str)]) -> Configuration {
    let files = files.iter();
    let files: BTreeMap<_, _> = files
        .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
        .collect();
    Configuration { files }
}

#[tokio::test]
async fn vector_gets_the_files_and_its_exit_code_is_the_result() {
    let script = "echo \"$@\"; for last; do :; done; cd \"$last\"; ls -l *.json; cat *.json >&2; exit $(cat code)";
    let world = World::start(script, PATIENCE).await;
    for (code, outcome) in [
        ("0", Outcome::Passed),
        ("78", Outcome::Failed),
        ("126", Outcome::Unfinished),
    ] {
        let files = [
            ("agent.json", "{\"a\": 1}\n"),
            ("agent-1.json", "{}"),
            ("code", code),
        ];
        let answer = world.validate(&files).await.expect("an answer");
        assert_eq!(
            (answer.outcome, answer.exit_code),
            (outcome, code.parse().ok())
        );
        let log = answer.log;
        let work = world.folder.path().join("work");
        let args = format!(
            "validate --skip-healthchecks --config-dir {}/",
            work.display()
        );
        assert!(log.starts_with(&args), "{log}");
        assert!(log.contains("-rw------- "), "{log}");
        // Both streams are part of the log.
        assert!(log.ends_with("{}{\"a\": 1}"), "{log}");
        assert_eq!(
            fs::read_dir(&work).expect("a folder").count(),
            0,
            "the files are deleted, also those of an earlier process"
        );
    }
}

#[tokio::test]
async fn a_signal_and_a_time_out_are_no_result_and_end_all_processes() {
    let world = World::start("kill -9 $$", PATIENCE).await;
    let answer = world.validate(&[]).await.expect("an answer");
    assert_eq!(
        (answer.outcome, answer.exit_code),
        (Outcome::Unfinished, None)
    );
    assert_eq!(answer.log, "signal 9 has ended it");

    let hang = "d=$(dirname \"$0\"); sleep 1000 & echo $! > $d/sleeping; wait";
    let world = World::start(hang, Duration::from_millis(300)).await;
    let answer = world.validate(&[]).await.expect("an answer");
    assert_eq!(answer.outcome, Outcome::Unfinished);
    assert_eq!(answer.log, "it has not ended in time");
    has_ended(&world.written("sleeping").await).await;
}

/// Waits until a process has ended. It is a child of no process of the test.
async fn has_ended(process: &str) {
    let stat = format!("/proc/{}/stat", process.trim());
    let ended = async {
        loop {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            let state = stat.rsplit(')').next().unwrap_or_default().trim();
            if state.is_empty() || state.starts_with('Z') {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended)
        .await
        .expect("it has ended");
}

#[tokio::test]
async fn a_process_that_outlives_vector_does_not_delay_the_answer() {
    let script = "d=$(dirname \"$0\"); sleep 1000 & echo $! > $d/sleeping; echo bad; exit 78";
    let world = World::start(script, PATIENCE).await;
    let answer = world.validate(&[]).await.expect("an answer");
    assert_eq!(
        (answer.outcome, answer.log.as_str()),
        (Outcome::Failed, "bad")
    );
    has_ended(&world.written("sleeping").await).await;
}

#[tokio::test]
async fn one_validation_runs_at_a_time_and_only_a_few_wait() {
    let script = "d=$(dirname \"$0\"); mkdir $d/only || exit 99; echo x >> $d/runs; while [ ! -e $d/go ]; do sleep 0.01; done; rmdir $d/only";
    let world = Arc::new(World::start(script, PATIENCE).await);
    let validations = (0..=MAX_WAITING).map(|_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.validate(&[]).await })
    });
    let validations: Vec<_> = validations.collect();
    world.written("runs").await;
    let refused = async {
        loop {
            // One of the above may not have arrived yet, and then takes the place when this one gives up.
            let mut connection = world.connect("right").await;
            let empty = configuration(&[]);
            let answer =
                tokio::time::timeout(Duration::from_millis(200), connection.validate(&empty));
            match answer.await {
                Ok(Err(ClientError::Refused(status))) => return status,
                Ok(answer) => panic!("{answer:?}"),
                Err(_) => {}
            }
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused).await;
    assert_eq!(refused.expect("a response"), 503);
    assert_eq!(world.file("runs"), "x\n");
    fs::write(world.folder.path().join("go"), "").expect("a file");
    for validation in validations {
        let answer = validation.await.expect("it ends").expect("an answer");
        assert_eq!(answer.outcome, Outcome::Passed, "{}", answer.log);
    }
}

#[tokio::test]
async fn without_the_token_nothing_runs() {
    let world = World::start("echo x >> \"$(dirname \"$0\")/runs\"", PATIENCE).await;
    for token in ["wrong", "", "righ", "rightx"] {
        let mut connection = world.connect(token).await;
        let refused = connection.validate(&configuration(&[])).await;
        let refused = refused.expect_err("it is refused");
        assert!(
            matches!(refused, ClientError::Refused(status) if status == 401),
            "{refused}"
        );
    }
    let mut connection = world.connect("wrong").await;
    let refused = connection.schema().await.expect_err("it is refused");
    assert!(
        matches!(refused, ClientError::Refused(status) if status == 401),
        "{refused}"
    );
    assert_eq!(world.file("runs"), "");
}

#[tokio::test]
async fn another_certificate_is_not_trusted_and_a_renewed_one_is_served() {
    let mut world = World::start("exit 0", PATIENCE).await;
    world.validate(&[]).await.expect("an answer");
    let other = generate_simple_self_signed([SERVER_NAME.to_owned()]).expect("a certificate");
    let client = Client::new(other.cert.pem().as_bytes(), "right").expect("a client");
    let error = client.connect(world.address).await.err().expect("an error");
    assert!(matches!(error, ClientError::Connection(_)), "{error}");

    world.certificate = write_credentials(world.folder.path(), "renewed");
    let mut connection = world.connect("renewed").await;
    let answer = connection.validate(&configuration(&[])).await;
    assert_eq!(answer.expect("an answer").outcome, Outcome::Passed);
}

#[tokio::test]
async fn the_version_is_what_vector_prints() {
    let script = "[ \"$*\" = --version ] && echo 'vector 0.57.0 (x86_64)'";
    let world = World::start(script, PATIENCE).await;
    let mut connection = world.connect("right").await;
    let version = connection.version().await.expect("a version");
    assert_eq!(version, "vector 0.57.0 (x86_64)\n");
    connection.schema().await.expect_err("no schema");
    let mut connection = world.connect("wrong").await;
    let refused = connection.version().await.expect_err("it is refused");
    assert!(matches!(refused, ClientError::Refused(status) if status == 401));
}

#[tokio::test]
async fn the_schema_is_what_vector_prints_unless_it_fails() {
    let script = "echo noise >&2; [ \"$*\" = generate-schema ] && [ ! -e \"$(dirname \"$0\")/broken\" ] && echo '{\"a\": 1}'";
    let world = World::start(script, PATIENCE).await;
    let mut connection = world.connect("right").await;
    let schema = connection.schema().await.expect("a schema");
    assert_eq!(&schema[..], b"{\"a\": 1}\n");
    fs::write(world.folder.path().join("broken"), "").expect("a file");
    let error = connection.schema().await.expect_err("no schema");
    assert!(
        matches!(error, ClientError::Refused(status) if status == 502),
        "{error}"
    );
}

#[tokio::test]
async fn requests_that_are_no_configuration_are_refused() {
    let world = World::start("exit 0", PATIENCE).await;
    for name in [
        "../a.json",
        "/a.json",
        "a/b.json",
        ".",
        "..",
        "",
        ".hidden",
        "a/",
    ] {
        let refused = world.validate(&[(name, "{}")]).await;
        let refused = refused.expect_err("it is refused");
        assert!(
            matches!(refused, ClientError::Refused(status) if status == 400),
            "{name}: {refused}"
        );
    }
    let large = "x".repeat(crate::MAX_BODY_BYTES);
    let refused = world.validate(&[("a.json", &large)]).await;
    assert!(matches!(refused, Err(ClientError::TooLarge)), "{refused:?}");
    fs::remove_file(world.folder.path().join("vector")).expect("removed");
    let refused = world.validate(&[]).await.expect_err("it is refused");
    assert!(
        matches!(refused, ClientError::Refused(status) if status == 502),
        "{refused}"
    );
}
