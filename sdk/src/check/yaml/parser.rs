//! Text → values, as `sigs.k8s.io/yaml` reads them for `kubectl`: the events of libyaml, with the types of YAML 1.1.

use std::collections::{HashMap, HashSet};
use std::io::{Chain, Read as _};
use std::rc::Rc;

use libyaml_safer::{Event, EventData, MappingStyle, Parser, ScalarStyle, SequenceStyle};
use serde_json::Value;

use crate::check::diagnostic::ParseError;
use crate::check::yaml::hidden_colons::{HiddenColons, is_about_a_colon};
use crate::check::yaml::node::{Entry, Located, Node, PathIndex, Span};
use crate::check::yaml::position::Positions;
use crate::check::yaml::scalar;
use crate::check::yaml::spans::source_location;

/// Maximum nesting depth, as in the JSON reader.
const MAX_DEPTH: usize = 127;

/// Maximum number of values of a file, with the aliases expanded.
pub(crate) const MAX_VALUES: usize = 2_000_000;

/// Name of a field whose value is merged into the mapping.
const MERGE: &str = "<<";

/// Number of bytes of a text that count as one more value: an alias of a long text is not as cheap as one of a number.
const BYTES_OF_VALUE: usize = 128;

/// Reads the documents of a text. `values_left` is the number of values that the file may still have.
pub(crate) fn parse(text: &str, values_left: &mut usize) -> Result<Vec<Located>, ParseError> {
    let mut hidden = HiddenColons::new(text);
    loop {
        let mut left = *values_left;
        match parse_with(text, &hidden, &mut left) {
            Err(Problem::Colon(at, _)) if hidden.hide(at) => {}
            Err(Problem::Colon(_, problem) | Problem::Other(problem)) => return Err(problem),
            Ok(documents) => {
                *values_left = left;
                return Ok(documents);
            }
        }
    }
}

fn parse_with(
    text: &str,
    hidden: &HiddenColons<'_>,
    values_left: &mut usize,
) -> Result<Vec<Located>, Problem> {
    let positions = Positions::new(text);
    let mut events = Parser::new();
    // The scanner panics where a text ends in a line of a block scalar.
    let end = if text.ends_with('\n') { "" } else { "\n" };
    events.set_input(positions.content(hidden.text()).chain(end.as_bytes()));
    let mut reader = Reader {
        text,
        hidden,
        positions,
        events,
        anchors: HashMap::new(),
        open_anchors: HashSet::new(),
        values_left,
    };
    let mut documents = Vec::new();
    loop {
        let event = reader.next()?;
        match event.data {
            EventData::StreamEnd => return Ok(documents),
            EventData::DocumentStart { .. } => {
                reader.anchors.clear();
                let first = reader.next()?;
                let root = reader.value(first, Place::ROOT)?.located;
                // Nothing but comments after a separator.
                let is_empty = root.at.start == root.at.end;
                let is_null = matches!(*root.node, Node::Scalar(Value::Null));
                if !(is_empty && is_null) {
                    documents.push(root);
                }
            }
            // A stream begins, or a document ends.
            _ => {}
        }
    }
}

/// Reason for which a text cannot be read.
enum Problem {
    /// A plain scalar in a flow collection ends in a colon at this byte, such as `[fd00::, 10.0.0.1]`.
    Colon(usize, ParseError),
    Other(ParseError),
}

impl From<ParseError> for Problem {
    fn from(problem: ParseError) -> Self {
        Self::Other(problem)
    }
}

/// Place of a value in its document.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// If true, it is in `[]` or `{}`.
    is_in_flow: bool,
}

impl Place {
    const ROOT: Self = Self {
        depth: 0,
        is_in_flow: false,
    };

    fn below(self, is_flow: bool) -> Self {
        Self {
            depth: self.depth + 1,
            is_in_flow: is_flow,
        }
    }
}

/// A value that was read.
#[derive(Clone)]
struct Read {
    located: Located,
    /// Number of values in it, including itself and the names of fields.
    values: usize,
}

