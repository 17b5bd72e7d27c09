//! Encryption, and whether the server is the one it says it is.

use std::path::Path;

use drumtower_store::postgres::{self, Options};
use drumtower_testpg::{Cluster, Purpose};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::target;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("an authority")
}

fn certificate(authority: &Authority, name: &str) -> (String, String) {
    let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    let key = KeyPair::generate().expect("a key");
    let signed = params.signed_by(&key, authority).expect("a certificate");
    (signed.pem(), key.serialize_pem())
}

fn opens(url: &str) -> Result<(), String> {
    let opened = postgres::open(&target(url), Options::default());
    opened.map(drop).map_err(|error| error.to_string())
}

fn encrypted(url: &str) -> bool {
    postgres::look(&target(url)).expect("it answers").encrypted
}

#[test]
fn a_server_is_believed_as_far_as_the_address_says() {
    let cluster = Cluster::start(Purpose::Test).expect("a server");
    let (ours, theirs) = (authority(), authority());
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, authority: &Authority| {
        let path = directory.path().join(name);
        std::fs::write(&path, authority.pem()).expect("a file");
        path
    };
    let (right, wrong) = (file("right.pem", &ours), file("wrong.pem", &theirs));
    let (pem, key) = certificate(&ours, "127.0.0.1");
    cluster.use_tls(&pem, &key).expect("it encrypts");
    let base = cluster.database().expect("a database");
    let with =
        |mode: &str, root: &Path| format!("{base}?sslmode={mode}&sslrootcert={}", root.display());
    assert!(encrypted(&base), "it is preferred");
    assert!(encrypted(&format!("{base}?sslmode=require")));
    assert!(!encrypted(&format!("{base}?sslmode=disable")));
    assert_eq!(opens(&with("verify-full", &right)), Ok(()));
    assert!(encrypted(&with("verify-full", &right)));
    for mode in ["verify-full", "verify-ca", "require"] {
        let refused = opens(&with(mode, &wrong)).expect_err("another authority");
        assert!(refused.contains("certificate"), "{mode}: {refused}");
    }
    let refused =
        opens(&format!("{base}?sslmode=verify-full")).expect_err("no authority of the system");
    assert!(refused.contains("certificate"), "{refused}");
    let (pem, key) = certificate(&ours, "elsewhere.example");
    cluster.use_tls(&pem, &key).expect("it encrypts");
    assert!(opens(&with("verify-full", &right)).is_err(), "another name");
    assert_eq!(opens(&with("verify-ca", &right)), Ok(()));
    let missing = opens(&with("verify-full", Path::new("/nowhere.pem"))).expect_err("no file");
    assert!(missing.contains("/nowhere.pem"), "{missing}");
}
