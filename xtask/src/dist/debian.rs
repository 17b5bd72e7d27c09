//! A Debian package: binary, units, users, configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Parts, completions, copy, execute, output, pages, write};
use crate::tree::root;

/// Configuration that belongs to the administrator once it is there.
const CONFIGURATION: &str = "etc/drumtower/drumtower.toml";
const DOCUMENTS: &str = "usr/share/doc/drumtower";

pub(super) fn make(parts: &Parts) -> Result<PathBuf> {
    let directory = parts.work.join("deb");
    fill(parts, &directory)?;
    control(parts, &directory)?;
    let name = format!("drumtower_{}_{}.deb", parts.version, parts.machine.debian);
    let file = parts.out.join(name);
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "-z3", "--build"]);
    build.arg(&directory).arg(&file);
    build.stdout(std::process::Stdio::null());
    execute(build)?;
    Ok(file)
}

fn fill(parts: &Parts, directory: &Path) -> Result<()> {
    copy(&parts.binary, &directory.join("usr/bin/drumtower"), 0o755)?;
    for (from, to) in [
        ("deploy/drumtower.toml", CONFIGURATION),
        (
            "deploy/systemd/drumtower.service",
            "lib/systemd/system/drumtower.service",
        ),
        (
            "deploy/systemd/drumtower-worker.service",
            "lib/systemd/system/drumtower-worker.service",
        ),
        (
            "deploy/systemd/drumtower.sysusers",
            "usr/lib/sysusers.d/drumtower.conf",
        ),
    ] {
        copy(&root().join(from), &directory.join(to), 0o644)?;
    }
    let documents = directory.join(DOCUMENTS);
    write(&documents.join("copyright"), &copyright(), 0o644)?;
    write(
        &documents.join("THIRD-PARTY-LICENSES.txt"),
        &parts.licences,
        0o644,
    )?;
    copy(
        &root().join("CHANGELOG.md"),
        &documents.join("changelog"),
        0o644,
    )?;
    compress(&documents.join("changelog"))?;
    for (_, place, text) in completions(&parts.binary)? {
        write(&directory.join(place), &text, 0o644)?;
    }
    for page in pages(&parts.binary, &directory.join("usr/share/man/man1"))? {
        compress(&page)?;
    }
    Ok(())
}

fn compress(path: &Path) -> Result<()> {
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "-n"]).arg(path);
    execute(gzip)
}

fn copyright() -> String {
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
     Upstream-Name: drumtower\n\
     \n\
     Files: *\n\
     Copyright: the authors of Drumtower\n\
     License: Apache-2.0\n\
     \x20On Debian systems the text of the Apache License, version 2.0, is in\n\
     \x20/usr/share/common-licenses/Apache-2.0. The work of others in the binary and\n\
     \x20its licences are in THIRD-PARTY-LICENSES.txt beside this file.\n"
        .to_owned()
}

fn control(parts: &Parts, directory: &Path) -> Result<()> {
    let control = directory.join("DEBIAN");
    write(&control.join("control"), &fields(parts, directory)?, 0o644)?;
    write(
        &control.join("conffiles"),
        &format!("/{CONFIGURATION}\n"),
        0o644,
    )?;
    for script in ["postinst", "prerm", "postrm"] {
        let from = root().join("deploy/debian").join(script);
        copy(&from, &control.join(script), 0o755)?;
    }
    let mut sums = Command::new("sh");
    sums.current_dir(directory).args([
        "-c",
        "find . -type f ! -path './DEBIAN/*' -printf '%P\\n' | LC_ALL=C sort | xargs md5sum",
    ]);
    write(&control.join("md5sums"), &output(sums)?, 0o644)
}

fn fields(parts: &Parts, directory: &Path) -> Result<String> {
    let needs = match &parts.glibc {
        Some(version) => format!("Depends: libc6 (>= {version})\n"),
        None => String::new(),
    };
    Ok(format!(
        "Package: drumtower\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: Drumtower <drumtower@localhost>\n\
         Installed-Size: {}\n\
         {needs}\
         Section: admin\n\
         Priority: optional\n\
         Description: distributed job scheduler in one binary\n\
         \x20Starts every run at the right millisecond on the right worker, exactly as often\n\
         \x20as it should, and shows what happened. Server, worker and command line in one\n\
         \x20program; state in one directory.\n",
        parts.version,
        parts.machine.debian,
        kibibytes(directory)?,
    ))
}

fn kibibytes(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        let entries =
            fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.metadata()?;
            match kind.is_dir() {
                true => open.push(entry.path()),
                false => bytes += kind.len(),
            }
        }
    }
    Ok(bytes.div_ceil(1024))
}
