//! `DescribeEvents` and `DescribePendingMaintenanceActions`.

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::filter::filter;
use crate::operations::page::page;
use crate::protocol::fault::Fault;

/// Minutes of which RDS returns the events if a request sets no other time.
const MINUTES: i64 = 60;

/// Returns the events that the parameters select.
pub(crate) fn events(call: &Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let time = |name: &str| -> Option<Timestamp> {
        let text = parameters.given_text(name)?;
        text.parse().ok()
    };
    let minutes = parameters.number("Duration").unwrap_or(MINUTES);
    let start = time("StartTime").unwrap_or(call.now - minutes.minutes());
    let end = time("EndTime").unwrap_or(call.now);
    let source = parameters.given_text("SourceIdentifier");
    let source_type = parameters.given_text("SourceType");
    if source.is_some() && source_type.is_none() {
        return Err(Fault::combination(
            "SourceType is required if SourceIdentifier is specified.",
        ));
    }
    let categories = parameters.texts("EventCategories");
    let events = call.region.events.iter().enumerate();
    let events = events.filter(|(_, it)| {
        (start..=end).contains(&it.at)
            && source.is_none_or(|source| source == it.source)
            && source_type.is_none_or(|kind| kind == it.source_type)
            && (categories.is_empty() || categories.contains(&it.category))
    });
    let entries = events.map(|(number, it)| (format!("{number:08}"), it.reported()));
    page("Events", entries.collect(), parameters)
}

/// Returns the pending maintenance actions that a test has set.
pub(crate) fn maintenance(call: &mut Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let place = call.region.place.clone();
    let wanted = parameters.given_text("ResourceIdentifier");
    if let Some(arn) = wanted {
        let id = arn.strip_prefix(&place.arn("db", "")).unwrap_or(arn);
        call.region.instance(id).map_err(|_| {
            Fault::new(
                "ResourceNotFoundFault",
                format!("Resource {arn} not found."),
            )
        })?;
    }
    let found = filter(
        call.region.maintenance.iter(),
        parameters,
        |(id, _), name, value| match name {
            "db-instance-id" => Some(id == value || place.arn("db", id) == value),
            "db-cluster-id" => Some(false),
            _ => None,
        },
    )?;
    let entries = found.into_iter().filter_map(|(id, action)| {
        let arn = place.arn("db", id);
        let entry = json!({
            "ResourceIdentifier": arn,
            "PendingMaintenanceActionDetails": [Value::from(action.clone())],
        });
        wanted
            .is_none_or(|it| it == arn)
            .then_some((id.clone(), entry))
    });
    page("PendingMaintenanceActions", entries.collect(), parameters)
}
