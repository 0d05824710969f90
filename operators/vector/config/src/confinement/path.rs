//! Paths of the `file` sink: events may choose a file below a literal directory only.

use serde_json::Value;

use crate::confinement::template::Template;
use crate::confinement::unconfined::Unconfined;
use crate::interpolation::Interpolation;
use crate::option_format;

/// Returns each option of a `file` sink that Vector does not start with, and the reason.
pub(crate) fn validate(
    options: &Value,
    is_confined: bool,
    interpolation: Interpolation,
) -> Vec<(&'static str, Unconfined)> {
    let base = options["base_dir"].as_str();
    if let Some(base) = base.filter(|base| !interpolation.is_replaced(base))
        && !base.starts_with('/')
    {
        // Turning confinement off does not change what a base directory must be.
        return vec![("base_dir", Unconfined::RelativeBase)];
    }
    let path = options["path"].as_str().filter(|_| is_confined);
    let problem = path.and_then(|path| unconfined(path, base, interpolation));
    problem.map(|it| ("path", it)).into_iter().collect()
}

fn unconfined(path: &str, base: Option<&str>, interpolation: Interpolation) -> Option<Unconfined> {
    let Some(template) = Template::read(path) else {
        return literal_outside(path, base?, interpolation);
    };
    let prefix = template.literal_prefix();
    if base.is_some() || interpolation.is_replaced(prefix) {
        return None;
    }
    let end = prefix.rfind('/').map_or(0, |last| last + 1);
    let directory = &prefix[..end];
    let is_below_root = directory.starts_with('/') && !normalized(directory).is_empty();
    (!is_below_root).then(|| Unconfined::NoDirectory {
        field: template.field(),
    })
}

/// Returns an error for a path without fields outside the base directory, with which Vector would drop every event.
fn literal_outside(path: &str, base: &str, interpolation: Interpolation) -> Option<Unconfined> {
    let is_known = !interpolation.is_replaced(path) && !interpolation.is_replaced(base);
    if !is_known || option_format::fields_of_template(path).is_none() {
        return None;
    }
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{base}/{path}")
    };
    let is_within = normalized(&whole).starts_with(&normalized(base));
    (!is_within).then_some(Unconfined::OutsideBase)
}

/// Returns the names in an absolute path, with `..` resolved.
fn normalized(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_begins_with_a_directory_below_the_root() {
        for (path, is_confined) in [
            ("/a/{{ x }}", true),
            ("/a/b-{{ x }}", true),
            ("/a/%Y/{{ x }}", true),
            ("/a/../b/{{ x }}", true),
            ("/a/./{{ x }}", true),
            ("/a/100%%/{{ x }}", true),
            ("relative.log", true),
            ("${DIRECTORY}/{{ x }}", true),
            ("{{ x }}", false),
            ("{{ x }}/$DIRECTORY", false),
            ("$$/{{ x }}", false),
            ("/{{ x }}", false),
            ("/a{{ x }}", false),
            ("a/{{ x }}", false),
            ("./a/{{ x }}", false),
            ("//{{ x }}", false),
            ("/a/../{{ x }}", false),
            ("/a/../../{{ x }}", false),
            ("%Y/a/{{ x }}", false),
        ] {
            let found = validate(&json!({"path": path}), true, Interpolation::On);
            assert_eq!(found.is_empty(), is_confined, "{path}");
            assert!(validate(&json!({"path": path}), false, Interpolation::On).is_empty());
        }
    }

    #[test]
    fn a_base_directory_is_absolute_and_contains_a_literal_path() {
        let check = |path: &str, base: &str, is_confined: bool| {
            let options = json!({"path": path, "base_dir": base});
            let found = validate(&options, is_confined, Interpolation::On)
                .into_iter()
                .next();
            found.map(|(option, _)| option)
        };
        assert_eq!(check("{{ x }}", "/a", true), None);
        assert_eq!(check("b.log", "/a", true), None);
        assert_eq!(check("/a/b/../c.log", "/a", true), None);
        assert_eq!(check("/ab.log", "/a", true), Some("path"));
        assert_eq!(check("../b.log", "/a", true), Some("path"));
        assert_eq!(check("../b.log", "/a", false), None);
        assert_eq!(check("{{ x }}", "a", true), Some("base_dir"));
        assert_eq!(check("{{ x }}", "a", false), Some("base_dir"));
        assert_eq!(check("{{ x }}", "${DIRECTORY}", true), None);
    }
}
