//! Comparison with Vector itself.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use vector_stand_in::start::{Machine, start};

#[test]
fn it_refuses_no_configuration_with_which_vector_starts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agreement/startup-0.57.jsonl.gz");
    let file = BufReader::new(GzDecoder::new(File::open(path).expect("the results")));
    let machine = Machine {
        memory_bytes: u64::MAX,
        disk_bytes: u64::MAX,
    };
    let (mut starts, mut refused) = (0, 0);
    for line in file.lines() {
        let case: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let config = &case["config"];
        if !config.is_object() {
            continue;
        }
        let result = start(config, |_, _| Some("x".to_owned()), &machine);
        if case["starts"] == true {
            starts += 1;
            assert_eq!(result, Ok(()), "{config}");
        } else {
            refused += usize::from(result.is_err());
        }
    }
    assert!(starts > 1_000 && refused > 100, "{starts} {refused}");
}
