//! The signatures: names, arguments and results as Vector 0.57 has them.
//!
//! <https://vector.dev/docs/reference/vrl/functions/>

use std::collections::BTreeMap;

use vrl::compiler::function::Parameter;
use vrl::prelude::{Collection, Field, Kind, TypeDef, kind};

use super::signature::{Demand, Signature};

const CIPHERS: &[&str] = &[
    "AES-256-CFB",
    "AES-192-CFB",
    "AES-128-CFB",
    "AES-256-OFB",
    "AES-192-OFB",
    "AES-128-OFB",
    "AES-256-CTR",
    "AES-192-CTR",
    "AES-128-CTR",
    "AES-256-CTR-LE",
    "AES-192-CTR-LE",
    "AES-128-CTR-LE",
    "AES-256-CTR-BE",
    "AES-192-CTR-BE",
    "AES-128-CTR-BE",
    "AES-256-CBC-PKCS7",
    "AES-192-CBC-PKCS7",
    "AES-128-CBC-PKCS7",
    "AES-256-CBC-ANSIX923",
    "AES-192-CBC-ANSIX923",
    "AES-128-CBC-ANSIX923",
    "AES-256-CBC-ISO7816",
    "AES-192-CBC-ISO7816",
    "AES-128-CBC-ISO7816",
    "AES-256-CBC-ISO10126",
    "AES-192-CBC-ISO10126",
    "AES-128-CBC-ISO10126",
    "AES-128-SIV",
    "AES-256-SIV",
    "CHACHA20-POLY1305",
    "XCHACHA20-POLY1305",
    "XSALSA20-POLY1305",
];

const CHECKSUMS: &[&str] = &[
    "CRC_3_GSM",
    "CRC_3_ROHC",
    "CRC_4_G_704",
    "CRC_4_INTERLAKEN",
    "CRC_5_EPC_C1G2",
    "CRC_5_G_704",
    "CRC_5_USB",
    "CRC_6_CDMA2000_A",
    "CRC_6_CDMA2000_B",
    "CRC_6_DARC",
    "CRC_6_GSM",
    "CRC_6_G_704",
    "CRC_7_MMC",
    "CRC_7_ROHC",
    "CRC_7_UMTS",
    "CRC_8_AUTOSAR",
    "CRC_8_BLUETOOTH",
    "CRC_8_CDMA2000",
    "CRC_8_DARC",
    "CRC_8_DVB_S2",
    "CRC_8_GSM_A",
    "CRC_8_GSM_B",
    "CRC_8_HITAG",
    "CRC_8_I_432_1",
    "CRC_8_I_CODE",
    "CRC_8_LTE",
    "CRC_8_MAXIM_DOW",
    "CRC_8_MIFARE_MAD",
    "CRC_8_NRSC_5",
    "CRC_8_OPENSAFETY",
    "CRC_8_ROHC",
    "CRC_8_SAE_J1850",
    "CRC_8_SMBUS",
    "CRC_8_TECH_3250",
    "CRC_8_WCDMA",
    "CRC_10_ATM",
    "CRC_10_CDMA2000",
    "CRC_10_GSM",
    "CRC_11_FLEXRAY",
    "CRC_11_UMTS",
    "CRC_12_CDMA2000",
    "CRC_12_DECT",
    "CRC_12_GSM",
    "CRC_12_UMTS",
    "CRC_13_BBC",
    "CRC_14_DARC",
    "CRC_14_GSM",
    "CRC_15_CAN",
    "CRC_15_MPT1327",
    "CRC_16_ARC",
    "CRC_16_CDMA2000",
    "CRC_16_CMS",
    "CRC_16_DDS_110",
    "CRC_16_DECT_R",
    "CRC_16_DECT_X",
    "CRC_16_DNP",
    "CRC_16_EN_13757",
    "CRC_16_GENIBUS",
    "CRC_16_GSM",
    "CRC_16_IBM_3740",
    "CRC_16_IBM_SDLC",
    "CRC_16_ISO_IEC_14443_3_A",
    "CRC_16_KERMIT",
    "CRC_16_LJ1200",
    "CRC_16_M17",
    "CRC_16_MAXIM_DOW",
    "CRC_16_MCRF4XX",
    "CRC_16_MODBUS",
    "CRC_16_NRSC_5",
    "CRC_16_OPENSAFETY_A",
    "CRC_16_OPENSAFETY_B",
    "CRC_16_PROFIBUS",
    "CRC_16_RIELLO",
    "CRC_16_SPI_FUJITSU",
    "CRC_16_T10_DIF",
    "CRC_16_TELEDISK",
    "CRC_16_TMS37157",
    "CRC_16_UMTS",
    "CRC_16_USB",
    "CRC_16_XMODEM",
    "CRC_17_CAN_FD",
    "CRC_21_CAN_FD",
    "CRC_24_BLE",
    "CRC_24_FLEXRAY_A",
    "CRC_24_FLEXRAY_B",
    "CRC_24_INTERLAKEN",
    "CRC_24_LTE_A",
    "CRC_24_LTE_B",
    "CRC_24_OPENPGP",
    "CRC_24_OS_9",
    "CRC_30_CDMA",
    "CRC_31_PHILIPS",
    "CRC_32_AIXM",
    "CRC_32_AUTOSAR",
    "CRC_32_BASE91_D",
    "CRC_32_BZIP2",
    "CRC_32_CD_ROM_EDC",
    "CRC_32_CKSUM",
    "CRC_32_ISCSI",
    "CRC_32_ISO_HDLC",
    "CRC_32_JAMCRC",
    "CRC_32_MEF",
    "CRC_32_MPEG_2",
    "CRC_32_XFER",
    "CRC_40_GSM",
    "CRC_64_ECMA_182",
    "CRC_64_GO_ISO",
    "CRC_64_MS",
    "CRC_64_REDIS",
    "CRC_64_WE",
    "CRC_64_XZ",
    "CRC_82_DARC",
];

