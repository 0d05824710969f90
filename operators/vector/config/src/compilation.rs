//! Compilation of the programs of one configuration.

use std::borrow::Cow;
use std::collections::BTreeSet;

use lockstep_shared_validation::{FieldError, FieldPath};
use lockstep_vector_vrl::{Compiler, Language, Program, Purpose, VRL_VERSION, VrlCost};
use serde_json::{Map, Value};

use crate::catalogue::Catalogue;
use crate::diagnostic::{Check, DiagnosticList};
use crate::interpolation::SECRET;
use crate::vrl_environment::{ProgramFileError, VrlEnvironment};

/// Error for a program in a file that cannot be read here.
const FILE_OF_HOST: &str = "the program is in a file on the agent's host, which the webhook and the controller cannot read; write it into `source`";

/// State that the programs of a configuration share.
pub(crate) struct Compilation<'a> {
    /// Names of the enrichment tables.
    tables: Vec<String>,
    /// Functions that programs must not call.
    denied: &'a BTreeSet<String>,
    /// Total size of the programs so far.
    together: VrlCost,
    environment: &'a VrlEnvironment,
    /// Language of the version of Vector.
    language: Language,
    /// None after the compiler failed or a limit was exceeded.
    compiler: Option<Box<dyn Compiler>>,
}

impl<'a> Compilation<'a> {
    /// Prepares the compilation of the programs of a configuration.
    pub(crate) fn of(
        catalogue: &Catalogue,
        config: &Map<String, Value>,
        denied: &'a BTreeSet<String>,
        environment: &'a VrlEnvironment,
    ) -> Self {
        let tables = config.get("enrichment_tables").and_then(Value::as_object);
        Self {
            tables: tables.into_iter().flat_map(Map::keys).cloned().collect(),
            denied,
            together: VrlCost::default(),
            environment,
            language: catalogue.number().language(),
            compiler: Some((environment.compiler)()),
        }
    }

    /// Returns true if some functions are denied.
    pub(crate) fn is_restricted(&self) -> bool {
        !self.denied.is_empty()
    }

    /// Validates one program, which is the value of an option.
    pub(crate) fn validate(
        &mut self,
        source: &str,
        purpose: Purpose,
        path: &FieldPath,
        problems: &mut DiagnosticList,
    ) {
        self.validate_source(source, purpose, path, None, problems);
    }

    /// Validates the program of a `remap` transform that is in files, which Vector joins. Relative names are relative
    /// to the working directory, as in Vector.
    pub(crate) fn validate_files(
        &mut self,
        names: &[&str],
        path: &FieldPath,
        problems: &mut DiagnosticList,
    ) {
        let mut joined = String::new();
        let mut is_complete = true;
        for name in names {
            match (self.environment.read_file)(name) {
                Ok(source) => {
                    joined.push_str(&source);
                    joined.push('\n');
                }
                Err(ProgramFileError::OfHost) => {
                    let error = FieldError::forbidden(path.clone(), FILE_OF_HOST);
                    return problems.add(Check::ProgramFiles, error);
                }
                Err(ProgramFileError::Unreadable(detail)) => {
                    is_complete = false;
                    let error = FieldError::invalid(path.clone(), *name, detail);
                    problems.add(Check::Programs, error);
                }
            }
        }
        if is_complete {
            let origin = names.join(" + ");
            self.validate_source(&joined, Purpose::Remap, path, Some(&origin), problems);
        }
    }

    /// Validates one program. `origin` names the files that contain it, if it is not the value of the option.
    fn validate_source(
        &mut self,
        source: &str,
        purpose: Purpose,
        path: &FieldPath,
        origin: Option<&str>,
        problems: &mut DiagnosticList,
    ) {
        // The configuration is already invalid and must not cost more.
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        let wrong = |detail: String| {
            let detail = match origin {
                Some(origin) => format!("{origin}: {detail}"),
                None => detail,
            };
            FieldError::invalid_hidden(path.clone(), detail)
        };
        let limits = self.environment.limits;
        let size = match limits.exceeded(source) {
            Ok(size) => size,
            Err(detail) => return problems.add(Check::Limits, wrong(detail)),
        };
        if let Some(detail) = limits.exceeded_together(&mut self.together, size) {
            self.compiler = None;
            return problems.add(Check::Limits, wrong(detail));
        }
        if source.contains(SECRET) {
            let detail = "the content of the Secret would become part of the program without being validated; use the Secret in an option";
            problems.add(Check::ProgramSecrets, wrong(detail.to_owned()));
        }
        let program = Program {
            source: Cow::Borrowed(source),
            purpose,
            tables: Cow::Borrowed(&self.tables),
            denied: Cow::Borrowed(self.denied),
            has_files: self.environment.check_file.is_some(),
            language: self.language,
        };
        match compiler.compile(&program) {
            Ok(findings) => {
                for mut finding in findings {
                    if let Some(name) = &finding.file {
                        let check = self.environment.check_file;
                        let Some(Err(reason)) = check.map(|check| check(name)) else {
                            continue;
                        };
                        finding.detail = format!(
                            "the file {name}, which Vector reads while it compiles the program, {reason}"
                        );
                    }
                    let check = if finding.is_advice {
                        Check::ProgramAdvice
                    } else {
                        Check::Programs
                    };
                    let error = match purpose {
                        Purpose::Search => {
                            FieldError::invalid(path.clone(), source, finding.detail)
                        }
                        Purpose::Remap | Purpose::Condition => wrong(versioned(&finding.detail)),
                    };
                    // A position in a file is not one in the value of the option.
                    let error = match origin {
                        Some(_) => error,
                        None => error.with_span(finding.within),
                    };
                    let error = error.with_hints(finding.hints);
                    problems.add(check, error);
                }
            }
            Err(detail) => {
                self.compiler = None;
                problems.add(Check::Programs, FieldError::internal(path.clone(), detail));
            }
        }
    }
}

/// Adds the version of the compiler to the first line of a message: other versions accept other programs.
fn versioned(detail: &str) -> String {
    let end = detail.find('\n').unwrap_or(detail.len());
    let (message, excerpt) = detail.split_at(end);
    format!("{message} (VRL {VRL_VERSION}){excerpt}")
}
