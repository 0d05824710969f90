//! Greeting: a text that an HTTP API outside the cluster stores.

mod api;
mod reconciler;
mod resource;
mod rules;
#[cfg(feature = "dev")]
pub mod simulator;

#[cfg(feature = "dev")]
use lockstep_sdk::DevService;
use lockstep_sdk::{Audience, Operator, clap};

pub use api::{GreetingApi, StoredGreeting};
pub use reconciler::GreetingReconciler;
pub use resource::{Greeting, GreetingSpec, GreetingStatus};

/// Options of the operator.
#[derive(clap::Args)]
struct GreetingArgs {
    /// URL of the API.
    #[arg(long, env, default_value = "http://greetings")]
    greeting_url: String,
}

/// Returns the operator.
pub fn operator() -> Operator<GreetingApi> {
    let operator = Operator::with_args(async |args: GreetingArgs, _| Ok(GreetingApi::new(&args.greeting_url)))
        .kind(Audience::Administrators, |api: &GreetingApi, context| GreetingReconciler {
            api: api.clone(),
            client: context.client.clone(),
            leadership: context.leadership.clone(),
        })
        .environment_config_map("greetings-api");
    #[cfg(feature = "dev")]
    let operator = operator.dev_service(DevService::new("the greetings API", |_| simulator::start()));
    operator
}
