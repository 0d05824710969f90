//! Costs of the work that the webhook, the controller and `check` do for each object, compared with committed counts.
//!
//! ```text
//! cases ─► benches/instructions (callgrind) ─┐
//!     └──► benches/memory (dhat) ────────────┴─► benches/costs: compared with the set of this environment in counts.json
//! ```

pub mod cases;
pub mod comparison;
pub mod counts;
pub mod environment;
pub mod measure;
