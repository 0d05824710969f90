//! Network link between this machine and a node.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::error::Error;
use crate::process::run;

/// Pair of interfaces, of which one is in the network namespace of the node. Both are deleted with the namespace.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) inside: Ipv4Addr,
}

impl Link {
    /// Connects the network namespace of a process.
    pub(crate) fn create(process: u32) -> Result<Self, Error> {
        let third = free_subnet()?;
        let (outside, inside) = (
            Ipv4Addr::new(10, 253, third, 1),
            Ipv4Addr::new(10, 253, third, 2),
        );
        let name = format!("lsnode{process}");
        let (process, router) = (process.to_string(), outside.to_string());
        let outside = format!("{outside}/24");
        let peer = ["peer", "name", "eth0", "netns", &process];
        run(Command::new("ip")
            .args(["link", "add", &name, "type", "veth"])
            .args(peer))?;
        run(Command::new("ip").args(["addr", "add", &outside, "dev", &name]))?;
        run(Command::new("ip").args(["link", "set", &name, "up"]))?;
        let steps: [&[&str]; 3] = [
            &["addr", "add", &format!("{inside}/24"), "dev", "eth0"],
            &["link", "set", "eth0", "up"],
            // The address of a Service needs a route before kube-proxy's rules replace it.
            &["route", "add", "default", "via", &router],
        ];
        for step in steps {
            run(Command::new("nsenter")
                .args([&format!("--net=/proc/{process}/ns/net"), "ip"])
                .args(step))?;
        }
        Ok(Self { inside })
    }
}

/// Returns the third number of a subnet that no interface of this machine has.
fn free_subnet() -> Result<u8, Error> {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let taken = run(Command::new("ip").args(["-oneline", "-4", "addr"]))?;
    // Concurrent processes start at different subnets.
    let start = u8::try_from(std::process::id().wrapping_mul(31) % 250).unwrap_or_default();
    let mut candidates = (0..250).map(|_| {
        let turn = NEXT.fetch_add(1, Ordering::Relaxed);
        start.wrapping_add(turn) % 250
    });
    candidates
        .find(|third| !taken.contains(&format!(" 10.253.{third}.")))
        .ok_or_else(|| Error::Failed {
            command: "ip addr".to_owned(),
            output: "every subnet of 10.253.0.0/16 is in use".to_owned(),
        })
}
