//! VRL programs, compiled with the VRL version of the Vector version in the catalogue.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use vrl::compiler::state::ExternalEnv;
use vrl::compiler::{CompilationResult, CompileConfig, compile_with_external};
use vrl::datadog_search_syntax::QueryNode;
use vrl::diagnostic::DiagnosticList;
use vrl::owned_value_path;
use vrl::path::{OwnedTargetPath, PathPrefix};

use crate::diagnostic::VrlDiagnostic;
use crate::language::Language;
use crate::stdlib::{AllowedFunctions, Files, Meanings, NotRun, Tables};
use crate::{diagnostic, limits};

/// Purpose of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Changes events.
    Remap,
    /// Returns a boolean and changes nothing.
    Condition,
    /// Query in Datadog's search syntax.
    Search,
}

/// Program with its enrichment tables and denied functions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program<'a> {
    /// Source text.
    pub source: Cow<'a, str>,
    /// Purpose, which decides about what the program may do.
    pub purpose: Purpose,
    /// Names of the enrichment tables.
    pub tables: Cow<'a, [String]>,
    /// Functions that the program must not call.
    pub denied: Cow<'a, BTreeSet<String>>,
    /// If true, the files that Vector reads while it compiles the program are those of this machine. The diagnostics name
    /// them, and nothing that depends on their contents is validated. If false, a program that needs files is rejected.
    pub has_files: bool,
    /// Language of the version of Vector that runs the program.
    pub language: Language,
}

impl Program<'_> {
    /// Compiles the program in the current thread, without a limit of time or memory.
    pub(crate) fn compile(&self, functions: &mut AllowedFunctions) -> Vec<VrlDiagnostic> {
        limits::on_a_large_stack(|| match self.purpose {
            Purpose::Search => self.search(),
            Purpose::Remap | Purpose::Condition => match self.in_its_language(functions) {
                Ok(found) => {
                    let advice = diagnostic::warnings(&self.source, found.warnings);
                    let files = found.files.0.into_iter();
                    found
                        .problem
                        .map(VrlDiagnostic::error)
                        .into_iter()
                        .chain(files.map(|(name, call)| VrlDiagnostic::file(name, call)))
                        .chain(advice)
                        .collect()
                }
                Err(errors) => diagnostic::errors(&self.source, errors),
            },
        })
    }

    fn search(&self) -> Vec<VrlDiagnostic> {
        let read = self.source.parse::<QueryNode>();
        let error = read.err().into_iter();
        let reported = error.map(|error| VrlDiagnostic::error(search_error(&error.to_string())));
        reported.collect()
    }

    /// Compiles a VRL program.
    pub(crate) fn in_its_language(
        &self,
        functions: &mut AllowedFunctions,
    ) -> Result<CompiledProgram, DiagnosticList> {
        let mut config = CompileConfig::default();
        config.set_custom(Tables(self.tables.to_vec()));
        config.set_custom(Meanings::default());
        config.set_custom(NotRun::default());
        if self.has_files {
            config.set_custom(Files::default());
        }
        config.set_custom(self.language);
        // Vector stores the namespace of a log and metadata for its sinks at this path.
        config.set_read_only_path(OwnedTargetPath::metadata(owned_value_path!("vector")), true);
        if self.purpose == Purpose::Condition {
            config.set_read_only();
        }
        let functions = functions.without(&self.denied);
        let environment = ExternalEnv::default();
        let compiled = compile_with_external(&self.source, functions, &environment, config)?;
        let problem = match self.purpose {
            Purpose::Condition => not_boolean(&compiled),
            Purpose::Remap | Purpose::Search => dangling(&compiled),
        };
        let files = compiled.config.get_custom::<Files>().cloned();
        let not_run = compiled.config.get_custom::<NotRun>().cloned();
        Ok(CompiledProgram {
            warnings: compiled.warnings,
            problem,
            files: files.unwrap_or_default(),
            not_run: not_run.unwrap_or_default().0,
            program: compiled.program,
        })
    }
}

/// Program that compiles.
pub(crate) struct CompiledProgram {
    warnings: DiagnosticList,
    /// Error of a program that compiles, and that Vector does not accept.
    pub(crate) problem: Option<String>,
    /// Files that Vector reads while it compiles the program.
    files: Files,
    /// Functions that it calls and that cannot run here.
    pub(crate) not_run: BTreeSet<String>,
    pub(crate) program: vrl::compiler::Program,
}

