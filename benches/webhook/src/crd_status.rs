//! CRD status file which reports, like that of the controller, that the CRD in the cluster is the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockstep_shared_validation::{CrdValidator, Validator, crd_fingerprint};
use lockstep_webhook_lifecycle::{CrdStatus, CrdStatusReport};

/// Refresh interval, well within the time to live of the file.
const AGAIN_EVERY: Duration = Duration::from_secs(5);

/// Writer of the CRD status file. It stops when it is dropped.
pub(crate) struct CrdStatusWriter {
    end: Option<Sender<()>>,
    writer: Option<JoinHandle<()>>,
    file: PathBuf,
}

/// Returns the path at which the webhook reads the file.
pub(crate) fn file(directory: &Path) -> PathBuf {
    directory.join("crds.json")
}

impl CrdStatusWriter {
    pub(crate) fn begin(directory: &Path) -> anyhow::Result<Self> {
        let (end, ended) = channel();
        let manifest = bench_harness::root().join("manifests/config/crds/clouddatabases.yaml");
        let crd = serde_saphyr::from_str(&fs::read_to_string(manifest)?)?;
        let ruleset = CrdValidator::compile(&crd, "v1alpha1")?;
        let file = file(directory);
        write(&file, &ruleset)?;
        let writer = std::thread::spawn({
            let file = file.clone();
            move || keep_writing(&file, &ruleset, &ended)
        });
        Ok(Self {
            end: Some(end),
            writer: Some(writer),
            file,
        })
    }
}

impl Drop for CrdStatusWriter {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        let _ = fs::remove_file(&self.file);
    }
}

fn keep_writing(file: &Path, ruleset: &dyn Validator, ended: &Receiver<()>) {
    while ended.recv_timeout(AGAIN_EVERY) == Err(RecvTimeoutError::Timeout) {
        if let Err(error) = write(file, ruleset) {
            eprintln!("{}: {error}", file.display());
        }
    }
}

fn write(file: &Path, ruleset: &dyn Validator) -> anyhow::Result<()> {
    let status = CrdStatus {
        crd: crd_fingerprint(ruleset.crd(), ruleset.version()),
        propagated: true,
    };
    let until = SystemTime::now().duration_since(UNIX_EPOCH)? + CrdStatusReport::TTL;
    let report = CrdStatusReport {
        until: until.as_secs(),
        kinds: [(CrdStatusReport::name(ruleset), status)].into(),
    };
    Ok(report.write(file)?)
}
