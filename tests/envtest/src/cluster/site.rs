//! Place where the components of a cluster run.

#[cfg(feature = "node")]
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

/// Name of the real node of a cluster that has one.
pub(crate) const NODE: &str = "node";

/// Place where the components run.
pub(crate) enum Site {
    /// On loopback addresses of this machine, with nodes that kwok simulates.
    Loopback,
    /// In the namespaces of a real node.
    #[cfg(feature = "node")]
    Node {
        address: Ipv4Addr,
        /// Program and arguments that run a command in the namespaces.
        prefix: Vec<OsString>,
    },
}

impl Site {
    pub(crate) fn command(&self, program: &Path) -> Command {
        match self {
            Self::Loopback => Command::new(program),
            #[cfg(feature = "node")]
            Self::Node { prefix, .. } => {
                let mut command = Command::new(&prefix[0]);
                command.args(&prefix[1..]).arg(program);
                command
            }
        }
    }

    /// Returns the address of the API server.
    pub(crate) fn address(&self) -> Ipv4Addr {
        match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            #[cfg(feature = "node")]
            Self::Node { address, .. } => *address,
        }
    }

    pub(crate) fn has_real_node(&self) -> bool {
        !matches!(self, Self::Loopback)
    }
}
