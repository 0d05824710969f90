//! Log of a Vector → what became of the last reload.
//!
//! The texts are those of `src/app.rs`, `src/topology/controller.rs` and `src/internal_events/process.rs` of Vector from 0.40 to
//! 0.58. None names the configuration, so that only the lines of [`load_report`](crate::owned) tell which one runs.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;

/// Lines with which a reload ends that was refused: the old configuration runs on.
const REFUSED: [&str; 2] = [
    "Reload was not successful",
    "Failed to load config files, reload aborted",
];

/// Line with which Vector begins to replace its components, after which it waits for those that end.
const BEGUN: &str = "Reloading running topology with new configuration";

/// Line with which a reload ends.
const DONE: &str = "Vector has reloaded";

/// Levels of lines that say why a reload was refused.
const LEVELS: [&str; 2] = [" ERROR ", " WARN "];

/// Field with the name of the component that a line is about.
const COMPONENT: &str = "component_id=";

/// Span of the lines that a program writes with the function `log`: their text is that of a tenant.
const PROGRAM: &str = "transform{";

/// Maximum length of the reasons of a refusal in bytes, and maximum number of components that are named. Tenants decide how long the
/// lines are, and each Pod has its own.
const LONGEST: usize = 2048;
const COMPONENTS: usize = 5;

/// Content of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogReading {
    /// Last line about each file, by what comes before the fingerprint: Vector runs this content.
    pub(crate) runs: BTreeMap<String, String>,
    /// Result of the last reload.
    pub(crate) reload: Option<Reload>,
}

/// Result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reload {
    /// It has begun and not ended. With the components about which Vector has warned since.
    Begun(Timestamp, Vec<String>),
    /// It was refused; the lines say why.
    Refused(Timestamp, String),
    /// It ended well.
    Done,
}

/// Returns what comes before the fingerprint in the line about a file.
pub(crate) fn file_of(line: &str) -> &str {
    line.rsplit_once(' ').map_or(line, |(file, _)| file)
}

/// Reads a log whose lines begin with the time at which the kubelet got them. `lines` are those that Vector prints once it runs a
/// configuration.
pub(crate) fn read(log: &str, lines: &[String]) -> LogReading {
    let all: Vec<(Timestamp, &str)> = log.lines().filter_map(timed).collect();
    let mut runs = BTreeMap::new();
    for (_, line) in &all {
        let file = file_of(line);
        if lines.iter().any(|expected| file_of(expected) == file) {
            runs.insert(file.to_owned(), (*line).to_owned());
        }
    }
    let last = |texts: &[&str]| all.iter().rposition(|(_, line)| is_one_of(line, texts));
    let (refused, begun, done) = (last(&REFUSED), last(&[BEGUN]), last(&[DONE]));
    let reload = match (refused, begun, done) {
        (Some(refused), _, _) if refused_last(refused, begun, done) => {
            // The reasons come before the result, and after the beginning of the reload or the end of the one before it.
            let from = begun.max(done).map_or(0, |last| last + 1);
            Some(Reload::Refused(
                all[refused].0,
                reasons(&all[from..=refused]),
            ))
        }
        (_, Some(begun), _) if Some(begun) > done => {
            Some(Reload::Begun(all[begun].0, components(&all[begun..])))
        }
        (_, _, Some(_)) => Some(Reload::Done),
        _ => None,
    };
    LogReading { runs, reload }
}

fn refused_last(refused: usize, begun: Option<usize>, done: Option<usize>) -> bool {
    Some(refused) > begun && Some(refused) > done
}

/// Separates the time from a line.
fn timed(line: &str) -> Option<(Timestamp, &str)> {
    let (time, text) = line.split_once(' ')?;
    Some((time.parse().ok()?, text.trim_end()))
}

fn is_one_of(line: &str, texts: &[&str]) -> bool {
    let mut found = texts.iter().filter_map(|text| line.find(text));
    found.any(|at| !line[..at].contains(PROGRAM))
}

fn is_problem(line: &str) -> bool {
    LEVELS.iter().any(|level| line.contains(level)) || is_one_of(line, &REFUSED)
}

