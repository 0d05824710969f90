//! Results that are objects of which the fields are known.
//!
//! <https://vector.dev/docs/reference/vrl/functions/>

use std::collections::BTreeMap;

use vrl::prelude::{Collection, Field, Kind, TypeDef};

/// Of `parse_etld`.
pub(super) fn etld() -> TypeDef {
    let known = object(&[
        ("etld", Kind::bytes()),
        ("etld_plus", Kind::bytes()),
        ("known_suffix", Kind::boolean()),
    ]);
    TypeDef::from(known).fallible()
}

/// Of `dns_lookup`: a message of the protocol.
pub(super) fn dns() -> TypeDef {
    let (flag, number, text) = (Kind::boolean, Kind::integer, Kind::bytes);
    let header = object(&[
        ("aa", flag()),
        ("ad", flag()),
        ("anCount", number()),
        ("arCount", number()),
        ("cd", flag()),
        ("nsCount", number()),
        ("opcode", number()),
        ("qdCount", number()),
        ("qr", number()),
        ("ra", flag()),
        ("rcode", number()),
        ("rd", flag()),
        ("tc", flag()),
    ]);
    let question = object(&[
        ("class", text()),
        ("domainName", text()),
        ("questionType", text()),
        ("questionTypeId", number()),
    ]);
    let record = object(&[
        ("class", text()),
        ("domainName", text()),
        ("rData", text()),
        ("recordType", text()),
        ("recordTypeId", number()),
        ("ttl", number()),
    ]);
    let many = |of: &Kind| Kind::array(Collection::from_unknown(of.clone()));
    let message = object(&[
        ("fullRcode", number()),
        ("rcodeName", text().or_null()),
        ("time", text().or_null()),
        ("timePrecision", text().or_null()),
        ("answers", many(&record)),
        ("authority", many(&record)),
        ("additional", many(&record)),
        ("header", header),
        ("question", many(&question)),
    ]);
    TypeDef::from(message).fallible()
}

fn object(fields: &[(&str, Kind)]) -> Kind {
    let fields = fields.iter();
    let fields = fields.map(|(name, kind)| (Field::from(*name), kind.clone()));
    Kind::object(fields.collect::<BTreeMap<_, _>>())
}
