"""`python3 -m unittest discover bench/peers`: a peer that loses or doubles is seen doing so."""

import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

from harness import report
from harness.catalog import HERE, subjects
from harness.install import Launch
from harness.measure import Bench, counts
from harness.servers import Sqlite
from harness.shell import NotRun
from harness.starts import delays

# Keeps its jobs in a file; `fault` says what it does wrong.
PROGRAM = """
import time
from pathlib import Path
import peer
from peer import settings, task
fault, books = settings["fault"], Path(task["url"]) / "books"

def prepare():
    books.write_text(str(task["jobs"] - (fault == "forgets")))
    peer.answer(prepared=task["jobs"])

def work():
    peer.answer(began_us=peer.now_us())
    jobs = int(books.read_text())
    due = task.get("at_us", 0) / 1e6
    time.sleep(max(0, due - time.time() - (2 if fault == "early" else 0)))
    for n in range(jobs):
        for _ in range({"loses": 0, "hangs": 0, "doubles": 2}.get(fault, 1) if n == 3 else 1):
            peer.started(n, 0)
    books.write_text("1" if fault == "hangs" else "0")
    peer.wait_until_told()
    peer.answer(stopped=True)

peer.main({"prepare": prepare, "work": work, "left": lambda: peer.counting(lambda: int(books.read_text() or 0))})
"""


class Faults(unittest.TestCase):
    def measure(self, what, fault):
        with tempfile.TemporaryDirectory() as place:
            work = Path(place)
            (work / "run").mkdir()
            (work / "main.py").write_text(PROGRAM)
            (work / "peer.py").write_text((HERE / "protocol" / "peer.py").read_text())
            subject = SimpleNamespace(name="faulty", settings={"fault": fault}, processes=1, offers="apart")
            options = SimpleNamespace(jobs=10, storm=10, rate=10, seconds=1, patience=6)
            launch = Launch([sys.executable, "main.py"], work)
            return Bench(subject, launch, Sqlite(work), options, work).measure(what)

    def check(self, result, **wrong):
        found = {key: result[key] for key in ("lost", "doubled", "unfinished", "early") if result.get(key)}
        self.assertEqual(found, wrong)

    def test_an_exact_peer(self):
        result = self.measure("burn", "none")
        self.check(result)
        self.assertGreater(result["per_s"], 0)

    def test_a_job_that_never_starts_is_lost(self):
        self.check(self.measure("burn", "loses"), lost=1)

    def test_a_job_that_starts_twice_is_doubled(self):
        self.check(self.measure("burn", "doubles"), doubled=1)

    def test_a_job_that_the_books_still_hold_is_unfinished(self):
        self.check(self.measure("burn", "hangs"), unfinished=1)

    def test_a_job_that_was_enqueued_and_is_not_there(self):
        with self.assertRaisesRegex(NotRun, "10 jobs were enqueued, 9 are there"):
            self.measure("burn", "forgets")

    def test_a_start_before_its_time_is_early(self):
        self.check(self.measure("storm", "early"), early=10)


class Figures(unittest.TestCase):
    def test_percentiles(self):
        self.assertEqual(delays(us * 1000 for us in range(1, 101)), {"p50": 51.0, "p99": 100.0, "max": 100.0})
        self.assertIsNone(delays([]))

    def test_what_is_missing_is_lost_unless_it_is_left(self):
        starts = [(0, 0, 1), (1, 0, 1), (1, 0, 2)]
        self.assertEqual(counts(starts, 4, 1), {"lost": 1, "unfinished": 1, "doubled": 1, "left": 1})

    def test_a_ratio_below_one_is_a_peer_that_is_better(self):
        rounds = {"drumtower-sqlite": {"burn": [{"per_s": 100}], "steady": [{"start_delay_ms": {"p99": 4}}]},
                  "peer": {"burn": [{"per_s": 200}, {"per_s": 400}], "steady": [{"start_delay_ms": {"p99": 8}}]}}
        found = report.ratios(report.medians(rounds))
        self.assertEqual(found, {"peer": {"drumtower-sqlite": {"burn per_s": 0.33, "steady p99": 2.0}}})
        self.assertEqual(report.better(found), ["peer beats drumtower-sqlite at burn per_s ×3.03"])

    def test_every_peer_is_described(self):
        self.assertGreaterEqual(len(subjects()), 11)


if __name__ == "__main__":
    unittest.main()
