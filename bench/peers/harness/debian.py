"""Programs from Debian's packages, installed or unpacked below `.work/debian`."""

import os
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from .shell import NotRun, command, say


@dataclass(frozen=True)
class Found:
    path: Path
    env: dict


def find(package, pattern, work):
    """The newest program that matches `pattern`, of the system or unpacked from `package`."""
    installed = sorted(Path("/").glob(pattern))
    if installed:
        return Found(installed[-1], {})
    place = work / "debian"
    if not list(place.glob(pattern)):
        unpack(package, place, work / "run" / "debian.log")
    unpacked = sorted(place.glob(pattern))
    if not unpacked:
        raise NotRun(f"Debian's package {package} holds no {pattern}")
    libraries = place / "usr/lib" / (sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu")
    return Found(unpacked[-1], {"LD_LIBRARY_PATH": f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}"})


def unpack(package, place, log):
    """Fetches a package with all that it needs and the system has not, and unpacks it."""
    say(f"fetching Debian's package {package}")
    place.mkdir(parents=True, exist_ok=True)
    plan = command(["apt-get", "--simulate", "install", package], log)
    wanted = re.findall(r"^Inst (\S+) ", plan, re.M)
    if not wanted:
        raise NotRun(f"apt-get knows of nothing to install for {package}")
    command(["apt-get", "download", *wanted], log, cwd=place)
    for file in place.glob("*.deb"):
        command(["dpkg-deb", "--extract", file, place], log)
        file.unlink()
