//! Links `rlhf` at a fixed address: the loader then has no addresses to write into its tables, which
//! is a third of the time that `rlhf check` takes to start.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
