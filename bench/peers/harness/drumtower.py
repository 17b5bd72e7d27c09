"""Drumtower's own rows, by `drumtower bench` as it is.

`bench backlog` is a burn-down like that of the peers, but for one thing: its time begins before the worker processes are
started. `bench precision` keeps its jobs in SQLite, so there is no storm on PostgreSQL.
"""

import json
import shutil

from .catalog import Subject
from .shell import NotRun, finish, last_words

SETTINGS = {"workers": 2, "capacity": 4000, "connections": 8, "path": "runs:batch every 4 ms"}


def subject(name, server, measures):
    return Subject(name=name, peer="drumtower", language="drumtower", packages={}, server=server, measures=measures,
                   settings=SETTINGS, processes=2, offers="apart")


SUBJECTS = [
    subject("drumtower-sqlite", "sqlite", ("burn", "steady", "storm")),
    subject("drumtower-postgres", "postgres", ("burn", "steady")),
]


class Drumtower:
    """The same face as `measure.Bench`."""

    def __init__(self, subject, binary, server, options, work):
        self.subject, self.server, self.options = subject, server, options
        self.binary, self.log = binary, work / "run" / f"{subject.name}.log"
        self.facts = None

    def measure(self, what):
        url = self.server.fresh()
        try:
            return getattr(self, what)(url)
        finally:
            self.server.discard(url)

    def burn(self, url):
        said = self._bench("backlog", "--runs", self.options.jobs, "--workers", SETTINGS["workers"], "--store",
                           self._store(url))
        return {"jobs": said["runs"], "seconds": said["took_s"], "per_s": said["completed_per_s"], **counts(said)}

    def steady(self, url):
        rate, seconds = self.options.rate, self.options.seconds
        said = self._throughput(url, rate, seconds)
        return {"rate": rate, "seconds": seconds, "offered": round(said["offered_per_s"] * seconds),
                "start_delay_ms": three(said["start_delay_ms"]), **counts(said)}

    def storm(self, url):
        data = f"{url}/jobs"
        said = self._bench("precision", "--storm", self.options.storm, "--data", data)["storm"]
        shutil.rmtree(data, ignore_errors=True)
        return {"jobs": said["jobs"], "start_delay_ms": three(said["start_delay_ms"]), "early": said["early"],
                **counts(said)}

    def _throughput(self, url, rate, seconds):
        return self._bench("throughput", "--rate", rate, "--duration", f"{seconds}s", "--workers",
                           SETTINGS["workers"], "--path", "batch", "--store", self._store(url))

    def _store(self, url):
        return f"sqlite:{url}/store" if self.subject.server == "sqlite" else url

    def _bench(self, scenario, *words):
        """A bench that finds anything lost or doubled fails, but says so in its JSON all the same."""
        words = [self.binary, "bench", scenario, *words, "-o", "json"]
        _, out, err = finish(words, self.log, seconds=self.options.patience + self.options.seconds + 120)
        try:
            said = json.loads(out)
        except ValueError:
            raise NotRun(f"drumtower bench {scenario} printed no figures: {last_words(err)} (see {self.log})") from None
        self.facts = said.get("machine")
        return said


def three(delays):
    return delays and {key: delays[key] for key in ("p50", "p99", "max")}


def counts(said):
    """Lost and doubled are the words of its audit."""
    counted = {"lost": said["lost"], "doubled": said["duplicated"], "unfinished": 0}
    return counted | ({"refused": said["refused"]} if said.get("refused") else {})
