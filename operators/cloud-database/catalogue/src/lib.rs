//! Catalogue of what RDS offers: engine versions, instance classes, storage bounds and upgrade targets.
//!
//! ```text
//! answers of RDS ─► builder ─► catalogue ─► text, sorted, one line for each range and set of classes
//! ```
//!
//! A [`Catalogue`] is about all regions ([`Catalogue::shipped`]), or about one account and region. Its text is canonical: the
//! same content always has the same text, so that two catalogues are compared, and changes are reviewed, as text.
//!
//! # Examples
//!
//! ```
//! use rds_catalogue::{CatalogueBuilder, EngineVersions, Origin};
//!
//! let versions: EngineVersions = serde_json::from_str(
//!     r#"{"DBEngineVersions": [{"Engine": "postgres", "EngineVersion": "17.6", "Status": "available"}]}"#,
//! )?;
//! let mut builder = CatalogueBuilder::new(Origin::of_answers(None, None), "2026-11-26");
//! builder.add_versions(versions);
//! let catalogue = builder.finish();
//! assert!(catalogue.engines["postgres"].versions.len() == 1);
//! # Ok::<(), serde_json::Error>(())
//! ```

#![allow(clippy::doc_markdown, reason = "product names are no code")]

mod answers;
mod bounds;
mod builder;
mod catalogue;
mod classes;
mod index;
mod version;

pub use crate::answers::{
    EngineVersion, EngineVersions, OrderableOption, OrderableOptions, UpgradeTarget,
};
pub use crate::bounds::{Bounds, InvalidBounds};
pub use crate::builder::CatalogueBuilder;
pub use crate::catalogue::{
    Capability, Catalogue, ClassOffer, EngineOffers, FORMAT, LoadError, Origin, StorageOffer,
    VersionOffer,
};
pub use crate::classes::{ClassSet, InvalidClasses};
pub use crate::index::{IndexedCatalogue, IndexedEngine, MatchingVersions};
pub use crate::version::VersionName;
