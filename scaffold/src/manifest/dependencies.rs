//! Dependencies of an operator that is a reconciler, in the manifest of an author.

use toml_edit::{Array, Item, TableLike, Value};

use crate::edits::{Edits, after_comment, begins_line, indentation};
use crate::manifest::Manifest;

/// Dependency.
struct Dependency {
    name: &'static str,
    /// Beginning of its version.
    version: &'static str,
    features: &'static [&'static str],
    /// If true, the default features of the crate contain those.
    has_default: bool,
}

/// Dependencies of a reconciler, besides those of every operator.
const DEPENDENCIES: [Dependency; 6] = [
    of("async-trait", "0.1", &[]),
    Dependency {
        has_default: true,
        ..of("axum", "0.8", &["http1", "json", "tokio"])
    },
    of("http-body-util", "0.1", &[]),
    of("hyper", "1", &["client", "http1"]),
    of("hyper-util", "0.1", &["client-legacy", "http1"]),
    of("tokio", "1", &["net", "rt", "time"]),
];

const fn of(
    name: &'static str,
    version: &'static str,
    features: &'static [&'static str],
) -> Dependency {
    Dependency {
        name,
        version,
        features,
        has_default: false,
    }
}

/// Adds the dependencies of a reconciler and their features, and returns what the author has to see to.
///
/// # Errors
///
/// The manifest has no place for them; the error is what is missing.
pub(crate) fn add_dependencies(
    manifest: &Manifest<'_>,
    edits: &mut Edits<'_>,
) -> Result<Vec<String>, &'static str> {
    let section = manifest.dependencies().ok_or(MISSING)?;
    let all = section.as_table().ok_or(MISSING)?;
    let section = Section::of(manifest, all)?;
    let mut notes = Vec::new();
    let mut new = Vec::new();
    for dependency in &DEPENDENCIES {
        match all.get(dependency.name) {
            Some(item) => {
                dependency.complete(manifest, all.is_dotted(), item, edits)?;
                notes.extend(dependency.differences(item));
            }
            None => new.push(dependency),
        }
    }
    section.add(&new, edits);
    Ok(notes)
}

/// Returns the lines of a manifest with all dependencies of a reconciler.
pub(crate) fn lines() -> String {
    let lines = DEPENDENCIES
        .iter()
        .map(|dependency| dependency.line() + "\n");
    lines.collect()
}

const MISSING: &str = "a section `[dependencies]`, or dependencies as `[dependencies.NAME]`";

/// Place of new dependencies.
enum Section<'a> {
    /// Lines: the name of each dependency and the end of its line, and the end of the header.
    Lines {
        lines: Vec<(&'a str, usize)>,
        header: usize,
        prefix: &'static str,
    },
    /// Only sections of one dependency each, of which the first begins here.
    Before(usize),
}

impl<'a> Section<'a> {
    fn of(manifest: &Manifest<'_>, all: &'a toml_edit::Table) -> Result<Self, &'static str> {
        let text = manifest.text;
        let entries = all.iter();
        let lines = entries.filter(|(_, item)| !is_section(item));
        let lines = lines.filter_map(|(name, item)| Some((name, end_of_line(text, item)?)));
        let mut lines: Vec<_> = lines.collect();
        lines.sort_by_key(|(_, end)| *end);
        if all.is_dotted() {
            let header = lines.first().ok_or(MISSING)?.1;
            let prefix = "dependencies.";
            return Ok(Self::Lines {
                lines,
                header,
                prefix,
            });
        }
        if all.is_implicit() {
            let starts = all.iter().filter_map(|(_, item)| item.span());
            let first = starts.map(|span| span.start).min().ok_or(MISSING)?;
            return Ok(Self::Before(first));
        }
        let header = all.span().ok_or(MISSING)?.end;
        Ok(Self::Lines {
            lines,
            header: after_comment(text, header, "#"),
            prefix: "",
        })
    }

    /// Adds dependencies: in their order if the others are in it, or else after the others.
    fn add(&self, new: &[&Dependency], edits: &mut Edits<'_>) {
        match self {
            Self::Before(position) if !new.is_empty() => {
                let lines = new.iter().map(|it| it.line() + "\n");
                let lines = lines.collect::<String>();
                edits.insert(*position, format!("[dependencies]\n{lines}\n"));
            }
            Self::Before(_) => {}
            Self::Lines {
                lines,
                header,
                prefix,
            } => {
                let is_sorted = lines.is_sorted_by_key(|(name, _)| *name);
                for dependency in new {
                    let mut before = lines.iter().rev();
                    let before = before.find(|(name, _)| !is_sorted || *name < dependency.name);
                    let position = before.map_or(*header, |(_, end)| *end);
                    edits.insert(position, format!("\n{prefix}{}", dependency.line()));
                }
            }
        }
    }
}

/// Returns true for a dependency that has a section of its own.
fn is_section(item: &Item) -> bool {
    item.as_table().is_some_and(|table| !table.is_dotted())
}

/// Returns the end of the last line of an entry, with its comment.
fn end_of_line(text: &str, item: &Item) -> Option<usize> {
    let end = match item {
        Item::Value(value) => value.span()?.end,
        Item::Table(table) => {
            let values = table.iter().filter(|(_, item)| !is_section(item));
            return values.filter_map(|(_, item)| end_of_line(text, item)).max();
        }
        _ => return None,
    };
    Some(after_comment(text, end, "#"))
}