struct Reader<'a> {
    text: &'a str,
    hidden: &'a HiddenColons<'a>,
    positions: Positions<'a>,
    events: Parser<Chain<&'a [u8], &'a [u8]>>,
    anchors: HashMap<String, Read>,
    /// Anchors whose value is being read.
    open_anchors: HashSet<String>,
    values_left: &'a mut usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<Event, Problem> {
        self.events.parse().map_err(|error| {
            let mark = error.problem_mark().or(error.context_mark());
            let at = mark.map(|mark| self.positions.at(mark));
            let message = match error.context() {
                Some(context) => format!("{}, {context}", error.problem()),
                None => error.problem().to_owned(),
            };
            let line = at.and_then(|at| self.text.get(at.start..)?.lines().next());
            let hint = if line.is_some_and(|line| line.starts_with('\t')) {
                "; YAML does not allow tabs for indentation: use spaces"
            } else {
                ""
            };
            let problem = self.unreadable(at, &format!("{message}{hint}"));
            match at {
                Some(at) if is_about_a_colon(&error) => Problem::Colon(at.start, problem),
                _ => Problem::Other(problem),
            }
        })
    }

    fn unreadable(&self, at: Option<Span>, message: &str) -> ParseError {
        ParseError {
            location: at.map(|at| source_location(self.text, at)),
            message: format!("cannot be read: {message}"),
        }
    }

    /// Counts values against the limit.
    fn count(&mut self, values: usize, at: Span) -> Result<(), ParseError> {
        match self.values_left.checked_sub(values) {
            Some(left) => {
                *self.values_left = left;
                Ok(())
            }
            None => Err(self.unreadable(
                Some(at),
                &format!(
                    "more than {MAX_VALUES} values, with its aliases expanded; split the file"
                ),
            )),
        }
    }

    /// Reads the value that begins with an event.
    fn value(&mut self, first: Event, place: Place) -> Result<Read, Problem> {
        let start = self.positions.at(first.start_mark);
        if place.depth > MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(self.unreadable(Some(start), &message).into());
        }
        match first.data {
            EventData::Alias { anchor } => Ok(self.alias(&anchor, start)?),
            EventData::Scalar {
                anchor,
                tag,
                value,
                plain_implicit,
                style,
                ..
            } => {
                let values = 1 + value.len() / BYTES_OF_VALUE;
                self.count(values, start)?;
                let (begin, end) = (first.start_mark, first.end_mark);
                let at = self.positions.scalar(begin, end, is_block(style));
                let value = if is_block(style) && at.end == self.text.len() {
                    self.without_added_end(value)
                } else {
                    self.hidden.restored(value, at)
                };
                match style {
                    ScalarStyle::Plain if place.is_in_flow => self.require_no_key(at)?,
                    ScalarStyle::DoubleQuoted => self.require_escapes_of_kubectl(at)?,
                    _ => {}
                }
                let value = scalar::resolve(tag.as_deref(), plain_implicit, value)
                    .map_err(|problem| self.unreadable(Some(at), &problem))?;
                Ok(self.finish(anchor, Node::Scalar(value), at, values))
            }
            EventData::SequenceStart { anchor, style, .. } => {
                let items = place.below(style == SequenceStyle::Flow);
                self.list(anchor, start, items)
            }
            EventData::MappingStart { anchor, style, .. } => {
                let fields = place.below(style == MappingStyle::Flow);
                self.map(anchor, start, fields)
            }
            _ => Err(self
                .unreadable(Some(start), "a value was expected here")
                .into()),
        }
    }

    /// Returns the value of a block scalar at the end of the text, without a line break that the text does not have.
    fn without_added_end(&self, mut value: String) -> String {
        let last_line = self.text.rsplit('\n').next().unwrap_or_default();
        let content = value.strip_suffix('\n').unwrap_or(&value);
        let last_content = content.rsplit('\n').next().unwrap_or_default();
        // Blanks that only end the text are no content.
        let is_content = !last_line.trim().is_empty()
            || !last_content.is_empty() && last_content.trim().is_empty();
        if is_content && !last_line.is_empty() && value.ends_with('\n') {
            value.pop();
        }
        value
    }

    /// Refuses a question mark in a plain scalar of a flow collection, in which it begins a name for the library of `kubectl`.
    fn require_no_key(&self, at: Span) -> Result<(), ParseError> {
        if self.text[at.start..at.end].contains('?') {
            let message = "a `?` in `[]` or `{}` begins a name; put the text in quotes";
            return Err(self.unreadable(Some(at), message));
        }
        Ok(())
    }

    /// Refuses the escape `\/`, which is of YAML 1.2.
    fn require_escapes_of_kubectl(&self, at: Span) -> Result<(), ParseError> {
        let mut escaped = self.text[at.start..at.end].split('\\').skip(1);
        while let Some(after) = escaped.next() {
            if after.starts_with('/') {
                let message = "the escape `\\/` is unknown; write `/`";
                return Err(self.unreadable(Some(at), message));
            }
            // The second one of two backslashes escapes nothing.
            if after.is_empty() {
                escaped.next();
            }
        }
        Ok(())
    }

    fn finish(&mut self, anchor: Option<String>, node: Node, at: Span, values: usize) -> Read {
        let located = Located {
            node: Rc::new(node),
            at,
        };
        let read = Read { located, values };
        if let Some(anchor) = anchor {
            self.open_anchors.remove(&anchor);
            self.anchors.insert(anchor, read.clone());
        }
        read
    }

    fn alias(&mut self, anchor: &str, at: Span) -> Result<Read, ParseError> {
        let at = Span {
            end: at.start + 1 + anchor.len(),
            ..at
        };
        if self.open_anchors.contains(anchor) {
            let message = format!("the value of the anchor `{anchor}` contains itself");
            return Err(self.unreadable(Some(at), &message));
        }
        let Some(Read { located, values }) = self.anchors.get(anchor).cloned() else {
            let message = format!("there is no anchor `{anchor}` before it");
            return Err(self.unreadable(Some(at), &message));
        };
        self.count(values, at)?;
        let located = Located { at, ..located };
        Ok(Read { located, values })
    }

    fn list(&mut self, anchor: Option<String>, at: Span, place: Place) -> Result<Read, Problem> {
        self.count(1, at)?;
        self.open_anchors.extend(anchor.clone());
        let mut items = Vec::new();
        let mut values = 1;
        loop {
            let event = self.next()?;
            if matches!(event.data, EventData::SequenceEnd) {
                return Ok(self.finish(anchor, Node::List(items), at, values));
            }
            let item = self.value(event, place)?;
            values += item.values;
            items.push(item.located);
        }
    }

    fn map(&mut self, anchor: Option<String>, at: Span, place: Place) -> Result<Read, Problem> {
        self.count(1, at)?;
        self.open_anchors.extend(anchor.clone());
        let mut fields = Fields::default();
        let mut values = 1;
        loop {
            let event = self.next()?;
            if matches!(event.data, EventData::MappingEnd) {
                let node = Node::Map(PathIndex::new(fields.entries));
                return Ok(self.finish(anchor, node, at, values));
            }
            let is_merge = is_merge(&event.data);
            let Read {
                located: name,
                values: of_name,
            } = self.value(with_finite_name(event), place)?;
            let event = self.next()?;
            let value = self.value(event, place)?;
            values += of_name + value.values;
            if is_merge {
                self.merge(&mut fields, &value.located)?;
                continue;
            }
            let text = match &*name.node {
                Node::Scalar(text) => scalar::name(text),
                Node::List(_) | Node::Map(_) => None,
            };
            let Some(text) = text else {
                let message = "the name of a field must be a text, a number, true or false";
                return Err(self.unreadable(Some(name.at), message).into());
            };
            let entry = Entry {
                name: text,
                at: name.at,
                value: value.located,
            };
            if let Some(repeated) = fields.add(entry) {
                let message = format!("duplicate mapping key: {repeated}");
                return Err(self.unreadable(Some(name.at), &message).into());
            }
        }
    }

    /// Merges mappings into another one. A field before `<<` is replaced, as in `kubectl`.
    fn merge(&self, fields: &mut Fields, merged: &Located) -> Result<(), ParseError> {
        let all: Vec<_> = match &*merged.node {
            // The first mapping takes precedence.
            Node::List(items) => items.iter().rev().map(|item| &item.node).collect(),
            _ => vec![&merged.node],
        };
        if !all.iter().all(|node| matches!(***node, Node::Map(_))) {
            let message = "`<<` merges a mapping or a list of mappings";
            return Err(self.unreadable(Some(merged.at), message));
        }
        for node in all {
            if let Node::Map(map) = &**node {
                map.entries
                    .iter()
                    .for_each(|entry| fields.replace(entry.clone()));
            }
        }
        Ok(())
    }
}

