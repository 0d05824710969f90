//! Catalogues of what RDS offers in accounts and regions, read from files.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use k8s_openapi::jiff::{Timestamp, ToSpan};
use lockstep_cloud_database_api::{OfferCatalogues, OfferContext};
use lockstep_sdk::{ExtensionReload, JsonFolders, RulesetExtension, json_files};
use rds_catalogue::{Catalogue, IndexedCatalogue};

/// Age from which on a catalogue denies nothing, in hours: three days.
const STALE_AFTER_HOURS: i64 = 3 * 24;

/// Day on which no catalogue is fresh.
const NEVER: &str = "9999-12-31";

/// Catalogues of accounts and regions.
#[derive(clap::Args)]
#[command(next_help_heading = "CloudDatabase")]
pub struct RdsCatalogueArgs {
    /// Folder with catalogues of what RDS offers in an account and region, which the controller and `lockstep rds catalogue`
    /// write: the files `*.json` and `*.json.gz`. Webhook and controller read them again when they change. Can be repeated.
    /// Manifests set the folder of the `ConfigMap` `lockstep-rds-catalogue`.
    #[arg(long, value_name = "FOLDER")]
    rds_catalogues: Vec<PathBuf>,
}

/// Creates the extension of the rules for a subcommand. Webhook and controller read the catalogues again when they change; for
/// other subcommands, a catalogue that cannot be read is an error.
///
/// # Errors
///
/// A catalogue cannot be read, or is invalid.
pub fn extension(args: &RdsCatalogueArgs, command: &str) -> anyhow::Result<RulesetExtension> {
    let context = Arc::new(OfferContext::default());
    let folders = args.rds_catalogues.clone();
    let mut files = JsonFolders::new(folders, "catalogue", parse);
    // Only the webhook denies: to an object that is stored, RDS itself says what it rejects.
    let is_binding = command != "controller";
    if ["webhook", "controller"].contains(&command) {
        // Read now, and not while the first review waits for its response.
        let _ = IndexedCatalogue::shipped();
        let of_reload = Arc::clone(&context);
        return Ok(RulesetExtension::new(context).reloaded_by(
            "lockstep_rds_catalogues_valid",
            "1 if all catalogues of what RDS offers are valid and in force, 0 otherwise",
            move || reload(&mut files, &of_reload, is_binding),
        ));
    }
    for folder in &args.rds_catalogues {
        json_files(folder)
            .with_context(|| format!("cannot read the catalogues in {}", folder.display()))?;
    }
    files.scan();
    if let Some(problem) = files.problems().first() {
        bail!(problem.clone());
    }
    context.set(catalogues(&files, is_binding));
    Ok(RulesetExtension::new(context))
}

/// Reads the catalogues again. They are also set if they have not changed, because they become too old.
fn reload(
    files: &mut JsonFolders<Catalogue>,
    context: &OfferContext,
    is_binding: bool,
) -> ExtensionReload {
    let is_changed = files.scan();
    if is_changed {
        for problem in files.problems() {
            tracing::error!(
                "{problem}; the last valid catalogue of the file, if any, stays in force"
            );
        }
        let places = files.files().filter_map(|(_, _, catalogue)| {
            let origin = &catalogue.origin;
            Some(format!(
                "{}/{}",
                origin.account.as_deref()?,
                origin.region.as_deref()?
            ))
        });
        let places = places.collect::<Vec<_>>().join(", ");
        tracing::info!(places, "the catalogues of RDS were loaded and are in force");
    }
    context.set(catalogues(files, is_binding));
    ExtensionReload {
        is_changed,
        is_valid: files.problems().is_empty(),
    }
}

fn catalogues(files: &JsonFolders<Catalogue>, is_binding: bool) -> OfferCatalogues {
    let fresh_since = Timestamp::now() - STALE_AFTER_HOURS.hours();
    let fresh_since = if is_binding {
        fresh_since.strftime("%Y-%m-%d").to_string()
    } else {
        NEVER.to_owned()
    };
    let all = files.files().map(|(_, _, catalogue)| Arc::clone(catalogue));
    OfferCatalogues::new(all.collect(), fresh_since)
}

fn parse(text: &str) -> Result<Arc<Catalogue>, String> {
    let catalogue = Catalogue::load(text).map_err(|error| error.to_string())?;
    Ok(Arc::new(catalogue))
}
