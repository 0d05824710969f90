//! Every line of a log is read once, although the components of Vector get other names while it is written.
//!
//! Vector cannot be run here. A stand-in reads the files of the sources of a configuration, and keeps its positions as
//! Vector does: in `DATA_DIR/COMPONENT/checkpoints.json`, with the format of Vector.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use lockstep_vector_assembly::{
    Assembly, AssemblyOptions, ComponentNames, DataLayout, DataMoves, RunnablePipeline,
    WorkloadRole, assemble,
};
use serde_json::{Value, json};

/// Namespaces, each with one pipeline and one log.
const NAMESPACES: [&str; 3] = ["a", "b", "c"];

/// Lines of each log.
const LINES: usize = 3000;

/// Lines that are read before the positions are written.
const BATCH: usize = 7;

/// Time after which a line counts as lost.
const LOST_AFTER: Duration = Duration::from_mins(1);

/// Logs of Pods, to which a thread appends.
struct Logs {
    directory: PathBuf,
    appended: Mutex<usize>,
    grown: Condvar,
}

impl Logs {
    fn path(&self, namespace: &str) -> PathBuf {
        self.directory.join(format!("{namespace}.log"))
    }

    /// Appends all lines. A line is sometimes written in two parts.
    fn write(&self) {
        for line in 0..LINES {
            for namespace in NAMESPACES {
                let file = File::options().append(true).open(self.path(namespace));
                let mut file = file.expect("a log");
                write!(file, "{namespace} ").expect("a part of a line");
                if line % 3 == 0 {
                    self.notify();
                }
                writeln!(file, "{line}").expect("the rest of the line");
            }
            self.notify();
        }
    }

    fn notify(&self) {
        *self.appended.lock().expect("a lock") += 1;
        self.grown.notify_all();
    }
}

/// Stand-in for a process of Vector.
struct Process {
    must_stop: Arc<AtomicBool>,
    logs: Arc<Logs>,
    sources: Vec<JoinHandle<()>>,
}

impl Process {
    fn start(config: &Value, data_dir: &Path, logs: &Arc<Logs>, sink: &Sender<String>) -> Self {
        let must_stop = Arc::new(AtomicBool::new(false));
        let sources = config["sources"].as_object().expect("sources").iter();
        let sources = sources.map(|(id, source)| {
            let selector = source["extra_namespace_label_selector"].as_str();
            let selector = selector.expect("a namespace");
            let (_, names) = selector.split_once("metadata.name").expect("a namespace");
            let names: Vec<_> = names.split(|c: char| !c.is_ascii_lowercase()).collect();
            let read = NAMESPACES.into_iter().filter(|it| names.contains(it));
            let reader = Reader {
                directory: data_dir.join(id),
                files: read.map(|it| logs.path(it)).collect(),
                positions: BTreeMap::new(),
            };
            let (logs, sink) = (Arc::clone(logs), sink.clone());
            let must_stop = Arc::clone(&must_stop);
            thread::spawn(move || reader.run(&logs, &sink, &must_stop))
        });
        let sources = sources.collect();
        Self {
            must_stop,
            logs: Arc::clone(logs),
            sources,
        }
    }

    fn stop(self) {
        self.must_stop.store(true, Ordering::SeqCst);
        self.logs.notify();
        for source in self.sources {
            source.join().expect("the source ends");
        }
    }
}

/// Source that reads files.
struct Reader {
    directory: PathBuf,
    files: Vec<PathBuf>,
    /// Positions by device and inode.
    positions: BTreeMap<(u64, u64), u64>,
}

impl Reader {
    fn run(mut self, logs: &Logs, sink: &Sender<String>, must_stop: &AtomicBool) {
        self.load();
        loop {
            let seen = *logs.appended.lock().expect("a lock");
            let mut is_at_end = true;
            for path in self.files.clone() {
                is_at_end &= !self.read(&path, sink);
            }
            self.store();
            if must_stop.load(Ordering::SeqCst) {
                return;
            }
            if is_at_end {
                let appended = logs.appended.lock().expect("a lock");
                let waited = logs.grown.wait_while(appended, |now| {
                    *now == seen && !must_stop.load(Ordering::SeqCst)
                });
                drop(waited.expect("a lock"));
            }
        }
    }

    /// Reads complete lines from a file. Returns true if there were any.
    fn read(&mut self, path: &Path, sink: &Sender<String>) -> bool {
        let mut file = File::open(path).expect("a log");
        let metadata = file.metadata().expect("an inode");
        let position = self.positions.entry((metadata.dev(), metadata.ino()));
        let position = position.or_default();
        file.seek(SeekFrom::Start(*position)).expect("a position");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("text");
        let lines = text.split_inclusive('\n').filter(|it| it.ends_with('\n'));
        let mut has_read = false;
        for line in lines.take(BATCH) {
            has_read = true;
            *position += line.len() as u64;
            // The test ends before the last process.
            let _ = sink.send(line.trim_end().to_owned());
        }
        has_read
    }

