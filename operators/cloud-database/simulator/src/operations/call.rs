//! Context of a call.

use jiff::Timestamp;

use crate::state::config::Config;
use crate::state::region::Region;

/// Region that a call concerns, with the settings and the time.
pub(crate) struct Call<'a> {
    pub(crate) region: &'a mut Region,
    pub(crate) config: &'a Config,
    pub(crate) now: Timestamp,
}