/// Returns the last lines with problems, without the time that Vector prints.
fn reasons(lines: &[(Timestamp, &str)]) -> String {
    let problems = lines.iter().filter(|(_, line)| is_problem(line));
    let mut kept: Vec<&str> = Vec::new();
    let mut length = 0;
    for (_, line) in problems.rev() {
        let level = LEVELS.iter().filter_map(|level| line.find(level)).min();
        let text = line[level.unwrap_or_default()..].trim_start();
        length += text.len() + 1;
        if length > LONGEST && !kept.is_empty() {
            break;
        }
        kept.push(&text[..text.floor_char_boundary(LONGEST)]);
    }
    kept.reverse();
    kept.join("\n")
}

/// Returns the names of the components in warnings, each once, the one with most lines first.
fn components(lines: &[(Timestamp, &str)]) -> Vec<String> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (_, line) in lines.iter().filter(|(_, line)| is_problem(line)) {
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
    let names = found.into_iter().take(COMPONENTS);
    names.map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "2026-01-01T00:00:00Z  INFO vector: Vector has started. version=\"0.57.0\"
lockstep has loaded agent.json 1
";

    /// Reads a log of which the kubelet got a line each second.
    fn read_lines(log: &str, lines: &[&str]) -> LogReading {
        let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        let timed = log.lines().enumerate();
        let timed = timed.map(|(second, line)| format!("2026-01-01T00:00:{second:02}.5Z {line}\n"));
        read(&timed.collect::<String>(), &lines)
    }

    fn reload(more: &str) -> Option<Reload> {
        read_lines(
            &format!("{BEFORE}{more}"),
            &["lockstep has loaded agent.json 2"],
        )
        .reload
    }

    fn at(second: usize) -> Timestamp {
        format!("2026-01-01T00:00:{second:02}.5Z")
            .parse()
            .expect("a time")
    }

    #[test]
    fn the_last_line_about_a_file_says_what_runs() {
        let runs = |log: &str, lines: &[&str]| -> Vec<String> {
            read_lines(log, lines).runs.into_values().collect()
        };
        assert_eq!(runs("f 1\nf 2\nf 1\n", &["f 2"]), ["f 1"]);
        // A line of a tenant contains it, or is about another file.
        assert_eq!(runs("x f 2\ng 2\n", &["f 2"]), Vec::<String>::new());
        assert_eq!(runs("g 4\nf 3\n", &["f 3", "g 4"]), ["f 3", "g 4"]);
        assert_eq!(
            reload("T INFO vector: Vector has reloaded. path=[]\n"),
            Some(Reload::Done)
        );
        assert_eq!(reload(""), None);
    }

    #[test]
    fn a_refused_reload_has_its_reasons() {
        let refused =
            "T  INFO vector::topology::running: Reloading running topology with new configuration.
T ERROR vector::topology::builder: Configuration error. error=Sink \"a\": bad
T ERROR vector: Reload was not successful. reason=\"build\"
";
        let found = reload(&format!(
            "T ERROR x: old\nT INFO Vector has reloaded.\n{refused}T ERROR later"
        ));
        let why = "ERROR vector::topology::builder: Configuration error. error=Sink \"a\": bad\nERROR vector: Reload was not successful. reason=\"build\"";
        assert_eq!(found, Some(Reload::Refused(at(6), why.to_owned())));
        let aborted =
            "T ERROR vector::app: Failed to load config files, reload aborted. paths=[]\n";
        assert!(matches!(reload(aborted), Some(Reload::Refused(..))));
        // A later one has begun.
        let again = format!("{refused}T INFO Reloading running topology with new configuration.\n");
        assert_eq!(reload(&again), Some(Reload::Begun(at(5), Vec::new())));
        let many = format!("T ERROR {}\n", "ä".repeat(LONGEST)).repeat(3);
        let Some(Reload::Refused(_, why)) = reload(&format!("{many}{aborted}")) else {
            panic!("not refused");
        };
        assert!(why.len() <= LONGEST, "{}", why.len());
    }

    #[test]
    fn what_a_program_writes_is_no_line_of_vector() {
        let imitated = "T ERROR transform{component_kind=\"transform\" component_id=a}: vrl::stdlib::log: Reload was not successful
T INFO transform{component_id=a}: vrl::stdlib::log: Reloading running topology with new configuration\n";
        assert_eq!(reload(imitated), None);
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
        assert_eq!(reload(waiting), Some(Reload::Begun(at(3), names)));
        let ended = format!("{waiting}T INFO Vector has reloaded.\n");
        assert_eq!(reload(&ended), Some(Reload::Done));
    }
}
