//! Chaos test of the operator of DNS records.

mod expectations;
mod simulator;

use std::time::Duration;

use lockstep_test::chaos::{Chaos, Process, chaos};
use sample_dns_record::{DnsApi, DnsRecords, RESYNC};

use crate::simulator::DnsZone;

fn operator(process: &Process) -> DnsRecords {
    DnsRecords {
        api: DnsApi::new(process.external_url(), Duration::from_secs(5)),
        client: process.client(),
        leadership: process.leadership(),
        resync: RESYNC,
    }
}

fn test() -> Chaos<DnsRecords> {
    chaos(operator)
        .external(DnsZone::default)
        .specs(expectations::spec)
        .expected_resources(expectations::resources)
        .expected_owned(expectations::owned)
        .expected_status(expectations::status)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_survives_chaos() {
    println!("{:?}", test().seeds(10).run().await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn the_operator_survives_chaos_with_two_hundred_seeds() {
    println!("{:?}", test().seeds(200).run().await);
}
