//! Record of the parts that run: the Secret in which they must fit.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lockstep_vector_assembly::PipelinePart;

use crate::run::assemble::quotas::demand::Demand;

/// Bytes of the Secret that records all parts, which are compressed. The rest is for the results of checks.
pub(super) const RECORD_BYTES: usize = 600 << 10;

/// Parts as they are recorded.
#[derive(Default)]
pub(super) struct Record {
    /// Bytes before the compression.
    bytes: usize,
    /// Encoder, once the parts could be too large.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Parts that are not compressed yet.
    pending: Vec<u8>,
}

impl Record {
    /// Adds what a pipeline is to run. Returns the reason why it does not fit any more; what runs already fits.
    pub(super) fn refusal(&mut self, demand: &Demand<'_>) -> Option<String> {
        let is_running = demand.published == Some(demand.part);
        self.add(demand.part);
        let is_full = self.compressed_bytes() > RECORD_BYTES;
        (is_full && !is_running).then(|| {
            format!(
                "the configuration of all pipelines of the workload has more than {RECORD_BYTES} bytes, after compression; run it by another workload"
            )
        })
    }

    pub(super) fn add(&mut self, part: &PipelinePart) {
        let part = serde_json::to_vec(part).expect("a part is JSON");
        self.bytes += part.len();
        self.pending.extend(part);
    }

    /// Returns the bytes after compression, or fewer than the maximum as long as there are so few before it: compressing
    /// thousands of parts takes long.
    pub(super) fn compressed_bytes(&mut self) -> usize {
        if self.bytes <= RECORD_BYTES {
            return self.bytes;
        }
        let encoder = self
            .encoder
            .get_or_insert_with(|| GzEncoder::new(Vec::new(), Compression::default()));
        let written = encoder
            .write_all(&self.pending)
            .and_then(|()| encoder.flush());
        written.expect("a write to memory does not fail");
        self.pending.clear();
        encoder.get_ref().len()
    }
}
