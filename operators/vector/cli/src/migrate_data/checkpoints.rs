//! Read positions of a source, in the format of Vector (`checkpoints.json`).
//!
//! A file is known by a fingerprint of its content or by its inode, not by the name of the source, so that the positions
//! of one source are valid for another one that reads the same files.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Only version of the format, since Vector 0.20.
const VERSION: &str = "1";

/// Read positions of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Checkpoints {
    version: String,
    checkpoints: Vec<Checkpoint>,
}

/// Read position in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Checkpoint {
    fingerprint: Value,
    position: u64,
    /// Time at which the position was last written.
    modified: Timestamp,
    /// Fields of a later version of Vector.
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Checkpoints {
    /// Reads the content of a file. The error says why it has no read positions.
    pub(super) fn parse(content: &[u8]) -> anyhow::Result<Self> {
        let checkpoints: Self =
            serde_json::from_slice(content).context("it is not a checkpoint file")?;
        let version = &checkpoints.version;
        ensure!(
            version == VERSION,
            "its format has the unknown version {version:?}"
        );
        Ok(checkpoints)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("checkpoints are JSON")
    }

    /// Returns the positions from which one source reads on for several. In a file that several have read, it is the
    /// lowest one: none of them loses a line, and those that were ahead get the lines in between again.
    pub(super) fn join(sources: &[Self]) -> Self {
        Self::combine(sources, |one, other| {
            let mut first = if other.position < one.position {
                other.clone()
            } else {
                one.clone()
            };
            // Vector ignores positions that are older than `ignore_older_secs`.
            first.modified = one.modified.max(other.modified);
            first
        })
    }

    /// Returns these positions with those that another process has left for the same source. Of two positions in a file,
    /// the one that was written last is right.
    pub(super) fn or_newer(&self, left: &Self) -> Self {
        Self::combine(&[self.clone(), left.clone()], |one, other| {
            let is_newer = (other.modified, one.position) > (one.modified, other.position);
            if is_newer { other } else { one }.clone()
        })
    }

    fn combine(all: &[Self], choose: impl Fn(&Checkpoint, &Checkpoint) -> Checkpoint) -> Self {
        let mut combined: BTreeMap<String, Checkpoint> = BTreeMap::new();
        for checkpoint in all.iter().flat_map(|it| &it.checkpoints) {
            let chosen = match combined.get(&checkpoint.key()) {
                Some(known) => choose(known, checkpoint),
                None => checkpoint.clone(),
            };
            combined.insert(checkpoint.key(), chosen);
        }
        Self {
            version: VERSION.to_owned(),
            checkpoints: combined.into_values().collect(),
        }
    }
}

impl Checkpoint {
    /// Returns the fingerprint as text.
    fn key(&self) -> String {
        // The name that Vector 0.13 wrote, and that it still reads.
        let old = "{\"first_line_checksum\":";
        let key = self.fingerprint.to_string();
        key.strip_prefix(old)
            .map(|rest| format!("{{\"first_lines_checksum\":{rest}"))
            .unwrap_or(key)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the content of a file. Each checkpoint is a fingerprint, a position and a second.
    fn of(checkpoints: &[(Value, u64, u8)]) -> Checkpoints {
        let checkpoints = checkpoints.iter().map(|(fingerprint, position, second)| {
            json!({
                "fingerprint": fingerprint, "position": position,
                "modified": format!("2026-01-01T00:00:{second:02}.123456789Z"),
            })
        });
        let content = json!({"version": "1", "checkpoints": checkpoints.collect::<Vec<_>>()});
        Checkpoints::parse(content.to_string().as_bytes()).expect("checkpoints")
    }

    fn lines(checksum: u64) -> Value {
        json!({"first_lines_checksum": checksum})
    }

    fn inode(inode: u64) -> Value {
        json!({"dev_inode": [66_305, inode]})
    }

    #[test]
    fn positions_are_written_as_they_were_read() {
        let content = concat!(
            r#"{"version":"1","checkpoints":["#,
            r#"{"fingerprint":{"first_lines_checksum":18446744073709551615},"position":1234,"modified":"2026-01-01T00:00:00.123456789Z"},"#,
            r#"{"fingerprint":{"dev_inode":[1,2]},"position":0,"modified":"2026-01-01T00:00:00Z","later":true}"#,
            "]}"
        );
        let read = Checkpoints::parse(content.as_bytes()).expect("checkpoints");
        assert_eq!(String::from_utf8(read.to_bytes()).expect("text"), content);
    }

    #[test]
    fn other_content_has_no_positions() {
        for content in [
            "",
            "{}",
            r#"{"version":"1","checkpoints":[{"position":1}]}"#,
            r#"{"version":"2","checkpoints":[]}"#,
        ] {
            assert!(Checkpoints::parse(content.as_bytes()).is_err(), "{content}");
        }
    }

    #[test]
    fn several_sources_become_one_that_reads_on_from_the_lowest_position() {
        let a = of(&[(lines(1), 100, 1), (inode(2), 7, 1)]);
        let b = of(&[(lines(1), 80, 2), (lines(3), 5, 2)]);
        let old = of(&[(json!({"first_line_checksum": 1}), 90, 3)]);
        let joined = of(&[(inode(2), 7, 1), (lines(1), 80, 3), (lines(3), 5, 2)]);
        assert_eq!(
            Checkpoints::join(&[a.clone(), b.clone(), old.clone()]),
            joined
        );
        assert_eq!(Checkpoints::join(&[old, b, a]), joined);
        assert_eq!(Checkpoints::join(&[]), of(&[]));
    }

    #[test]
    fn of_two_positions_of_one_source_the_newer_counts() {
        let moved = of(&[(lines(1), 100, 2), (lines(2), 50, 1), (lines(3), 9, 1)]);
        let left = of(&[
            (lines(1), 200, 1),
            (lines(2), 60, 2),
            (lines(3), 8, 1),
            (lines(4), 1, 1),
        ]);
        let expected = of(&[
            (lines(1), 100, 2),
            (lines(2), 60, 2),
            (lines(3), 8, 1),
            (lines(4), 1, 1),
        ]);
        assert_eq!(moved.or_newer(&left), expected);
        assert_eq!(left.or_newer(&moved), expected);
        assert_eq!(expected.or_newer(&moved), expected);
    }
}
