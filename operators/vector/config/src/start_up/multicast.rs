//! Multicast groups of the source `socket`.

use std::net::{Ipv4Addr, SocketAddr};

use crate::diagnostic::DiagnosticList;
use crate::start_up::after_start::at_once;
use crate::start_up::component_options::ComponentOptions;

pub(crate) fn validate(options: &ComponentOptions<'_>, problems: &mut DiagnosticList) {
    if !options.is_source(&["socket"]) || !options.equals("mode", "udp") {
        return;
    }
    let groups = options.texts("multicast_groups");
    if groups.is_empty() {
        return;
    }
    if let Some((path, address)) = options.text("address") {
        let is_ipv4 = address.parse().is_ok_and(|it: SocketAddr| it.is_ipv4());
        if !is_ipv4 {
            let detail = "must be an IPv4 address with a port beside `multicast_groups`";
            return at_once(path, detail, problems);
        }
    }
    for (path, group) in groups {
        let is_other = group.parse().is_ok_and(|it: Ipv4Addr| !it.is_multicast());
        if is_other {
            let detail = "must be a multicast address, from 224.0.0.0 to 239.255.255.255";
            at_once(path, detail, problems);
        }
    }
}
