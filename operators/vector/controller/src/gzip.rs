//! Compression of what is stored in Secrets.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Returns the compressed content. It has no time stamp: the same content always gives the same bytes.
pub(crate) fn compressed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(content).and_then(|()| encoder.finish());
    written.expect("a write to memory does not fail")
}