/// Fields of a mapping that is being read.
#[derive(Default)]
struct Fields {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
    written: HashSet<String>,
}

impl Fields {
    /// Adds a field. Returns its name if the mapping itself already has it.
    fn add(&mut self, entry: Entry) -> Option<String> {
        if !self.written.insert(entry.name.clone()) {
            return Some(entry.name);
        }
        self.replace(entry);
        None
    }

    fn replace(&mut self, entry: Entry) {
        match self.by_name.get(&entry.name) {
            Some(index) => self.entries[*index] = entry,
            None => {
                self.by_name.insert(entry.name.clone(), self.entries.len());
                self.entries.push(entry);
            }
        }
    }
}

fn is_block(style: ScalarStyle) -> bool {
    matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
}

/// Returns an event whose scalar is a text if it is a number that is not finite.
fn with_finite_name(mut event: Event) -> Event {
    if let EventData::Scalar {
        tag: None,
        value,
        plain_implicit: is_plain @ true,
        ..
    } = &mut event.data
        && let Some(name) = scalar::not_finite(value)
    {
        name.clone_into(value);
        *is_plain = false;
    }
    event
}

/// Returns true if an event is the name of a field whose value is merged.
fn is_merge(event: &EventData) -> bool {
    let EventData::Scalar {
        tag,
        value,
        plain_implicit,
        ..
    } = event
    else {
        return false;
    };
    value == MERGE
        && match tag.as_deref() {
            None => *plain_implicit,
            Some(tag) => tag == "tag:yaml.org,2002:merge",
        }
}
