//! Table of a chart's values, from the comments in its `values.yaml`.

use serde_json::Value;

/// Head of the table.
pub(crate) const HEADER: &str = "| value | default | description |\n|---|---|---|\n";

/// Returns a Markdown table with every value that has a comment: its path, its default and the comment.
pub(crate) fn markdown(values: &str) -> String {
    let defaults: Value = serde_saphyr::from_str(values).unwrap_or_default();
    let rows = documented(values).into_iter().map(|(path, description)| {
        let default = defaults.pointer(&format!("/{}", path.join("/")));
        let default = default.unwrap_or(&Value::Null);
        format!("| `{}` | `{default}` | {description} |\n", path.join("."))
    });
    std::iter::once(HEADER.to_owned()).chain(rows).collect()
}

/// Returns the paths of the values that have a comment, with the comment.
fn documented(values: &str) -> Vec<(Vec<&str>, String)> {
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    for line in values.lines() {
        let text = line.trim_start();
        if let Some(more) = text.strip_prefix('#') {
            comment.push(more.trim());
            continue;
        }
        let description = std::mem::take(&mut comment).join(" ");
        let Some((key, _)) = text.split_once(':') else {
            continue;
        };
        if text.starts_with('-') {
            continue;
        }
        let indentation = line.len() - text.len();
        path.retain(|(outer, _)| *outer < indentation);
        path.push((indentation, key));
        if !description.is_empty() {
            let keys = path.iter().map(|(_, key)| *key).collect();
            all.push((keys, description));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn the_table_lists_the_values_that_have_a_comment() {
        let values = "# About the file.\n\n# One: of\n# two lines.\na: 1\nb:\n  # Inner.\n  c: [x]\n  d:\n    e: 2\n";
        let rows: Vec<_> = markdown(values)
            .lines()
            .skip(2)
            .map(str::to_owned)
            .collect();
        assert_eq!(
            rows,
            [
                "| `a` | `1` | One: of two lines. |",
                "| `b.c` | `[\"x\"]` | Inner. |"
            ]
        );
    }
}
