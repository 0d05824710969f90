//! Rules about the tests of a pipeline, where they can run: on the machine of their author.

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};
use serde_json::json;

use crate::rules::cached_validation::CachedValidation;
use crate::rules::context::VectorContext;
use crate::test_result::{NamedResult, TestResult};
use crate::types::pipeline::Pipeline;

/// Page that describes tests of a configuration.
const TESTS: &str = "https://vector.dev/docs/reference/configuration/unit-tests/";

pub(crate) fn rules<K: Pipeline>() -> [Rule<K>; 2] {
    let rule = |id, description, severity, validate| Rule {
        id,
        description,
        severity,
        reference: TESTS,
        fields: &["spec.tests", "spec.transforms"],
        validate,
    };
    [
        rule(
            "pipeline-tests",
            "The tests of the pipeline pass. `lockstep check` runs them, and neither the webhook nor the controller does.",
            Severity::Error,
            |context, diagnostics| {
                report(context, diagnostics, |result| match result {
                    TestResult::Failed(reasons) => Some(format!("fails: {}", reasons.join("; "))),
                    TestResult::Invalid(why) => Some(format!("is invalid: {why}")),
                    TestResult::Passed | TestResult::NotRun(_) => None,
                });
            },
        ),
        rule(
            "pipeline-tests-run",
            "`lockstep check` can run the tests of the pipeline.",
            Severity::Warning,
            |context, diagnostics| {
                report(context, diagnostics, |result| match result {
                    TestResult::NotRun(why) => Some(format!("is not run: {why}")),
                    TestResult::Passed | TestResult::Failed(_) | TestResult::Invalid(_) => None,
                });
            },
        ),
    ]
}

fn report<K: Pipeline>(
    context: &RuleContext<'_, K>,
    diagnostics: &mut Diagnostics,
    problem: impl Fn(&TestResult) -> Option<String>,
) {
    let tests = &context.object.spec().tests;
    let extension = context.extension::<VectorContext>();
    let run = extension.and_then(VectorContext::run_tests);
    let Some(run) = run.filter(|_| !tests.is_empty()) else {
        return;
    };
    let validation = CachedValidation::of(context);
    // Vector does not run the tests of a configuration that it cannot load.
    if validation.problems(extension).prevent_loading() {
        return;
    }
    let results = validation.test_results(|| {
        let mut config = validation.config.clone();
        config["tests"] = json!(tests);
        run(validation.newest(), &config)
    });
    for (index, NamedResult { name, result }) in results.iter().enumerate() {
        if let Some(detail) = problem(result) {
            let path = FieldPath::new("spec.tests").index(index);
            let detail = format!("the test `{name}` {detail}");
            diagnostics.push(FieldError::invalid_hidden(path, detail));
        }
    }
}
