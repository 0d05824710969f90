//! Chaos finds faults that are planted into variants of the operator.
//!
//! A few faults run by default, and all of them with `-- --include-ignored`.

#[path = "../dns_record/expectations.rs"]
mod expectations;
mod fault;
mod operator;
#[path = "../dns_record/simulator.rs"]
mod simulator;

use std::time::{Duration, Instant};

use lockstep_test::chaos::{Chaos, Failure, chaos};
use lockstep_test::cluster_with;
use sample_dns_record::{DnsApi, DnsRecord};
use tokio::sync::Mutex;

use crate::fault::{ALL, Fault};
use crate::operator::{FaultyDnsRecords, Memory, TOKEN};
use crate::simulator::DnsZone;

/// Number of seeds within which a fault is found.
const SEEDS: u64 = 20;

/// Number of faults that are found at least.
const FOUND: usize = 45;

/// Faults that are tested by default, one for each kind of mistake.
const FEW: [Fault; 4] = [
    Fault::KnowsOnlyTheIdInTheStatus,
    Fault::RemovesFinalizerOnError,
    Fault::HasUnstableStatus,
    Fault::ReportsReadyTooEarly,
];

fn test(fault: Fault) -> Chaos<FaultyDnsRecords> {
    let operator = move |process: &lockstep_test::chaos::Process| FaultyDnsRecords {
        api: DnsApi::new(process.external_url(), Duration::from_secs(5)),
        client: process.client(),
        leadership: process.leadership(),
        fault,
        memory: Mutex::new(Memory::default()),
    };
    chaos(operator)
        .external(DnsZone::default)
        .specs(expectations::spec)
        .expected_resources(expectations::resources)
        .expected_owned(expectations::owned)
        .expected_status(expectations::status)
        .secrets(|_| vec![TOKEN.to_owned()])
}

/// Runs chaos on variants, and prints what found each fault. Returns the failures.
async fn find(faults: &[Fault]) -> Vec<(Fault, Option<Box<Failure>>)> {
    let cluster = cluster_with::<DnsRecord>().await;
    let started = Instant::now();
    let mut all = Vec::new();
    println!("| fault | property that found it | seed | seconds |\n|---|---|---|---|");
    for fault in faults {
        let began = Instant::now();
        let checked = test(*fault).seeds(SEEDS).check(&cluster.client()).await;
        let failure = checked.err();
        let found = failure.as_ref().map_or_else(
            || "- | -".to_owned(),
            |it| format!("{} | {}", it.violation.property, it.seed),
        );
        println!(
            "| {fault:?} | {found} | {:.1} |",
            began.elapsed().as_secs_f64()
        );
        all.push((*fault, failure));
    }
    let found = all.iter().filter(|(_, failure)| failure.is_some()).count();
    let seconds = started.elapsed().as_secs();
    println!("{found} of {} faults found in {seconds} s", all.len());
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_faults_of_each_kind_are_found() {
    for (fault, failure) in find(&FEW).await {
        let failure = failure.unwrap_or_else(|| panic!("{fault:?} was not found"));
        let report = failure.to_string();
        assert!(
            report.contains("expected:") && report.contains("what happened last:"),
            "{report}"
        );
        assert!(!failure.journal.is_empty(), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn nearly_all_planted_faults_are_found() {
    let found = find(&ALL).await;
    let found = found
        .iter()
        .filter(|(_, failure)| failure.is_some())
        .count();
    assert!(found >= FOUND, "only {found} faults were found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_variant_without_a_fault_passes() {
    test(Fault::Correct).seeds(3).run().await;
}
