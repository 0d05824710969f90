//! Compilation of the programs of one configuration.

use std::borrow::Cow;
use std::collections::BTreeSet;

use lockstep_shared_validation::{FieldError, FieldPath};
use lockstep_vector_vrl::{Compiler, MakeCompiler, Program, Purpose, VrlCost, limits};
use serde_json::{Map, Value};

use crate::diagnostic::{Check, DiagnosticList};
use crate::interpolation::SECRET;

/// State that the programs of a configuration share.
pub(crate) struct Compilation<'a> {
    /// Names of the enrichment tables.
    tables: Vec<String>,
    /// Functions that programs must not call.
    denied: &'a BTreeSet<String>,
    /// Total size of the programs so far.
    together: VrlCost,
    /// None after the compiler failed or a limit was exceeded.
    compiler: Option<Box<dyn Compiler>>,
}

impl<'a> Compilation<'a> {
    /// Prepares the compilation of the programs of a configuration.
    pub(crate) fn of(
        config: &Map<String, Value>,
        denied: &'a BTreeSet<String>,
        compiler: MakeCompiler,
    ) -> Self {
        let tables = config.get("enrichment_tables").and_then(Value::as_object);
        Self {
            tables: tables.into_iter().flat_map(Map::keys).cloned().collect(),
            denied,
            together: VrlCost::default(),
            compiler: Some(compiler()),
        }
    }

    /// Returns true if some functions are denied.
    pub(crate) fn is_restricted(&self) -> bool {
        !self.denied.is_empty()
    }

    /// Validates one program.
    pub(crate) fn validate(
        &mut self,
        source: &str,
        purpose: Purpose,
        path: &FieldPath,
        problems: &mut DiagnosticList,
    ) {
        // The configuration is already invalid and must not cost more.
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let wrong = |detail: String| FieldError::invalid_hidden(path.clone(), detail);
        let size = match limits::exceeded(source) {
            Ok(size) => size,
            Err(detail) => return problems.add(Check::Limits, wrong(detail)),
        };
        if let Some(detail) = limits::exceeded_together(&mut self.together, size) {
            self.compiler = None;
            return problems.add(Check::Limits, wrong(detail));
        }
        if !self.denied.is_empty() && source.contains(SECRET) {
            let detail = "the content of the Secret would become part of the program without being validated; use the Secret in an option";
            return problems.add(Check::Programs, wrong(detail.to_owned()));
        }
        let program = Program {
            source: Cow::Borrowed(source),
            purpose,
            tables: Cow::Borrowed(&self.tables),
            denied: Cow::Borrowed(self.denied),
        };
        match compiler.compile(&program) {
            Ok(findings) => {
                for finding in findings {
                    let check = if finding.is_advice {
                        Check::ProgramAdvice
                    } else {
                        Check::Programs
                    };
                    let error = match purpose {
                        Purpose::Search => {
                            FieldError::invalid(path.clone(), source, finding.detail)
                        }
                        Purpose::Remap | Purpose::Condition => wrong(finding.detail),
                    };
                    problems.add(check, error.with_span(finding.within));
                }
            }
            Err(detail) => {
                self.compiler = None;
                problems.add(Check::Programs, FieldError::internal(path.clone(), detail));
            }
        }
    }
}
