//! Serving certificate of the API server.
//!
//! The API server would generate one with an RSA key, with which each new connection takes a millisecond of CPU time.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, SanType,
};

use crate::error::Error;

/// Names by which Pods reach the API server.
const NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "localhost",
];

/// Writes the files `apiserver.crt` and `apiserver.key` with a certificate for the addresses, and `ca.crt` with the
/// certificate of its authority.
pub(crate) fn write(directory: &Path, addresses: &[IpAddr]) -> Result<(), Error> {
    let generate = || -> Result<[(&str, String); 3], rcgen::Error> {
        let authority_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let authority = params.self_signed(&authority_key)?.pem();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut serving = CertificateParams::new(NAMES.map(String::from))?;
        let addresses = addresses.iter().copied().map(SanType::IpAddress);
        serving.subject_alt_names.extend(addresses);
        let certificate = serving.signed_by(&key, &Issuer::new(params, authority_key))?;
        Ok([
            ("ca.crt", authority),
            ("apiserver.crt", certificate.pem()),
            ("apiserver.key", key.serialize_pem()),
        ])
    };
    let files = generate().map_err(|error| Error::Manifest(error.to_string()))?;
    fs::create_dir_all(directory).map_err(Error::file(directory))?;
    for (name, content) in files {
        let path = directory.join(name);
        fs::write(&path, content).map_err(Error::file(&path))?;
    }
    Ok(())
}
