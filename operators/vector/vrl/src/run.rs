//! Runs of programs, for tests of pipelines on the machine of their author.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value as Json;
use vrl::compiler::runtime::{Runtime, Terminate};
use vrl::compiler::{ExpressionError, Program as Compiled, TargetValue, TimeZone};
use vrl::diagnostic::{DiagnosticMessage, Note};
use vrl::path::parse_value_path;
use vrl::value::{KeyString, Secrets, Value};

use crate::diagnostic;
use crate::language::Language;
use crate::limits;
use crate::program::{Program, Purpose};
use crate::stdlib::AllowedFunctions;

/// Log event: its fields and its metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    fields: Value,
    metadata: Value,
}

impl Event {
    /// Returns an event with these fields. Another value than an object becomes its message.
    #[must_use]
    pub fn from_json(fields: Json) -> Self {
        Self::from_value(Value::from(fields), Value::Object(Default::default()))
    }

    /// Returns the event that Vector makes of a line.
    #[must_use]
    pub fn from_line(line: &str) -> Self {
        let event = Self::from_json(Json::String(line.to_owned()));
        let stamp = Program::plain(".timestamp = now()", Purpose::Remap);
        let stamped = RunnableProgram::compile(&stamp, None).ok();
        let stamped = stamped.and_then(|stamp| stamp.transform(event.clone()).ok());
        stamped
            .and_then(|events| events.into_iter().next())
            .unwrap_or(event)
    }

    fn from_value(value: Value, metadata: Value) -> Self {
        let fields = match value {
            fields @ Value::Object(_) => fields,
            message => Value::Object([(KeyString::from("message"), message)].into()),
        };
        Self { fields, metadata }
    }

    /// Sets a field. Returns false if the path cannot be parsed.
    pub fn insert(&mut self, path: &str, value: Json) -> bool {
        match parse_value_path(path) {
            Ok(path) => {
                self.fields.insert(&path, Value::from(value));
                true
            }
            Err(_) => false,
        }
    }

    /// Sets the metadata of an event that a program has dropped, as Vector does.
    pub fn set_dropped(&mut self, component: &str, reason: &Stop) {
        let (reason, cause) = match reason {
            Stop::Abort(cause) => ("abort", cause),
            Stop::Error(cause) => ("error", cause),
        };
        let dropped = serde_json::json!({
            "reason": reason, "message": cause.message, "component_id": component,
            "component_type": "remap", "component_kind": "transform",
        });
        self.insert("metadata.dropped", dropped);
    }

    /// Returns the fields.
    #[must_use]
    pub fn to_json(&self) -> Json {
        self.fields.clone().try_into().unwrap_or(Json::Null)
    }
}

/// Program that can run here.
#[derive(Clone)]
pub struct RunnableProgram {
    program: Compiled,
    timezone: TimeZone,
}

/// Reason why a program cannot run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRunnable {
    /// It does not compile.
    Invalid(String),
    /// It calls functions that need what only Vector has: files, the network, secrets, tables, or libraries.
    Functions(BTreeSet<String>),
}

impl fmt::Display for NotRunnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => write!(f, "its program does not compile: {error}"),
            Self::Functions(names) => {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                write!(f, "only Vector runs the function `{}`", names.join("`, `"))
            }
        }
    }
}

/// End of a program before it is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program has aborted.
    Abort(StopCause),
    /// A call has failed.
    Error(StopCause),
}

/// Cause of the end of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopCause {
    /// Error with its place in the program.
    error: String,
    /// Message that the program gives, and otherwise the error.
    message: String,
}

impl StopCause {
    fn new(error: &ExpressionError) -> Self {
        let notes = error.notes();
        let is_of_program = |note: &&Note| matches!(note, Note::UserErrorMessage(_));
        let of_program = notes.iter().rfind(is_of_program);
        let message = of_program.map_or_else(|| error.to_string(), Note::to_string);
        Self {
            error: error.to_string(),
            message,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abort(cause) => write!(f, "the program aborts: {}", cause.error),
            Self::Error(cause) => write!(f, "the program fails: {}", cause.error),
        }
    }
}

impl RunnableProgram {
    /// Compiles a program. `timezone` is the one that Vector has for times without an offset.
    ///
    /// # Errors
    ///
    /// It does not compile, or calls a function that cannot run here.
    pub fn compile(program: &Program<'_>, timezone: Option<&str>) -> Result<Self, NotRunnable> {
        let mut functions = AllowedFunctions::default();
        let invalid = |text: String| Err(NotRunnable::Invalid(text));
        let compiled = limits::on_a_large_stack(|| program.in_its_language(&mut functions));
        let found = match compiled {
            Ok(found) => found,
            Err(errors) => {
                let errors = diagnostic::errors(&program.source, errors).into_iter();
                let errors: Vec<_> = errors.map(|error| error.detail).collect();
                return invalid(errors.join("; "));
            }
        };
        if let Some(problem) = found.problem {
            return invalid(problem);
        }
        if !found.not_run.is_empty() {
            return Err(NotRunnable::Functions(found.not_run));
        }
        let timezone = timezone.and_then(TimeZone::parse);
        Ok(Self {
            program: found.program,
            timezone: timezone.unwrap_or_default(),
        })
    }