pub(super) const SIGNATURES: &[Signature] = &[
    // Checksums and cryptography.
    of(
        "crc",
        &[needs("value", kind::BYTES), may("algorithm", kind::BYTES)],
        text,
        kind::BYTES,
    )
    .with(Demand::SafeWith("algorithm", CHECKSUMS)),
    of("md5", &[needs("value", kind::BYTES)], text, kind::BYTES),
    of("sha1", &[needs("value", kind::BYTES)], text, kind::BYTES),
    of(
        "sha2",
        &[needs("value", kind::BYTES), may("variant", kind::BYTES)],
        text,
        kind::BYTES,
    )
    .with(Demand::OneOf(
        "variant",
        &[
            "SHA-224",
            "SHA-256",
            "SHA-384",
            "SHA-512",
            "SHA-512/224",
            "SHA-512/256",
        ],
    )),
    of(
        "sha3",
        &[needs("value", kind::BYTES), may("variant", kind::BYTES)],
        text,
        kind::BYTES,
    )
    .with(Demand::OneOf(
        "variant",
        &["SHA3-224", "SHA3-256", "SHA3-384", "SHA3-512"],
    )),
    of(
        "seahash",
        &[needs("value", kind::BYTES)],
        TypeDef::integer,
        kind::INTEGER,
    ),
    of(
        "xxhash",
        &[needs("value", kind::BYTES), may("variant", kind::BYTES)],
        text,
        kind::INTEGER | kind::BYTES,
    )
    .with(Demand::SafeWith(
        "variant",
        &["XXH32", "XXH64", "XXH3-64", "XXH3-128"],
    )),
    of(
        "hmac",
        &[
            needs("value", kind::BYTES),
            needs("key", kind::BYTES),
            may("algorithm", kind::BYTES),
        ],
        text,
        kind::BYTES,
    )
    .with(Demand::SafeWith(
        "algorithm",
        &["SHA1", "SHA-224", "SHA-256", "SHA-384", "SHA-512"],
    )),
    of(
        "encrypt",
        &[
            needs("plaintext", kind::BYTES),
            needs("algorithm", kind::BYTES),
            needs("key", kind::BYTES),
            needs("iv", kind::BYTES),
        ],
        uncertain_text,
        kind::BYTES,
    )
    .with(Demand::Known("algorithm", CIPHERS)),
    of(
        "decrypt",
        &[
            needs("ciphertext", kind::BYTES),
            needs("algorithm", kind::BYTES),
            needs("key", kind::BYTES),
            needs("iv", kind::BYTES),
        ],
        uncertain_text,
        kind::BYTES,
    )
    .with(Demand::Known("algorithm", CIPHERS)),
    of(
        "encrypt_ip",
        &[
            needs("ip", kind::BYTES),
            needs("key", kind::BYTES),
            needs("mode", kind::BYTES),
        ],
        uncertain_text,
        kind::BYTES,
    ),
    of(
        "decrypt_ip",
        &[
            needs("ip", kind::BYTES),
            needs("key", kind::BYTES),
            needs("mode", kind::BYTES),
        ],
        uncertain_text,
        kind::BYTES,
    ),
    // The host and the network.
    of(
        "get_env_var",
        &[needs("name", kind::BYTES)],
        uncertain_text,
        kind::BYTES,
    ),
    of("get_hostname", &[], uncertain_text, kind::BYTES),
    of("get_timezone_name", &[], uncertain_text, kind::BYTES),
    of(
        "dns_lookup",
        &[
            needs("value", kind::BYTES),
            may("qtype", kind::BYTES),
            may("class", kind::BYTES),
            may("options", kind::OBJECT),
        ],
        uncertain_object,
        kind::OBJECT,
    ),
    of(
        "reverse_dns",
        &[needs("value", kind::BYTES)],
        uncertain_text,
        kind::BYTES,
    ),
    of(
        "http_request",
        &[
            needs("url", kind::BYTES),
            may("method", kind::BYTES),
            may("headers", kind::OBJECT),
            may("body", kind::BYTES),
            may("http_proxy", kind::BYTES),
            may("https_proxy", kind::BYTES),
            may("redact_headers", kind::BOOLEAN),
        ],
        uncertain_text,
        kind::BYTES,
    ),
    // What reads files while it is compiled.
    of(
        "parse_etld",
        &[
            needs("value", kind::BYTES),
            may("plus_parts", kind::INTEGER),
            may("psl", kind::BYTES),
        ],
        etld,
        kind::OBJECT,
    )
    .with(Demand::File("psl")),
    of(
        "parse_proto",
        &[
            needs("value", kind::BYTES),
            needs("desc_file", kind::BYTES),
            needs("message_type", kind::BYTES),
        ],
        uncertain_object,
        kind::OBJECT,
    )
    .with(Demand::File("desc_file")),
    of(
        "encode_proto",
        &[
            needs("value", kind::ANY),
            needs("desc_file", kind::BYTES),
            needs("message_type", kind::BYTES),
            may("allow_lossy_string_coercion", kind::BOOLEAN),
        ],
        uncertain_text,
        kind::BYTES,
    )
    .with(Demand::File("desc_file")),
    of(
        "validate_json_schema",
        &[
            needs("value", kind::BYTES),
            needs("schema_definition", kind::BYTES),
            may("ignore_unknown_formats", kind::BOOLEAN),
        ],
        || TypeDef::boolean().fallible(),
        kind::BOOLEAN,
    ),
    // Vector's own.
    of(
        "get_secret",
        &[needs("key", kind::BYTES)],
        || TypeDef::bytes().add_null(),
        kind::BYTES | kind::NULL,
    ),
    of(
        "set_secret",
        &[needs("key", kind::BYTES), needs("secret", kind::BYTES)],
        effect,
        kind::NULL,
    ),
    of(
        "remove_secret",
        &[needs("key", kind::BYTES)],
        effect,
        kind::NULL,
    ),
    of(
        "set_semantic_meaning",
        &[needs("target", kind::ANY), needs("meaning", kind::BYTES)],
        effect,
        kind::NULL,
    )
    .with(Demand::Meaning),
    of(
        "get_enrichment_table_record",
        &[
            needs("table", kind::BYTES),
            needs("condition", kind::OBJECT),
            may("select", kind::ARRAY),
            may("case_sensitive", kind::BOOLEAN),
            may("wildcard", kind::BYTES),
        ],
        uncertain_object,
        kind::OBJECT,
    )
    .with(Demand::Table("table")),
    of(
        "find_enrichment_table_records",
        &[
            needs("table", kind::BYTES),
            needs("condition", kind::OBJECT),
            may("select", kind::ARRAY),
            may("case_sensitive", kind::BOOLEAN),
            may("wildcard", kind::BYTES),
        ],
        || objects().fallible(),
        kind::ARRAY,
    )
    .with(Demand::Table("table")),
    of(
        "get_vector_metric",
        &[needs("key", kind::BYTES), may("tags", kind::OBJECT)],
        || TypeDef::object(Collection::any()).or_null(),
        kind::OBJECT | kind::NULL,
    ),
    of(
        "find_vector_metrics",
        &[needs("key", kind::BYTES), may("tags", kind::OBJECT)],
        objects,
        kind::ARRAY,
    ),
    of(
        "aggregate_vector_metrics",
        &[
            needs("function", kind::BYTES),
            needs("key", kind::BYTES),
            may("tags", kind::OBJECT),
        ],
        || TypeDef::float().or_null(),
        kind::FLOAT | kind::NULL,
    )
    .with(Demand::OneOf("function", &["sum", "avg", "min", "max"])),
    of(
        "parse_dnstap",
        &[
            needs("value", kind::BYTES),
            may("lowercase_hostnames", kind::BOOLEAN),
        ],
        uncertain_object,
        kind::OBJECT,
    ),
];

