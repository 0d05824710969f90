//! Buffers of sinks.

use lockstep_shared_validation::FieldPath;
use serde_json::Value;

use crate::component::ComponentKind;
use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, SetOption, forbid, refuse, require};

/// Minimum size of a disk buffer in bytes: two data files of 128 MiB and the metadata.
const MINIMUM_DISK_SIZE: u64 = 268_435_488;

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if options.family != ComponentKind::Sink {
        return;
    }
    let Some(buffer) = options.get("buffer") else {
        return;
    };
    let stages: Vec<(FieldPath, &Value)> = match buffer.value {
        Value::Array(stages) => {
            let stages = stages.iter().enumerate();
            let at = |(index, stage)| (buffer.path.index(index), stage);
            stages.map(at).collect()
        }
        stage => vec![(buffer.path.clone(), stage)],
    };
    let Some(last) = stages.len().checked_sub(1) else {
        let detail = "must have at least one stage; remove the option for the default";
        return require(buffer.path, detail, problems);
    };
    let mut has_disk = false;
    for (index, (path, stage)) in stages.into_iter().enumerate() {
        let overflows = stage["when_full"] == "overflow";
        let when_full = path.child("when_full");
        if overflows && index == last {
            let detail = "the last stage has no next stage; use `block` or `drop_newest`";
            refuse(when_full, "overflow", detail, problems);
        } else if !overflows && index != last {
            let detail = "must be `overflow`: the stage has a next stage";
            let text = stage["when_full"].as_str().unwrap_or("block");
            refuse(when_full, text, detail, problems);
        }
        if stage["type"] != "disk" {
            continue;
        }
        let size = &stage["max_size"];
        if size.as_u64().is_some_and(|size| size < MINIMUM_DISK_SIZE) {
            let detail = format!("must be at least {MINIMUM_DISK_SIZE} bytes for a disk buffer");
            let path = path.child("max_size");
            SetOption { path, value: size }.refuse(detail, problems);
        }
        if has_disk {
            let detail = "only one stage can be a disk buffer: both would use the same directory";
            forbid(path.child("type"), detail, problems);
        }
        has_disk = true;
    }
}
