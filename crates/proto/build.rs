//! Compiles the protocol without needing protoc on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(["drumtower/worker/v1/worker.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(files)?;
    println!("cargo:rerun-if-changed=proto");
    Ok(())
}
