//! Schemas of the codec `avro`.

use apache_avro::Schema;

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, forbid};

/// Options that are schemas.
const SCHEMAS: [&str; 2] = ["encoding.avro.schema", "decoding.avro.schema"];

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    for option in SCHEMAS {
        let codec = option.replace("avro.schema", "codec");
        if !options.equals(&codec, "avro") {
            continue;
        }
        // The parser of JSON limits the depth of the schema.
        if let Some((path, text)) = options.text(option)
            && Schema::parse_str(text).is_err()
        {
            let detail = "is no Avro schema in JSON, such as `{\"type\": \"record\", \"name\": \"Log\", \"fields\": []}`";
            forbid(path, detail, problems);
        }
    }
}