impl Dependency {
    /// Returns the line of a manifest that has none.
    fn line(&self) -> String {
        let (name, version) = (self.name, self.version);
        if self.features.is_empty() {
            return format!("{name} = \"{version}\"");
        }
        let default = if self.has_default {
            ", default-features = false"
        } else {
            ""
        };
        let features = quoted(self.features, ", ");
        format!("{name} = {{ version = \"{version}\"{default}, features = [{features}] }}")
    }

    /// Adds the features that an existing dependency lacks. Cargo adds those of a package to those of its workspace.
    fn complete(
        &self,
        manifest: &Manifest<'_>,
        is_dotted: bool,
        item: &Item,
        edits: &mut Edits<'_>,
    ) -> Result<(), &'static str> {
        let missing = self.missing_features(item);
        if missing.is_empty() {
            return Ok(());
        }
        let prefix = if is_dotted { "dependencies." } else { "" };
        add_features(manifest.text, item, &missing, prefix, self.name, edits)
            .ok_or("a dependency whose features can be extended")
    }

    /// Returns the features that a dependency does not have.
    fn missing_features(&self, item: &Item) -> Vec<&'static str> {
        let table = item.as_table_like();
        let field = |name: &str| table.and_then(|table| table.get(name));
        // The default features of the workspace are not known.
        let without_default = field("workspace").is_some()
            || ["default-features", "default_features"]
                .iter()
                .any(|name| field(name).and_then(Item::as_bool) == Some(false));
        let present = field("features").and_then(Item::as_array);
        let present: Vec<_> = present
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if present.contains(&"full") || self.has_default && !without_default {
            return Vec::new();
        }
        let features = self.features.iter().copied();
        features.filter(|name| !present.contains(name)).collect()
    }

    /// Returns sentences on what the author must check: what the reconciler needs, and cannot be said or changed here.
    fn differences(&self, item: &Item) -> Vec<String> {
        let (name, needed) = (self.name, self.version);
        let table = item.as_table_like();
        let field = |name: &str| table.and_then(|table| table.get(name));
        let is_optional = field("optional").and_then(Item::as_bool) == Some(true);
        let optional =
            is_optional.then(|| format!("`{name}` is optional: the reconciler needs it."));
        let version = item.as_str().or_else(|| field("version")?.as_str());
        let version = if let Some(version) = version {
            let number = version.trim_start_matches(|letter: char| !letter.is_ascii_digit());
            let is_needed = number == needed || number.starts_with(&format!("{needed}."));
            (!is_needed).then(|| {
                format!(
                    "`{name}` has the version {version}: the reconciler is written for {needed}."
                )
            })
        } else {
            let places = [
                ("workspace", "is a dependency of the workspace"),
                ("git", "comes from a Git repository"),
                ("path", "comes from a folder"),
            ];
            let mut places = places.into_iter().filter(|(key, _)| field(key).is_some());
            let place = places.next().map(|(_, place)| place);
            place.map(|place| format!("`{name}` {place}: the reconciler needs version {needed}."))
        };
        optional.into_iter().chain(version).collect()
    }
}

fn quoted(names: &[&str], separator: &str) -> String {
    let names = names.iter().map(|name| format!("\"{name}\""));
    names.collect::<Vec<_>>().join(separator)
}

/// Adds features to a dependency; none if it has no place for them.
fn add_features(
    text: &str,
    item: &Item,
    missing: &[&str],
    prefix: &str,
    name: &str,
    edits: &mut Edits<'_>,
) -> Option<()> {
    let table: &dyn TableLike = match item {
        Item::Value(Value::String(version)) => {
            let version = version.span()?;
            let features = quoted(missing, ", ");
            edits.insert(version.start, "{ version = ");
            edits.insert(version.end, format!(", features = [{features}] }}"));
            return Some(());
        }
        Item::Value(Value::InlineTable(table)) => table,
        Item::Table(table) => table,
        _ => return None,
    };
    if let Some(features) = table.get("features") {
        return extend(text, features.as_array()?, missing, edits);
    }
    let features = format!("features = [{}]", quoted(missing, ", "));
    let ends = table.iter().filter(|(_, item)| !is_section(item));
    match item {
        Item::Value(_) => {
            let ends = ends.filter_map(|(_, item)| Some(item.span()?.end));
            edits.insert(ends.max()?, format!(", {features}"));
        }
        Item::Table(own) => {
            let ends = ends.filter_map(|(_, item)| end_of_line(text, item));
            let header = || Some(after_comment(text, own.span()?.end, "#"));
            let key = if own.is_dotted() {
                format!("{prefix}{name}.")
            } else {
                String::new()
            };
            edits.insert(ends.max().or_else(header)?, format!("\n{key}{features}"));
        }
        _ => return None,
    }
    Some(())
}

/// Adds features to a list: in lines of their own if the last one has one.
fn extend(text: &str, features: &Array, missing: &[&str], edits: &mut Edits<'_>) -> Option<()> {
    let Some(end) = features.iter().last() else {
        edits.insert(features.span()?.start + 1, quoted(missing, ", "));
        return Some(());
    };
    let last = end.span()?;
    if !begins_line(text, last.start) {
        edits.insert(last.end, format!(", {}", quoted(missing, ", ")));
        return Some(());
    }
    let separator = format!(",\n{}", indentation(text, last.start));
    let lines = quoted(missing, &separator);
    let after = text[last.end..].trim_start();
    if after.starts_with(',') {
        let comma = text.len() - after.len() + 1;
        let end = after_comment(text, comma, "#");
        edits.insert(end, format!("{}{lines},", &separator[1..]));
    } else {
        edits.insert(last.end, ",");
        let end = after_comment(text, last.end, "#");
        edits.insert(end, format!("{}{lines}", &separator[1..]));
    }
    Some(())
}

#[cfg(test)]
mod tests;
