"""What handlers wrote down: one line a start, of a fixed width, so that a file's size tells how many there are."""

import os

# The number of the job, when it was meant to be enqueued, when its handler began; in microseconds.
WIDTH = len(f"{0:9d} {0:16d} {0:16d}\n")


class Starts:
    def __init__(self, path):
        self.path = path
        path.write_bytes(b"")

    def count(self):
        return os.path.getsize(self.path) // WIDTH

    def read(self):
        with open(self.path) as file:
            return [tuple(map(int, line.split())) for line in file if len(line) == WIDTH]

    def distinct(self):
        return len({number for number, _, _ in self.read()})


def tally(starts, expected):
    """How many jobs never started, and how many starts were one too many."""
    distinct = len({number for number, _, _ in starts})
    return {"missing": expected - distinct, "doubled": len(starts) - distinct}


def delays(values_us):
    """Percentiles in milliseconds, by nearest rank; the first start of a job counts."""
    ordered = sorted(values_us)
    if not ordered:
        return None

    def at(share):
        return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000, 2)

    return {"p50": at(0.5), "p99": at(0.99), "max": round(ordered[-1] / 1000, 2)}


def first_starts(starts):
    """The first start of each job: number to (meant, started)."""
    first = {}
    for number, meant, started in starts:
        if number not in first or started < first[number][1]:
            first[number] = (meant, started)
    return first
