//! AWS in `dev`: the simulator of RDS, whose instances pass through their states within seconds.

use std::path::PathBuf;
use std::time::Duration;

use lockstep_envtest::aws_environment;
use lockstep_sdk::{DevService, RunningService};
use rds_catalogue::Catalogue;
use rds_simulator::Simulator;

/// Time for which an instance has a state, such as `creating`, so that it is seen.
const STATE: Duration = Duration::from_secs(3);

pub(super) fn service() -> DevService {
    DevService::new("the simulator of AWS RDS", start)
        .controller_arg("--rds-poll-interval=500ms")
        // The classes of all engines are many pages, which nothing here needs.
        .controller_arg("--rds-catalogue-refresh-interval=0s")
}

/// Simulator until the end of the command.
struct Running(Simulator);

impl Drop for Running {
    fn drop(&mut self) {
        // What a test must not do is up to the user here.
        self.0.take_violations();
    }
}

async fn start(_logs: PathBuf) -> anyhow::Result<RunningService> {
    let simulator = Simulator::start().await?;
    // It knows an excerpt. A user tries whatever the rules accept.
    for (engine, offers) in &Catalogue::shipped().engines {
        for version in offers.versions.keys() {
            simulator.add_engine_version(engine, version.as_str());
        }
    }
    simulator.set_timing(|timing| {
        timing.state = STATE;
        timing.snapshot = STATE;
        timing.lag = Duration::from_secs(1);
    });
    Ok(RunningService {
        environment: aws_environment(&simulator.endpoint()),
        guard: Box::new(Running(simulator)),
    })
}
