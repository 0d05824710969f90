//! Writes the seed inputs of the fuzzer, made from the test cases: `seeds FOLDER`.
//!
//! `FOLDER/objects` contains objects and updates, one per file. `FOLDER/reviews` contains the same as reviews of the
//! API server, `FOLDER/paths` contains strings, and `FOLDER/words` is a dictionary.

use std::fs;
use std::path::{Path, PathBuf};

use fuzz::mutate;
use serde_json::{Value, json};

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("usage: seeds FOLDER"));
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases");
    let mut changes = own(&cases.join("cloud-database"));
    changes.extend(recorded(&cases.join("probe/apiserver-1.36.jsonl")));
    for (index, (object, old)) in changes.iter().enumerate() {
        let mut lines = vec![object.to_string()];
        lines.extend(old.as_ref().map(Value::to_string));
        write(&folder, "objects", index, &lines.join("\n"));
        write(
            &folder,
            "reviews",
            index,
            &review(object, old.as_ref()).to_string(),
        );
    }
    for (index, word) in mutate::words().iter().enumerate() {
        write(&folder, "paths", index, word);
    }
    let words: String = mutate::words().iter().map(|word| entry(word)).collect();
    fs::write(folder.join("words"), words).expect("the folder is writable");
}

/// Reads the cases of the corpus.
fn own(folder: &Path) -> Vec<(Value, Option<Value>)> {
    let files = fs::read_dir(folder).expect("the folder of the cases exists");
    let mut paths: Vec<_> = files
        .map(|file| file.expect("the folder entry is readable").path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("the case is readable");
        let case: Value = serde_saphyr::from_str(&text).expect("the case is YAML");
        (case["object"].clone(), case.get("old").cloned())
    };
    paths.iter().map(read).collect()
}

/// Reads the cases with recorded responses of an API server.
fn recorded(file: &Path) -> Vec<(Value, Option<Value>)> {
    let text = fs::read_to_string(file).expect("the file with the recorded cases exists");
    let cases = text.lines().filter_map(|line| {
        let case: Value = serde_json::from_str(line).expect("each line is a JSON case");
        let object = |name: &str| serde_json::from_str(case[name].as_str()?).ok();
        Some((object("object")?, object("old")))
    });
    cases.collect()
}

fn review(object: &Value, old: Option<&Value>) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": group, "version": version, "kind": object["kind"]},
            "name": object["metadata"]["name"],
            "namespace": "default",
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": "fuzzer"},
            "object": object,
            "oldObject": old,
            "dryRun": false,
        },
    })
}

fn write(folder: &Path, kind: &str, index: usize, text: &str) {
    let folder = folder.join(kind);
    fs::create_dir_all(&folder).expect("the folder can be created");
    fs::write(folder.join(format!("{index:04}")), text).expect("the folder is writable");
}

/// Returns a line of a dictionary in the format of libFuzzer: special bytes are written in hex.
fn entry(word: &str) -> String {
    let plain = |byte: u8| match byte {
        b'"' | b'\\' | ..b' ' | b'\x7f'.. => format!("\\x{byte:02x}"),
        _ => char::from(byte).to_string(),
    };
    let plain: String = word.bytes().map(plain).collect();
    if plain.is_empty() {
        String::new()
    } else {
        format!("\"{plain}\"\n")
    }
}
