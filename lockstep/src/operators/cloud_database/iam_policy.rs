//! `lockstep iam-policy`: the permissions of the controller in AWS.

use std::process::ExitCode;

use lockstep_cloud_database_controller::{IamPolicyScope, iam_policy};

/// Print the IAM policy that the controller needs to manage CloudDatabases
#[derive(clap::Parser)]
#[command(name = "iam-policy")]
pub(crate) struct Args {
    /// AWS partition, such as aws-cn or aws-us-gov.
    #[arg(long, default_value = "aws")]
    partition: String,
    /// AWS region of the instances. Default: all.
    #[arg(long, default_value = "*", hide_default_value = true)]
    region: String,
    /// ID of the AWS account. Default: all, which is the account of the role.
    #[arg(
        long,
        value_name = "ID",
        default_value = "*",
        hide_default_value = true
    )]
    account: String,
    /// ARN of a KMS key in `spec.encryption.kmsKey`. May be repeated.
    #[arg(long = "kms-key", value_name = "ARN")]
    kms_keys: Vec<String>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let Args {
        partition,
        region,
        account,
        kms_keys,
    } = args;
    let scope = IamPolicyScope {
        partition: partition.clone(),
        region: region.clone(),
        account: account.clone(),
        kms_keys: kms_keys.clone(),
    };
    println!("{:#}", iam_policy(&scope));
    ExitCode::SUCCESS
}
