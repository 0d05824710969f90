//! Operator of DNS records on the SDK.

use std::process::ExitCode;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lockstep_controller::OwnedType;
use lockstep_sdk::{Audience, Operator, Program, anyhow, clap, duration};
use mimalloc::MiMalloc;
use sample_dns_record::{DnsApi, DnsRecords};

/// The allocator of a program that `lockstep new` writes.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Longest time that a call of the DNS API takes.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
struct DnsArgs {
    /// URL of the DNS API.
    #[arg(long)]
    dns_api_url: String,
    /// Interval at which changes that were made outside the cluster are looked for.
    #[arg(long, default_value = "10m", value_parser = duration)]
    resync: Duration,
}

fn main() -> ExitCode {
    let owned = [OwnedType::namespaced::<ConfigMap>()];
    let rules = || vec![OwnedType::namespaced::<ConfigMap>().rbac_rule()];
    let operator = Operator::with_args(async |args: DnsArgs, _| anyhow::Ok(args)).kind_that_owns(
        Audience::Tenants,
        &owned,
        rules,
        |args, context| DnsRecords {
            api: DnsApi::new(&args.dns_api_url, TIMEOUT),
            client: context.client.clone(),
            leadership: context.leadership.clone(),
            resync: args.resync,
        },
    );
    Program::new("dns-record").operator(operator).run()
}
