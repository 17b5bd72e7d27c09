"""Running other programs: commands that end, and programs that speak the protocol of the peers."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


class NotRun(Exception):
    """A peer cannot be measured here; the text says why."""


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def command(words, log, cwd=None, env=None, seconds=900, **more):
    """Runs a command to its end and returns what it printed; all that it says is kept in `log`."""
    status, out, err = finish(words, log, cwd, env, seconds, **more)
    if status != 0:
        raise NotRun(f"{words[0]} {words[1]} failed: {last_words(err + out)} (see {log})")
    return out


def finish(words, log, cwd=None, env=None, seconds=900, **more):
    """Runs a command to its end, whatever that is: its status, its output and its errors."""
    try:
        process = subprocess.Popen([str(word) for word in words], cwd=cwd, env=env and os.environ | env, text=True,
                                   errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
    except FileNotFoundError:
        raise NotRun(f"{words[0]} is not installed") from None
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise NotRun(f"{words[0]} {words[1]} took longer than {seconds} s") from None
    finally:
        end(process)
    with open(log, "a") as file:
        file.write(f"$ {' '.join(str(word) for word in words)}\n{out}{err}\n")
    return process.returncode, out, err


def end(process, sign=signal.SIGTERM, seconds=20):
    """Ends a process of ours: asked first, since it may have children of its own, and made to after a while."""
    if process.poll() is None:
        process.send_signal(sign)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def last_words(text, most=200):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["it said nothing"]
    return telling[0][:most]


class Program:
    """A program of a peer: it is given its task as JSON, answers in lines of JSON, and ends when its input closes."""

    def __init__(self, launch, task, log):
        self.log = log
        self.words = [*launch.words, json.dumps(task)]
        with open(log, "a") as errors:
            self.process = subprocess.Popen(self.words, cwd=launch.cwd, env=os.environ | launch.env, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                            start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self.process.stdout as lines, open(self.log, "a") as log:
            for line in lines:
                try:
                    self.lines.put(json.loads(line))
                except ValueError:
                    log.write(line)
        self.lines.put(None)

    def answer(self, key, seconds, whole=False):
        """Waits for a line with `key` and returns its value, or the whole line."""
        until = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                raise NotRun(f"no {key!r} within {seconds} s (see {self.log})") from None
            if line is None:
                self.process.wait()
                said = last_words(Path(self.log).read_text(errors="replace")[-4000:])
                raise NotRun(f"ended without {key!r}, status {self.process.returncode}: {said} (see {self.log})")
            if isinstance(line, dict) and key in line:
                return line if whole else line[key]

    def ask(self, key, seconds):
        """Sends an empty line and returns the line that answers it."""
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except OSError:
            pass
        return self.answer(key, seconds, whole=True)

    def alive(self):
        return self.process.poll() is None

    def ask_to_stop(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def end(self, seconds=30):
        """Waits for the end, and makes one if it does not come; what it started and left behind ends with it."""
        self.ask_to_stop()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            end(self.process, seconds=5)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
