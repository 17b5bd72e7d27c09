"""The command line."""

import argparse
import os

ABOUT = """\
Measures Drumtower beside what people use today: on this machine, in this run, with durable settings and work that
does nothing. Everything is installed below bench/peers/.work, servers listen on loopback only and end with the run.

  burn    --jobs jobs are enqueued, then workers start: jobs a second until the last one has run
  steady  --rate jobs a second are enqueued for --seconds in an open loop: delay from the moment a job was meant to be
          enqueued to the first line of its handler
  storm   --storm jobs are due at one instant (schedulers only): delay from that instant to the handler

Every start is written down, so a job that never started is shown as lost and one that started twice as doubled."""

EXAMPLES = """\
examples:
  bench/peers/run --list                                      what there is, with versions and settings
  bench/peers/run --jobs 2000 --seconds 5 --rounds 1          does everything work?
  bench/peers/run --only river,drumtower-postgres             two of them
  bench/peers/run --only bullmq --measure burn --jobs 50000   a name stands for all its variants
  DRUMTOWER_BIN=target/release/drumtower bench/peers/run --json peers.json

What is needed: Linux on Debian or a relative of it, and of npm, go, cargo, mvn with a JDK, and python3 with venv those
whose peers are to run. What cannot be installed is listed as "not run" with the reason; the rest goes on. The status is
1 when anything was lost, doubled or not run."""


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        prog="bench/peers/run", description=ABOUT, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--list", action="store_true", help="list peers, versions and settings, and end")
    add("--only", type=names, metavar="NAME[,NAME]", help="only these peers or variants of peers")
    add("--measure", type=names, metavar="NAME[,NAME]", help="only these of burn, steady and storm")
    add("--jobs", type=positive, default=20000, metavar="N", help="jobs of a burn-down (20000)")
    add("--rate", type=positive, default=200, metavar="N", help="jobs a second of the steady state (200)")
    add("--seconds", type=positive, default=20, metavar="S", help="length of the steady state (20)")
    add("--storm", type=positive, metavar="N", help="jobs due at one instant (a tenth of --jobs)")
    add("--rounds", type=positive, default=3, metavar="N",
        help="rounds, of which the median counts; every second one takes the peers in reverse (3)")
    add("--patience", type=positive, default=180, metavar="S",
        help="give up on a measurement after this long; what had not run by then is shown as unfinished (180)")
    add("--drumtower", default=os.environ.get("DRUMTOWER_BIN"), metavar="FILE",
        help="the binary of Drumtower (DRUMTOWER_BIN); without it Drumtower is listed as not run")
    add("--json", metavar="FILE", help="where the figures go (bench/peers/.work/peers.json)")
    add("--keep", action="store_true", help="leave the servers' data and logs in bench/peers/.work/run")
    options = parser.parse_args(arguments)
    options.storm = options.storm or max(1, options.jobs // 10)
    return options


def names(text):
    return [name.strip() for name in text.split(",") if name.strip()]


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number