/// Describes an invalid search query. Of the text of the parser, only the position is for users.
fn search_error(text: &str) -> String {
    let position = text.split("--> ").nth(1).and_then(|rest| {
        let (line, column) = rest.split_whitespace().next()?.split_once(':')?;
        Some(format!(" at line {line}, column {column}"))
    });
    format!(
        "is not a valid search query{}; see https://docs.datadoghq.com/logs/explorer/search_syntax/",
        position.unwrap_or_default()
    )
}

fn not_boolean(compiled: &CompilationResult) -> Option<String> {
    let result = compiled.program.final_type_info().result;
    let detail = || {
        format!(
            "the result of a condition must be a boolean, but this one is of type {}",
            result.kind()
        )
    };
    (!result.is_boolean()).then(detail)
}

/// Returns an error if the program removes a field to which it assigned a meaning: Vector aborts in this case.
fn dangling(compiled: &CompilationResult) -> Option<String> {
    let meanings = compiled.config.get_custom::<Meanings>()?;
    let after = compiled.program.final_type_info().state.external;
    let gone = meanings.0.iter().find(|(_, path)| {
        let kind = match path.prefix {
            PathPrefix::Event => after.target_kind(),
            PathPrefix::Metadata => after.metadata_kind(),
        };
        !kind.at_path(&path.path).contains_any_defined()
    });
    gone.map(|(meaning, path)| {
        format!("the meaning `{meaning}` is assigned to `{path}`, which no longer exists at the end of the program")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the errors of a program.
    fn errors(source: &str, purpose: Purpose) -> Vec<String> {
        let denied = BTreeSet::new();
        let program = Program {
            source: source.into(),
            purpose,
            tables: Cow::Borrowed(&[]),
            denied: Cow::Owned(denied),
            has_files: false,
            language: Language::NEWEST,
        };
        let findings = program.compile(&mut AllowedFunctions::default());
        let findings = findings.into_iter();
        let errors = findings.filter(|finding| !finding.is_advice);
        errors.map(|error| error.detail).collect()
    }

    #[test]
    fn the_metadata_of_vector_is_read_only_in_programs() {
        for source in [
            "% = {}",
            "%vector = 1",
            "%vector.x = 1",
            "del(%)",
            "del(%vector.x)",
            "%, err = parse_json(.message)",
        ] {
            let errors = errors(source, Purpose::Remap);
            let is_read_only = errors.iter().any(|error| error.contains("read-only"));
            assert!(is_read_only, "{source}: {errors:?}");
        }
        for source in ["%foo = 1", "%vectorx = 1", "del(%foo)", ".vector = %vector"] {
            assert_eq!(errors(source, Purpose::Remap), [""; 0], "{source}");
        }
    }

    #[test]
    fn the_files_of_a_program_are_named_or_the_program_is_rejected() {
        let compiled = |source: &'static str, has_files| {
            let program = Program {
                source: source.into(),
                purpose: Purpose::Remap,
                tables: Cow::Borrowed(&[]),
                denied: Cow::Owned(BTreeSet::new()),
                has_files,
                language: Language::NEWEST,
            };
            program.compile(&mut AllowedFunctions::default())
        };
        for source in [
            ".e = parse_etld!(\"a.com\", psl: \"/list\")",
            ".e = parse_proto!(\"x\", \"/list\", \"A\")",
            ".e = encode_proto!({}, \"/list\", \"A\")",
        ] {
            let named = compiled(source, true);
            let [only] = &named[..] else {
                panic!("{source}: {named:?}");
            };
            assert_eq!(only.file.as_deref(), Some("/list"));
            assert_eq!(only.within, Some(5..source.len()));
            let rejected = compiled(source, false);
            assert!(
                rejected[0].detail.contains("cannot be validated"),
                "{rejected:?}"
            );
            assert_eq!(rejected[0].file, None);
        }
        let groks = ".e = parse_groks!(\"x\", patterns: [\"%{a}\"], alias_sources: [\"/nowhere\"])";
        assert_eq!(compiled(groks, true)[0].file.as_deref(), Some("/nowhere"));
        assert!(
            compiled(groks, false)[0]
                .detail
                .contains("not read during validation")
        );
    }

    #[test]
    fn the_error_of_a_search_query_has_its_position_and_no_text_of_the_parser() {
        assert_eq!(
            errors("a:(", Purpose::Search),
            [
                "is not a valid search query at line 1, column 4; see https://docs.datadoghq.com/logs/explorer/search_syntax/"
            ]
        );
    }

    #[test]
    fn errors_are_in_the_order_of_the_lines_and_have_hints() {
        let program = Program {
            source: ".a = to_int(.a)\n.b = downcse(.b)\n.c = to_int(.c)".into(),
            purpose: Purpose::Remap,
            tables: Cow::Borrowed(&[]),
            denied: Cow::Owned(BTreeSet::new()),
            has_files: false,
            language: Language::NEWEST,
        };
        let findings = program.compile(&mut AllowedFunctions::default());
        let lines: Vec<_> = findings
            .iter()
            .map(|finding| finding.detail.split(',').next().unwrap_or_default())
            .collect();
        assert_eq!(lines, ["line 1", "line 2", "line 3"], "{findings:?}");
        assert_eq!(
            findings[0].hints,
            ["change this to an infallible assignment: `.a, err = to_int(.a)`"]
        );
        assert_eq!(findings[1].hints, ["did you mean \"downcase\"?"]);
    }

    #[test]
    fn round_returns_an_integer_before_vrl_0_35() {
        let errors = |source: &'static str, vector| {
            let program = Program {
                source: source.into(),
                purpose: Purpose::Remap,
                tables: Cow::Borrowed(&[]),
                denied: Cow::Owned(BTreeSet::new()),
                has_files: false,
                language: Language::of_vector(vector),
            };
            program.compile(&mut AllowedFunctions::default()).len()
        };
        let integer = ".a = format_int!(round(1.5))";
        assert_eq!((errors(integer, 57), errors(integer, 58)), (0, 1));
        let wrong = ".a = round(true)";
        assert_eq!((errors(wrong, 57), errors(wrong, 58)), (1, 1));
    }

    #[test]
    fn a_function_exists_from_its_version_on() {
        let errors = |vector| {
            let program = Program {
                language: Language::of_vector(vector),
                ..Program::plain(".a = to_entries({})", Purpose::Remap)
            };
            let findings = program.compile(&mut AllowedFunctions::default());
            findings
                .into_iter()
                .map(|finding| finding.detail)
                .collect::<Vec<_>>()
        };
        assert_eq!(errors(55), [""; 0]);
        let old = errors(54);
        assert!(
            old[0].contains("Vector has `to_entries` from version 0.55 on"),
            "{old:?}"
        );
    }

    #[test]
    fn a_condition_reads_metadata_and_changes_nothing() {
        assert_eq!(errors("%vector.x == 1", Purpose::Condition), [""; 0]);
        assert!(!errors("%foo = 1; true", Purpose::Condition).is_empty());
    }

    #[test]
    fn functions_have_the_signatures_of_the_vrl_of_vector() {
        for (source, is_valid) in [
            // `find` returns an integer or null.
            (".b = find!(.message, \"b\") + 1", false),
            ("if find(string!(.a), \"x\") > 0 { .b = 1 }", false),
            ("if find(string!(.a), \"x\") != null { .b = 1 }", true),
            // A pattern need not be a literal.
            (".a = parse_regex!(.message, .pattern)", true),
            (".a, err = parse_regex(.message, .pattern)", true),
            (".a = parse_regex(.message, .pattern) ?? {}", true),
            (".a = parse_cef!(.message, strict: false)", true),
            (".a = parse_cef!(.message, unknown: false)", false),
            (".a = join!([1, 2, 3])", true),
            (".a = redact!(.b, [r'a'], \"full\")", true),
            (".a = redact!(.b, [r'a'], \"sha2\")", true),
            (".a = redact!(.b, [r'a'], redactor: \"sha3\")", true),
            (".a = redact!(.b, [r'a'], \"sha1\")", false),
            (
                ".a = redact!(.b, [r'a'], {\"type\": \"sha2\", \"variant\": \"SHA-256\", \"encoding\": \"hex\"})",
                true,
            ),
            (
                ".a = redact!(.b, [r'a'], {\"type\": \"sha3\", \"variant\": \"SHA-256\"})",
                false,
            ),
            (
                ".a = redact!(.b, [r'a'], {\"type\": \"sha2\", \"encoding\": \"base32\"})",
                false,
            ),
            (".a = redact!(.b, [\"unknown\"], \"sha2\")", false),
            (".a = redact!(.b, [r'a'], .c)", false),
            (".a = upcase(redact(\"b\", [r'a'], \"sha2\"))", true),
        ] {
            let errors = errors(source, Purpose::Remap);
            assert_eq!(errors.is_empty(), is_valid, "{source}: {errors:?}");
        }
    }
}
