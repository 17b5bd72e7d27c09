"""What there is to measure: one directory a peer, described by its `peer.json`.

A peer has one or more subjects: the same program on another server or with other settings. Drumtower's subjects are
described in `drumtower.py`, because they are measured by `drumtower bench` and not by a program of this directory.
"""

import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
MEASURES = ("burn", "steady", "storm")


@dataclass(frozen=True)
class Subject:
    """One row of the table."""
    name: str
    peer: str
    language: str
    packages: dict
    server: str
    measures: tuple
    settings: dict
    processes: int
    offers: str

    @property
    def directory(self):
        return HERE / self.peer


def subjects():
    found = []
    for file in sorted(HERE.glob("*/peer.json")):
        described = json.loads(file.read_text())
        for name, variant in described["subjects"].items():
            found.append(Subject(
                name=name,
                peer=file.parent.name,
                language=described["language"],
                packages=described["packages"],
                server=variant["server"],
                measures=tuple(described["measures"]),
                settings=described["settings"] | variant.get("settings", {}),
                processes=described.get("processes", 1),
                offers=variant.get("offers", described.get("offers", "apart")),
            ))
    return found


def choose(all_subjects, only):
    """Those that were asked for, by the name of a subject or of a peer."""
    if not only:
        return all_subjects
    known = {subject.name for subject in all_subjects} | {subject.peer for subject in all_subjects}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"--only: no peer is called {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
    return [subject for subject in all_subjects if subject.name in only or subject.peer in only]
