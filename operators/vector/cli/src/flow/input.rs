//! Events that enter a flow.

use lockstep_vector_api::{Event, NotRunnable, Program, Purpose, RunnableProgram};
use serde_json::Value;

/// Returns the event of a line: its fields if it is a JSON object, and otherwise the event that Vector makes of a line.
pub(crate) fn event_of_line(line: &str) -> Event {
    match serde_json::from_str::<Value>(line) {
        Ok(fields @ Value::Object(_)) => Event::from_json(fields),
        _ => Event::from_line(line),
    }
}

/// Reason why there is no event of an input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputProblem {
    /// Only Vector makes events of this type, or runs the program of the input.
    OnlyVector(String),
    /// The definition is wrong.
    Invalid(String),
}

/// Returns the event of an input of a test.
///
/// # Errors
///
/// Its definition is wrong, or only Vector makes an event of it.
pub(crate) fn event_of_test(input: &Value) -> Result<Event, InputProblem> {
    let field = |type_: &str, name: &str| {
        let value = Some(&input[name]).filter(|value| !value.is_null());
        let missing = || format!("an input of the type `{type_}` needs `{name}`");
        value.ok_or_else(|| InputProblem::Invalid(missing()))
    };
    match input["type"].as_str().unwrap_or("raw") {
        "raw" => {
            let value = field("raw", "value")?;
            Ok(Event::from_line(value.as_str().unwrap_or_default()))
        }
        "vrl" => {
            let source = field("vrl", "source")?.as_str().unwrap_or_default();
            let program = RunnableProgram::compile(&Program::plain(source, Purpose::Remap), None);
            let program = program.map_err(|why| match why {
                NotRunnable::Functions(_) => InputProblem::OnlyVector(why.to_string()),
                NotRunnable::Invalid(_) => InputProblem::Invalid(why.to_string()),
            })?;
            let event = program.event();
            event.map_err(|stop| InputProblem::Invalid(stop.to_string()))
        }
        "log" => {
            let mut event = Event::from_line("");
            let fields = field("log", "log_fields")?.as_object();
            for (path, value) in fields.into_iter().flatten() {
                if !event.insert(path, value.clone()) {
                    let why = format!("`{path}` is no path of a field");
                    return Err(InputProblem::Invalid(why));
                }
            }
            Ok(event)
        }
        "metric" => {
            let why = "only Vector runs inputs of the type `metric`";
            Err(InputProblem::OnlyVector(why.to_owned()))
        }
        type_ => Err(InputProblem::Invalid(format!(
            "the type of an input is `raw`, `vrl`, `log` or `metric`, and not `{type_}`"
        ))),
    }
}
