//! Simulator of RDS for tests.
//!
//! Compared with moto, instances go through the states of RDS, modifications are pending, and the documented
//! constraints and errors apply. The simulator runs in the process of the test, which controls its time and injects
//! faults.
//!
//! request → [`Model`] → operation → state of the region → answer
//!
//! # Assumptions
//!
//! The documentation of RDS leaves some behaviour open, or contradicts itself. The simulator then does what demands more
//! of a client:
//!
//! - A growth of storage by less than ten percent is rejected, and not rounded up.
//! - An instance cannot be deleted while its status is `creating`.
//! - Modifications are rejected while another state than those of `ModifyDBInstance` in the user guide lasts, such as
//!   `modifying` or `backing-up`.
//! - A request with an unknown parameter is rejected.
//! - All subnet groups are in the same VPC, so that an instance cannot be moved to another group.
//!
//! The texts of errors are those that clients have reported, where they are known.
//!
//! ```no_run
//! # async fn test() -> std::io::Result<()> {
//! use rds_simulator::{Disturbance, End, Simulator};
//!
//! let simulator = Simulator::start().await?;
//! println!("AWS_ENDPOINT_URL={}", simulator.endpoint());
//! // The next creation is carried out, and its answer is lost.
//! simulator.inject("CreateDBInstance", Disturbance::LostAnswer, 1);
//! // … the instance `orders` was created …
//! simulator.force_status("orders", "storage-full", End::Released);
//! # Ok(())
//! # }
//! ```

mod catalogue;
mod clock;
mod control;
mod fields;
mod model;
mod operations;
mod protocol;
mod rules;
mod server;
mod state;

pub use control::injection::Disturbance;
pub use control::journal::{JournalEntry, Outcome};
pub use control::simulator::Simulator;
pub use model::{Kind, Model, Operation, Shape};
pub use protocol::fault::COMMON_ERRORS;
pub use state::config::{Quotas, Timing};
pub use state::phase::End;
