//! Sources that print their first line when they start.

use serde_json::Value;

/// Prints the lines of the sources that are new or have changed.
pub(crate) fn print(before: &Value, configuration: &Value) {
    let sources = configuration["sources"].as_object().into_iter().flatten();
    for (id, source) in sources {
        let is_printed = source["type"] == "demo_logs" && source["count"].is_u64();
        if is_printed
            && before["sources"][id] != *source
            && let Some(line) = source["lines"][0].as_str()
        {
            println!("{line}");
        }
    }
}
