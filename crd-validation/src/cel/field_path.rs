//! The `fieldPath` of a rule: `.a.b` or `['a.b']`, with names that the schema describes.

use crate::schema::Schema;

/// Returns the path as the API server appends it to the path of the rule's node.
pub(super) fn normalized(path: &str, schema: &Schema) -> Result<String, String> {
    let mut rest = path;
    let mut node = schema;
    let mut out = String::new();
    while !rest.is_empty() {
        let (name, behind) = segment(rest)?;
        rest = behind;
        let unknown = || format!("`{name}` does not refer to a valid field");
        if node.properties.is_empty() {
            node = node.additional().ok_or_else(unknown)?;
            out.push_str(&format!("[{name}]"));
        } else {
            node = node.properties.get(&name).ok_or_else(unknown)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        }
    }
    Ok(out)
}

fn segment(path: &str) -> Result<(String, &str), String> {
    if let Some(named) = path.strip_prefix('.') {
        let end = named.find(['.', '[', ']']).unwrap_or(named.len());
        return Ok((named[..end].to_owned(), &named[end..]));
    }
    let quoted = path
        .strip_prefix("['")
        .ok_or_else(|| format!("expected `.` or `['` but got `{path}`"))?;
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' => {
                let rest = quoted[at + 1..]
                    .strip_prefix(']')
                    .ok_or("expected `]` after a quoted name")?;
                return Ok((name, rest));
            }
            other => name.push(other),
        }
    }
    Err("a quoted name has no end".to_owned())
}
