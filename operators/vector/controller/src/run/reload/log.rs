//! Log of a Vector → what became of the last reload.
//!
//! The texts are those of `src/app.rs`, `src/topology/controller.rs` and `src/internal_events/process.rs` of Vector from 0.40 to
//! 0.58. None names the configuration, so that only the lines of [`load_report`](crate::owned) tell which one runs.

/// Lines with which a reload ends that was refused: the old configuration runs on.
const REFUSED: [&str; 3] = [
    "Reload was not successful",
    "Failed to load config files, reload aborted",
    "Failed to restart topology, shutting down",
];

/// Line with which Vector begins to replace its components, after which it waits for those that end.
const BEGUN: &str = "Reloading running topology with new configuration";

/// Line with which a reload ends.
const DONE: &str = "Vector has reloaded";

/// Levels of lines that say why a reload was refused.
const LEVELS: [&str; 2] = [" ERROR ", " WARN "];

/// Field with the name of the component that a line is about.
const COMPONENT: &str = "component_id=";

/// What a log says about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Logged {
    /// Vector runs it.
    Loaded,
    /// The last reload was refused; the lines say why.
    Refused(String),
    /// The last reload has begun and not ended. With the components about which Vector has warned since.
    Begun(Vec<String>),
    /// Nothing about it.
    Nothing,
}

/// Reads a log. `lines` are those that Vector prints once it runs the configuration.
pub(crate) fn read(log: &str, lines: &[String]) -> Logged {
    let is_printed = |line: &String| log.lines().any(|it| it.trim_end() == line);
    if lines.iter().all(is_printed) {
        return Logged::Loaded;
    }
    let all: Vec<&str> = log.lines().collect();
    let last = |texts: &[&str]| {
        all.iter()
            .rposition(|line| texts.iter().any(|it| line.contains(it)))
    };
    let (refused, begun, done) = (last(&REFUSED), last(&[BEGUN]), last(&[DONE]));
    if refused.is_some() && refused >= begun && refused >= done {
        // The reasons come before the result, and after the end of the reload before it.
        let from = done.map_or(0, |it| it + 1);
        let why = all[from..].iter().filter(|line| is_problem(line));
        let why: Vec<&str> = why.copied().collect();
        return Logged::Refused(why.join("\n"));
    }
    match begun.filter(|_| begun > done) {
        Some(begun) => Logged::Begun(components(&all[begun..])),
        None => Logged::Nothing,
    }
}

fn is_problem(line: &str) -> bool {
    LEVELS.iter().any(|level| line.contains(level)) || REFUSED.iter().any(|it| line.contains(it))
}

/// Returns the names of the components in warnings, each once, the one with most lines first.
fn components(lines: &[&str]) -> Vec<String> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for line in lines.iter().filter(|line| is_problem(line)) {
        let Some((_, rest)) = line.split_once(COMPONENT) else {
            continue;
        };
        let is_end = |c: char| c.is_whitespace() || c == '}' || c == ',';
        let name = rest
            .split(is_end)
            .next()
            .unwrap_or_default()
            .trim_matches('"');
        match found.iter_mut().find(|(_, known)| *known == name) {
            Some((count, _)) => *count += 1,
            None => found.push((1, name)),
        }
    }
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    found.into_iter().map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "2026-01-01T00:00:00Z  INFO vector: Vector has started. version=\"0.57.0\"
lockstep has loaded agent.json 1
";

    fn logged(more: &str) -> Logged {
        let lines = ["lockstep has loaded agent.json 2".to_owned()];
        read(&format!("{BEFORE}{more}"), &lines)
    }

    #[test]
    fn only_the_line_of_the_configuration_says_that_it_runs() {
        assert_eq!(logged(""), Logged::Nothing);
        assert_eq!(
            logged("INFO vector: Vector has reloaded. path=[]\n"),
            Logged::Nothing
        );
        assert_eq!(logged("lockstep has loaded agent.json 2\n"), Logged::Loaded);
        // A line of somebody else contains it.
        assert_eq!(
            logged("x lockstep has loaded agent.json 2\n"),
            Logged::Nothing
        );
        let both = ["a".to_owned(), "b".to_owned()];
        assert_eq!(read("a\n", &both), Logged::Nothing);
        assert_eq!(read("b\na\n", &both), Logged::Loaded);
    }

    #[test]
    fn a_refused_reload_has_its_reasons() {
        let refused =
            "T  INFO vector::topology::running: Reloading running topology with new configuration.
T ERROR vector::topology::builder: Configuration error. error=Sink \"a\": bad
T ERROR vector: Reload was not successful. reason=\"build\"
";
        let Logged::Refused(why) = logged(&format!(
            "T ERROR x: old\nT INFO Vector has reloaded.\n{refused}"
        )) else {
            panic!("not refused");
        };
        assert_eq!(
            why,
            "T ERROR vector::topology::builder: Configuration error. error=Sink \"a\": bad\nT ERROR vector: Reload was not successful. reason=\"build\""
        );
        let aborted =
            "T ERROR vector::app: Failed to load config files, reload aborted. paths=[]\n";
        assert!(matches!(logged(aborted), Logged::Refused(_)));
        // A later one has begun.
        let again = format!("{refused}T INFO Reloading running topology with new configuration.\n");
        assert_eq!(logged(&again), Logged::Begun(Vec::new()));
    }

    #[test]
    fn a_reload_that_waits_names_the_components_with_warnings() {
        let waiting = "T  WARN sink{component_id=old}: before
T  INFO vector::topology::running: Reloading running topology with new configuration.
T  WARN sink{component_kind=\"sink\" component_id=b component_type=http}: Retrying after error.
T  WARN sink{component_kind=\"sink\" component_id=a component_type=http}: Retrying after error.
T  WARN sink{component_kind=\"sink\" component_id=a component_type=http}: Retrying after error.
";
        let names = ["a", "b"].map(str::to_owned).to_vec();
        assert_eq!(logged(waiting), Logged::Begun(names));
        let ended = format!("{waiting}T INFO Vector has reloaded.\n");
        assert_eq!(logged(&ended), Logged::Nothing);
    }
}
