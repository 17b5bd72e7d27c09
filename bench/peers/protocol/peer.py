"""The protocol of the peers for Python: tasks come as JSON in the first argument, answers leave as lines of JSON."""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

task = json.loads(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].startswith("{") else {}
settings = task.get("settings", {})
_starts = None


def now_us():
    return time.time_ns() // 1000


def answer(**line):
    os.write(1, (json.dumps(line) + "\n").encode())


def started(n, meant):
    """Called by the handler in its first line: which job it is and when it was meant to be enqueued."""
    global _starts
    at = now_us()
    if _starts is None:
        _starts = os.open(task["starts"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(_starts, b"%9d %16d %16d\n" % (n, meant, at))


def offer(send):
    """Offers `rate` jobs a second in an open loop: what is due on a tick is one call of `send`, eight run at once."""
    begin = now_us() + 1_000_000
    total = task["rate"] * task["seconds"]
    failed = []
    room = threading.Semaphore(8)

    def carry(jobs):
        try:
            send(jobs)
        except Exception as error:  # whatever it is, these jobs were not accepted
            failed.extend(jobs)
            print(error, file=sys.stderr)
        finally:
            room.release()

    number = 0
    with ThreadPoolExecutor(8) as pool:
        while number < total:
            now, due = now_us(), []
            if room.acquire(blocking=False):
                while number < total and (meant := begin + number * 1_000_000 // task["rate"]) <= now:
                    due.append((number, meant))
                    number += 1
                if due:
                    pool.submit(carry, due)
                else:
                    room.release()
            time.sleep(0.004)
    answer(offered=total - len(failed))


def wait_until_told():
    """Returns when the harness closes our input; reads past `sys.stdin`, whose lock a forked child would inherit."""
    while os.read(0, 4096):
        pass


def counting(count):
    """Answers each line of our input with how many jobs are not done, by the peer's own books."""
    while sys.stdin.readline():
        answer(left=count(), at_us=now_us())


def main(tasks):
    tasks[task["do"]]()
