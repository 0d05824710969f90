//! The source `journald`.

use crate::diagnostic::DiagnosticList;
use crate::start_up::component_options::{ComponentOptions, refuse};

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is_source(&["journald"]) {
        return;
    }
    let included: Vec<_> = options
        .texts("include_units")
        .into_iter()
        .map(|(_, unit)| of_service(unit))
        .collect();
    for (path, unit) in options.texts("exclude_units") {
        if included.contains(&of_service(unit)) {
            refuse(
                path,
                unit,
                "is also listed in `include_units`; remove one of them",
                problems,
            );
        }
    }
    let matches = |option: &str| {
        let found = options.get(option);
        let fields = found
            .iter()
            .filter_map(|found| found.value.as_object())
            .flatten();
        let pairs = fields.flat_map(|(field, values)| {
            let values = values.as_array().into_iter().flatten();
            values.filter_map(|value| Some((field.clone(), value.as_str()?.to_owned())))
        });
        pairs.collect::<Vec<_>>()
    };
    let included = matches("include_matches");
    for (field, value) in matches("exclude_matches") {
        if included.contains(&(field.clone(), value.clone())) {
            let path = options.path("exclude_matches").key(&field);
            refuse(
                path,
                &value,
                "is also listed in `include_matches`; remove one of them",
                problems,
            );
        }
    }
}

/// Returns the name of a unit with its suffix.
fn of_service(unit: &str) -> String {
    if unit.contains('.') {
        unit.to_owned()
    } else {
        format!("{unit}.service")
    }
}