    fn load(&mut self) {
        fs::create_dir_all(&self.directory).expect("a directory");
        let Ok(content) = fs::read(self.directory.join("checkpoints.json")) else {
            return;
        };
        let content: Value = serde_json::from_slice(&content).expect("JSON");
        assert_eq!(content["version"], "1");
        for checkpoint in content["checkpoints"].as_array().expect("checkpoints") {
            let number = |it: &Value| it.as_u64().expect("a number");
            let inode = &checkpoint["fingerprint"]["dev_inode"];
            let inode = (number(&inode[0]), number(&inode[1]));
            self.positions
                .insert(inode, number(&checkpoint["position"]));
        }
    }

    fn store(&self) {
        let checkpoints = self.positions.iter().map(|((device, inode), position)| {
            json!({
                "fingerprint": {"dev_inode": [device, inode]}, "position": position,
                "modified": Timestamp::now(),
            })
        });
        let content = json!({"version": "1", "checkpoints": checkpoints.collect::<Vec<_>>()});
        let new = self.directory.join("checkpoints.new.json");
        fs::write(&new, content.to_string()).expect("positions");
        fs::rename(new, self.directory.join("checkpoints.json")).expect("positions");
    }
}

fn layout(component_names: ComponentNames, merge_sources: bool) -> AssemblyOptions {
    AssemblyOptions::new(WorkloadRole::Agent).in_layout(DataLayout {
        component_names,
        merge_sources,
    })
}

fn assembled(options: &AssemblyOptions) -> Assembly {
    let pipelines = NAMESPACES.map(|namespace| RunnablePipeline {
        namespace: Some(namespace.to_owned()),
        name: "app".to_owned(),
        spec: json!({
            "sources": {"logs": {"type": "kubernetes_logs"}},
            "sinks": {"out": {"type": "blackhole", "inputs": ["logs"]}},
        }),
        ..RunnablePipeline::default()
    });
    assemble(options, &pipelines)
}

/// Runs the init container.
fn migrate(before: &Assembly, after: &Assembly, directory: &Path) {
    let moves = DataMoves::between(before, after);
    let list = directory.join("moves.json.gz");
    let mut encoder = GzEncoder::new(File::create(&list).expect("a file"), Compression::fast());
    serde_json::to_writer(&mut encoder, &moves).expect("a list");
    encoder.finish().expect("a list");
    let run = || {
        Command::new(env!("CARGO_BIN_EXE_lockstep"))
            .args(["vector", "migrate-data", "--data-dir"])
            .arg(directory.join("data"))
            .arg(&list)
            .output()
            .expect("the program runs")
    };
    // A Pod may be restarted before Vector starts.
    for _ in 0..2 {
        let output = run();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
    }
}

/// Reads logs that are being written, with one configuration and then with another one. Returns how often each line was
/// read.
fn read_through(before: &Assembly, after: &Assembly, is_migrated: bool) -> BTreeMap<String, usize> {
    let directory = tempfile::tempdir().expect("a directory");
    let data_dir = directory.path().join("data");
    fs::create_dir(&data_dir).expect("a directory");
    let logs = Arc::new(Logs {
        directory: directory.path().to_owned(),
        appended: Mutex::default(),
        grown: Condvar::new(),
    });
    for namespace in NAMESPACES {
        File::create(logs.path(namespace)).expect("a log");
    }
    let writer = Arc::clone(&logs);
    let writer = thread::spawn(move || writer.write());
    let (sink, events) = channel();
    let mut read = BTreeMap::new();
    let old = Process::start(&before.config, &data_dir, &logs, &sink);
    receive(&events, &mut read, LINES);
    old.stop();
    if is_migrated {
        migrate(before, after, directory.path());
    }
    let new = Process::start(&after.config, &data_dir, &logs, &sink);
    receive(&events, &mut read, LINES * NAMESPACES.len());
    writer.join().expect("the writer ends");
    new.stop();
    drop(sink);
    for line in events {
        *read.entry(line).or_insert(0) += 1;
    }
    read
}

/// Receives lines until a number of different ones was read.
fn receive(events: &Receiver<String>, read: &mut BTreeMap<String, usize>, number: usize) {
    while read.len() < number {
        let line = events.recv_timeout(LOST_AFTER);
        let line = line.unwrap_or_else(|_| panic!("only {} lines were read", read.len()));
        *read.entry(line).or_insert(0) += 1;
    }
}

#[test]
fn every_line_is_read_once_while_components_get_other_names() {
    let dashes = assembled(&layout(ComponentNames::Dashes, false));
    let underscores = assembled(&layout(ComponentNames::Underscores, false));
    let merged = assembled(&layout(ComponentNames::Underscores, true));
    for (before, after) in [
        (&dashes, &underscores),
        (&underscores, &dashes),
        (&dashes, &dashes),
        (&underscores, &merged),
        (&merged, &underscores),
        (&dashes, &merged),
    ] {
        let read = read_through(before, after, true);
        let twice: Vec<_> = read.iter().filter(|(_, times)| **times != 1).collect();
        assert!(
            twice.is_empty(),
            "{} lines: {:?}",
            twice.len(),
            twice.first()
        );
        assert_eq!(read.len(), LINES * NAMESPACES.len());
    }
}

/// Without the init container, the stand-in does what Vector does.
#[test]
fn lines_are_read_twice_if_the_data_of_other_names_is_not_moved() {
    let dashes = assembled(&layout(ComponentNames::Dashes, false));
    let underscores = assembled(&layout(ComponentNames::Underscores, false));
    let read = read_through(&dashes, &underscores, false);
    assert!(read.values().any(|times| *times == 2));
}
