//! Catalogue of what RDS offers in the account and region: read once a day, and kept in a `ConfigMap` for the rules.
//!
//! ```text
//! object with an engine ─► due? ─► pages of RDS ─► builder ─► merged with the stored catalogue ─► written if it differs
//! ```

pub(crate) mod answers;
mod attempts;
mod metrics;
mod refresh;
mod stored;

pub use crate::offers::metrics::{
    OFFERS_READ, OFFERS_READ_HELP, OFFERS_REFRESHES, OFFERS_REFRESHES_HELP, OfferLabels,
    OfferMetrics, OfferReadTimes, OfferRefreshLabels, OfferRefreshes,
};
pub use crate::offers::refresh::OfferRefresh;