const fn of(
    name: &'static str,
    parameters: &'static [Parameter],
    gives: fn() -> TypeDef,
    kind: u16,
) -> Signature {
    Signature {
        name,
        parameters,
        gives,
        kind,
        demand: Demand::Nothing,
    }
}

impl Signature {
    const fn with(self, demand: Demand) -> Self {
        Self { demand, ..self }
    }
}

const fn needs(keyword: &'static str, kind: u16) -> Parameter {
    Parameter::required(keyword, kind, "")
}

const fn may(keyword: &'static str, kind: u16) -> Parameter {
    Parameter::optional(keyword, kind, "")
}

fn text() -> TypeDef {
    TypeDef::bytes().infallible()
}

fn uncertain_text() -> TypeDef {
    TypeDef::bytes().fallible()
}

fn uncertain_object() -> TypeDef {
    TypeDef::object(Collection::any()).fallible()
}

fn objects() -> TypeDef {
    TypeDef::array(Collection::from_unknown(Kind::object(Collection::any())))
}

fn effect() -> TypeDef {
    TypeDef::null().infallible().impure()
}

fn etld() -> TypeDef {
    let fields: BTreeMap<Field, Kind> = BTreeMap::from([
        ("etld".into(), Kind::bytes()),
        ("etld_plus".into(), Kind::bytes()),
        ("known_suffix".into(), Kind::boolean()),
    ]);
    TypeDef::object(fields).fallible()
}
