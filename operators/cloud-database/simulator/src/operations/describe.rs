//! `DescribeDBInstances`.

use serde_json::Value;

use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::filter::filter;
use crate::operations::page::page_of;
use crate::protocol::fault::Fault;
use crate::state::instance::Instance;
use crate::state::region::not_found;
use crate::state::reported;

/// Returns the instances that the parameters select.
pub(crate) fn instances(call: &Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let region = &*call.region;
    let listed = region.instances.iter();
    let listed = listed.filter(|it| it.listed_from <= call.now);
    let mut found = filter(listed, parameters, |it, name, value| match name {
        "db-instance-id" => Some(is_named(call, it, value)),
        "dbi-resource-id" => Some(it.resource_id == value),
        "engine" => Some(it.settings.text("Engine") == value),
        // No instance belongs to a cluster or a domain.
        "db-cluster-id" | "domain" => Some(false),
        _ => None,
    })?;
    if let Some(id) = parameters.given_text("DBInstanceIdentifier") {
        found.retain(|it| is_named(call, it, id));
        if found.is_empty() {
            return Err(not_found(id));
        }
    }
    let entries = found.into_iter().map(|it| (it.id().to_owned(), it));
    page_of("DBInstances", entries.collect(), parameters, |it| {
        reported::instance(region, it, call.now)
    })
}

/// Returns true if a value is the identifier of an instance, or its ARN.
fn is_named(call: &Call<'_>, instance: &Instance, value: &str) -> bool {
    let arn = call.region.place.arn("db", instance.id());
    instance.id().eq_ignore_ascii_case(value) || arn == value
}
