//! IP addresses and CIDRs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ::cel::common::types::{CelBool, CelInt, CelString};
use ::cel::common::value::Val;
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::cel::library::arguments::failed;
use crate::cel::opaque::opaque;
use crate::format::network::{self, Prefix};

/// IP address.
#[derive(Clone, Debug, PartialEq)]
struct Ip(IpAddr);

/// CIDR.
#[derive(Clone, Debug, PartialEq)]
struct Cidr(Prefix);

opaque!(Ip, "net.IP");
opaque!(Cidr, "net.CIDR");

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(Ip::cel_type().to_owned())?;
    env.add_type(Cidr::cel_type().to_owned())?;
    cel::add_overload!(env, fn is_ip: (CelString) -> CelBool, name = "isIP")?;
    cel::add_overload!(env, fn ip: (CelString) -> Result<Ip>)?;
    cel::add_overload!(env, fn is_canonical: (CelString) -> Result<CelBool>, name = "ip.isCanonical")?;
    cel::add_overload!(env, fn ip_to_string: (Ip) -> CelString, name = "string")?;
    cel::add_member_overload!(env, fn family: (Ip) -> CelInt)?;
    cel::add_member_overload!(env, fn is_unspecified: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_loopback: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_link_local_multicast: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_link_local_unicast: (Ip) -> CelBool)?;
    cel::add_member_overload!(env, fn is_global_unicast: (Ip) -> CelBool)?;
    cel::add_overload!(env, fn is_cidr: (CelString) -> CelBool, name = "isCIDR")?;
    cel::add_overload!(env, fn cidr: (CelString) -> Result<Cidr>)?;
    cel::add_overload!(env, fn cidr_to_string: (Cidr) -> CelString, name = "string")?;
    cel::add_member_overload!(env, fn contains_ip: (Cidr, Ip) -> CelBool, name = "containsIP")?;
    cel::add_member_overload!(env, fn contains_ip_text: (Cidr, CelString) -> Result<CelBool>, name = "containsIP")?;
    cel::add_member_overload!(env, fn contains_cidr: (Cidr, Cidr) -> CelBool, name = "containsCIDR")?;
    cel::add_member_overload!(env, fn contains_cidr_text: (Cidr, CelString) -> Result<CelBool>, name = "containsCIDR")?;
    cel::add_member_overload!(env, fn address: (Cidr) -> Ip, name = "ip")?;
    cel::add_member_overload!(env, fn prefix_length: (Cidr) -> CelInt)?;
    cel::add_member_overload!(env, fn masked: (Cidr) -> Cidr)
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn parse_ip(text: &str) -> Option<IpAddr> {
    network::ip(text).filter(|address| !is_mapped(*address))
}

fn parse_cidr(text: &str) -> Option<Prefix> {
    Prefix::parse(text).filter(|prefix| !is_mapped(prefix.address))
}

fn is_ip(text: &CelString<'_>) -> CelBool {
    parse_ip(text.inner()).is_some().into()
}

fn ip(text: &CelString<'_>) -> Result<Ip, ExecutionError> {
    let problem = || failed("ip", format!("`{}` is not an IP address", text.inner()));
    parse_ip(text.inner()).map(Ip).ok_or_else(problem)
}

fn is_canonical(text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok((ip(text)?.0.to_string() == text.inner()).into())
}

fn ip_to_string(ip: &Ip) -> CelString<'static> {
    ip.0.to_string().into()
}

fn family(ip: &Ip) -> CelInt {
    if ip.0.is_ipv4() { 4 } else { 6 }.into()
}

fn is_unspecified(ip: &Ip) -> CelBool {
    ip.0.is_unspecified().into()
}

fn is_loopback(ip: &Ip) -> CelBool {
    ip.0.is_loopback().into()
}

fn is_link_local_multicast(ip: &Ip) -> CelBool {
    match ip.0 {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
    .into()
}

fn is_link_local_unicast(ip: &Ip) -> CelBool {
    is_link_local(ip.0).into()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Follows Go: private addresses count as global.
fn is_global_unicast(ip: &Ip) -> CelBool {
    let address = ip.0;
    let special = address == IpAddr::V4(Ipv4Addr::BROADCAST)
        || address == IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        || address == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    (!special && !address.is_loopback() && !address.is_multicast() && !is_link_local(address))
        .into()
}

fn is_cidr(text: &CelString<'_>) -> CelBool {
    parse_cidr(text.inner()).is_some().into()
}

fn cidr(text: &CelString<'_>) -> Result<Cidr, ExecutionError> {
    let problem = || failed("cidr", format!("`{}` is not a CIDR", text.inner()));
    parse_cidr(text.inner()).map(Cidr).ok_or_else(problem)
}

fn cidr_to_string(cidr: &Cidr) -> CelString<'static> {
    format!("{}/{}", cidr.0.address, cidr.0.bits).into()
}

fn contains_ip(cidr: &Cidr, ip: &Ip) -> CelBool {
    cidr.0.contains(ip.0).into()
}

fn contains_ip_text(cidr: &Cidr, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(contains_ip(cidr, &ip(text)?))
}

fn contains_cidr(outer: &Cidr, inner: &Cidr) -> CelBool {
    (outer.0.bits <= inner.0.bits && outer.0.contains(inner.0.address)).into()
}

fn contains_cidr_text(outer: &Cidr, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(contains_cidr(outer, &cidr(text)?))
}

fn address(cidr: &Cidr) -> Ip {
    Ip(cidr.0.address)
}

fn prefix_length(cidr: &Cidr) -> CelInt {
    i64::from(cidr.0.bits).into()
}

fn masked(cidr: &Cidr) -> Cidr {
    Cidr(cidr.0.masked())
}