    /// Runs the program on an event. Returns the events that it makes.
    ///
    /// # Errors
    ///
    /// The program stops.
    pub fn transform(&self, event: Event) -> Result<Vec<Event>, Stop> {
        let (target, _) = self.run(event)?;
        let metadata = target.metadata;
        Ok(match target.value {
            Value::Array(values) => {
                let values = values.into_iter();
                values
                    .map(|value| Event::from_value(value, metadata.clone()))
                    .collect()
            }
            value => vec![Event::from_value(value, metadata)],
        })
    }

    /// Returns true if an event meets a condition.
    ///
    /// # Errors
    ///
    /// The program stops. Vector counts that as false.
    pub fn is_met(&self, event: Event) -> Result<bool, Stop> {
        let (_, result) = self.run(event)?;
        Ok(result == Value::Boolean(true))
    }

    /// Runs a program on an empty event, and returns it.
    ///
    /// # Errors
    ///
    /// The program stops.
    pub fn event(&self) -> Result<Event, Stop> {
        let empty = Event::from_json(Json::Object(Default::default()));
        let (target, _) = self.run(empty)?;
        Ok(Event::from_value(target.value, target.metadata))
    }

    fn run(&self, event: Event) -> Result<(TargetValue, Value), Stop> {
        let mut target = TargetValue {
            value: event.fields,
            metadata: event.metadata,
            secrets: Secrets::default(),
        };
        let run = || Runtime::default().resolve(&mut target, &self.program, &self.timezone);
        let result = limits::on_a_large_stack(run);
        let result = result.map_err(|end| match end {
            Terminate::Abort(error) => Stop::Abort(StopCause::new(&error)),
            Terminate::Error(error) => Stop::Error(StopCause::new(&error)),
        })?;
        Ok((target, result))
    }
}

impl Program<'_> {
    /// Returns a program without tables and denied functions, in the language of the newest version.
    #[must_use]
    pub fn plain(source: &str, purpose: Purpose) -> Program<'_> {
        Program {
            source: source.into(),
            purpose,
            tables: Default::default(),
            denied: Default::default(),
            has_files: false,
            language: Language::NEWEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compiled(source: &str, purpose: Purpose) -> Result<RunnableProgram, NotRunnable> {
        RunnableProgram::compile(&Program::plain(source, purpose), None)
    }

    fn transformed(source: &str, event: Json) -> Result<Vec<Json>, Stop> {
        let program = compiled(source, Purpose::Remap).expect("it compiles");
        let events = program.transform(Event::from_json(event))?;
        Ok(events.iter().map(Event::to_json).collect())
    }

    #[test]
    fn a_program_makes_of_an_event_what_vector_makes_of_it() {
        let event = || json!({"message": "{\"a\": 1}", "b": [1, 2]});
        let parsed = transformed(". = object!(parse_json!(.message))", event());
        assert_eq!(parsed, Ok(vec![json!({"a": 1})]));
        let split = transformed(". = [{\"c\": 1}, 2]", event());
        assert_eq!(split, Ok(vec![json!({"c": 1}), json!({"message": 2})]));
        let failed = transformed(".x = to_int!(.message)", event());
        assert!(matches!(failed, Err(Stop::Error(_))), "{failed:?}");
        let aborted = transformed("abort \"enough\"", event());
        let Err(aborted @ Stop::Abort(_)) = aborted else {
            panic!("{aborted:?}");
        };
        assert_eq!(aborted.to_string(), "the program aborts: enough");
    }

    #[test]
    fn a_dropped_event_keeps_its_metadata_and_gets_the_message_of_the_program() {
        let fields = json!({"metadata": {"a": 1}});
        for (source, reason, message) in [
            ("assert!(false, \"no\")", "error", "no"),
            ("abort \"enough\"", "abort", "enough"),
        ] {
            let program = compiled(source, Purpose::Remap).expect("it compiles");
            let mut event = Event::from_json(fields.clone());
            let stop = program.transform(event.clone()).expect_err("it stops");
            event.set_dropped("parse", &stop);
            let metadata = &event.to_json()["metadata"];
            assert_eq!(metadata["a"], 1);
            let dropped = json!({
                "reason": reason, "message": message, "component_id": "parse",
                "component_type": "remap", "component_kind": "transform",
            });
            assert_eq!(metadata["dropped"], dropped);
        }
    }

    #[test]
    fn a_condition_is_met_by_true_only() {
        let is_met = |source: &str| {
            let condition = compiled(source, Purpose::Condition).expect("it compiles");
            condition.is_met(Event::from_json(json!({"a": 1})))
        };
        assert_eq!(is_met(".a == 1"), Ok(true));
        assert_eq!(is_met(".a == 2"), Ok(false));
        assert!(is_met("assert!(.a == 2)").is_err());
    }

    #[test]
    fn functions_that_cannot_run_here_are_named_also_where_their_errors_are_handled() {
        for (source, name) in [
            (".a = sha2(\"x\")", "sha2"),
            (".a, err = dns_lookup(\"example.com\")", "dns_lookup"),
            (".a = redact(\"b\", [r'b'], \"sha2\")", "redact"),
        ] {
            let found = compiled(source, Purpose::Remap).err();
            let names = BTreeSet::from([name.to_owned()]);
            assert_eq!(found, Some(NotRunnable::Functions(names)), "{source}");
        }
        let redacted = transformed(".a = redact(\"ab\", [r'b'])", json!({}));
        assert_eq!(redacted, Ok(vec![json!({"a": "a[REDACTED]"})]));
        assert!(matches!(
            compiled(".a = 1 +", Purpose::Remap),
            Err(NotRunnable::Invalid(_))
        ));
    }
}
