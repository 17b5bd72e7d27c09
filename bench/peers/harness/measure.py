"""The three measurements of a peer, by the tasks of its program: prepare, work, offer and left.

A burn-down ends when the peer's own books have no job left. Workers run half a second longer, so that a job that starts a
second time is seen, and are then told to stop.
"""

import os
import secrets
import time
from pathlib import Path

from .servers import directory_of_starts
from .shell import NotRun, Program
from .starts import Starts, delays, first_starts, tally

LINGER_S = 0.5
BOOKS_S = 10
STALL_S = 3
STORM_TRIES = 4


class Bench:
    """One subject, ready to be measured."""

    def __init__(self, subject, launch, server, options, work):
        self.subject, self.launch, self.server, self.options = subject, launch, server, options
        self.log = work / "run" / f"{subject.name}.log"
        self.starts = (directory_of_starts() or work / "run") / f"drumtower-peers-{secrets.token_hex(6)}"

    def measure(self, what):
        url = self.server.fresh()
        try:
            return getattr(self, what)(url)
        finally:
            Path(self.starts).unlink(missing_ok=True)
            self.server.discard(url)

    def burn(self, url):
        jobs = self.options.jobs
        self._ask("prepare", "prepared", url, jobs=jobs)
        with self._books(url) as books:
            if books.left() != jobs:
                raise NotRun(f"{jobs} jobs were enqueued, {books.left()} are there (see {self.log})")
            with Workers(self, url) as workers:
                workers.wait_for(jobs, self.options.patience, books)
                done_us = books.done_us()
        starts = workers.starts.read()
        if not starts:
            raise NotRun(f"no job ran within {self.options.patience} s (see {self.log})")
        ended_us = max(started for _, _, started in starts) if books.last else done_us
        took_s = (ended_us - workers.began_us) / 1e6
        ran = len(first_starts(starts))
        return {"jobs": jobs, "seconds": round(took_s, 3), "per_s": round(ran / took_s, 1),
                **counts(starts, jobs, books.last)}

    def steady(self, url):
        rate, seconds = self.options.rate, self.options.seconds
        self._ask("prepare", "prepared", url, jobs=0)
        offer = {"rate": rate, "seconds": seconds}
        inside = self.subject.offers == "inside"
        with self._books(url) as books, Workers(self, url, **(offer if inside else {})) as workers:
            if inside:
                offered = workers.programs[0].answer("offered", seconds + self.options.patience)
            else:
                offered = self._ask("offer", "offered", url, **offer)
            workers.wait_for(offered, self.options.patience, books)
            books.done_us()
        starts = workers.starts.read()
        first = first_starts(starts).values()
        return {"rate": rate, "seconds": seconds, "offered": offered,
                "start_delay_ms": delays(started - meant for meant, started in first),
                **counts(starts, offered, books.last)}

    def storm(self, url):
        jobs = self.options.storm
        lead_s = 10 + jobs / 500
        for _ in range(STORM_TRIES):
            at_us = int(time.time() + lead_s) * 1_000_000
            self._ask("prepare", "prepared", url, jobs=jobs, at_us=at_us)
            if time.time() * 1e6 < at_us - 4e6:
                break
            self.server.discard(url)
            url, lead_s = self.server.fresh(), lead_s * 2
        else:
            raise NotRun(f"{jobs} jobs could not be put in {lead_s / 2:.0f} s")
        with self._books(url) as books, Workers(self, url, at_us=at_us) as workers:
            if workers.began_us > at_us - 500_000:
                raise NotRun("the workers were not ready in time")
            workers.wait_for(jobs, self.options.patience, books)
            books.done_us()
        starts = workers.starts.read()
        first = [started - at_us for _, started in first_starts(starts).values()]
        return {"jobs": jobs, "start_delay_ms": delays(max(0, delay) for delay in first),
                "early": sum(delay < 0 for delay in first), **counts(starts, jobs, books.last)}

    def _books(self, url):
        return Books(self.program("left", url))

    def program(self, do, url, **more):
        given = {"do": do, "url": url, "starts": str(self.starts), "settings": self.subject.settings, **more}
        return Program(self.launch, given, self.log)

    def _ask(self, do, key, url, **more):
        """Runs a task to its end and returns the one value it answers with."""
        program = self.program(do, url, **more)
        try:
            return program.answer(key, self.options.patience + self.options.seconds)
        finally:
            program.end()


def counts(starts, expected, left):
    """What never started is unfinished as long as the peer's books still hold it, and lost when they do not."""
    counted = tally(starts, expected)
    unfinished = min(counted["missing"], left)
    return {"lost": counted["missing"] - unfinished, "unfinished": unfinished, "doubled": counted["doubled"],
            "left": left}


class Books:
    """How many jobs are not done, by the peer's own books: one connection that is open all along, asked when it matters."""

    def __init__(self, program):
        self.program = program
        self.last = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.program.end()

    def left(self):
        return self._ask()["left"]

    def _ask(self):
        said = self.program.ask("left", 60)
        self.last = said["left"]
        return said

    def done_us(self):
        """When none was left; or, if some stay for longer than all patience, when that was last seen."""
        until = time.monotonic() + BOOKS_S
        while (said := self._ask())["left"] and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(LINGER_S)
        return said["at_us"]


class Workers:
    """The worker processes of a measurement, from their first look for work to their orderly end."""

    def __init__(self, bench, url, **more):
        self.starts = Starts(bench.starts)
        self.programs = [bench.program("work", url, **more) for _ in range(bench.subject.processes)]

    def __enter__(self):
        try:
            self.began_us = min(program.answer("began_us", 60) for program in self.programs)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind, _value, _trace):
        for program in self.programs:
            program.ask_to_stop()
        try:
            if kind is None:
                for program in self.programs:
                    program.answer("stopped", 60)
        finally:
            self._end()

    def _end(self):
        for program in self.programs:
            program.end(seconds=10)

    def wait_for(self, expected, patience_s, books):
        """Until that many different jobs started, or nothing starts any more and the books are empty, or patience ends."""
        until = time.monotonic() + patience_s
        seen, changed = 0, time.monotonic()
        while (now := time.monotonic()) < until:
            count = self.starts.count()
            if count >= expected and self.starts.distinct() >= expected:
                return
            if not all(program.alive() for program in self.programs):
                raise NotRun(f"a worker ended by itself (see {self.programs[0].log})")
            if count != seen:
                seen, changed = count, now
            elif seen and now - changed > STALL_S:
                if not books.left():
                    return
                changed = now
            time.sleep(0.005)


def machine():
    """What the figures were measured on."""
    def first(path, key):
        try:
            with open(path) as file:
                return next((line.split(":", 1)[1].strip() for line in file if line.startswith(key)), None)
        except OSError:
            return None

    return {"cpu": first("/proc/cpuinfo", "model name"), "cores": os.cpu_count(),
            "memory": first("/proc/meminfo", "MemTotal"), "kernel": os.uname().release,
            "load_before": os.getloadavg()}
