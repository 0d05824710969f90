//! Simulator of RDS for tests.
//!
//! Compared with moto, instances go through the states of RDS, modifications are pending, and the documented
//! constraints and errors apply. The simulator runs in the process of the test, which controls its time and injects
//! faults.
//!
//! request → [`Model`] → operation → state of the region → answer
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
pub use state::config::{Quotas, Timing};
pub use state::phase::End;
