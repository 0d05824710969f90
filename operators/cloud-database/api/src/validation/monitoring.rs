//! Rules on the monitoring of an instance.

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use crate::engine::Engine;
use crate::references::CREATE;
use crate::spec::CloudDatabase;

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![Rule {
        id: "log-exports-engine",
        description: "The exported logs must be logs of the engine.",
        severity: Severity::Error,
        reference: CREATE,
        fields: &["spec.engine", "spec.monitoring.logExports"],
        validate: log_exports,
    }]
}

fn log_exports(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    let monitoring = spec.monitoring.as_ref();
    let exports = monitoring.and_then(|it| it.log_exports.as_deref());
    let allowed = spec.engine.log_exports();
    for (index, name) in exports.unwrap_or_default().iter().enumerate() {
        // The schema reports what no engine has.
        let is_known = Engine::ALL
            .iter()
            .any(|it| it.log_exports().contains(&name.as_str()));
        if is_known && !allowed.contains(&name.as_str()) {
            let detail = format!(
                "is no log of {}, which has {}",
                spec.engine.as_str(),
                allowed.join(", ")
            );
            let path = format!("spec.monitoring.logExports[{index}]");
            diagnostics.invalid(&path, name.as_str(), detail);
        }
    }
}
