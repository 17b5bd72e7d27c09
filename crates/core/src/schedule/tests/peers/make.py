"""Asks croniter, a cron library for Python, for the times of a few thousand lines and writes croniter.tsv.

    python3 -m venv peers && peers/bin/pip install croniter==6.2.4 tzdata==2026.6
    peers/bin/python make.py

The lines are drawn with a fixed seed, so the file changes only with the version of the library. Columns: the line as
Drumtower writes it, the zone, the instant to start from in seconds, and the following times as differences in seconds,
each from the one before; `!` when the library refuses the line, `-` when it finds no time. cron-parser.mjs asks a second
library the same.
"""

import random
from datetime import datetime, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import croniter as library
from croniter import croniter

VERSION = "6.2.4"
LINES = 3000
TIMES = 4
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
# Without clock changes, and two in which hours that never change are asked about.
CALM = ["UTC", "Asia/Shanghai", "Asia/Kolkata", "America/Phoenix"]
CHANGING = ["Europe/Berlin", "America/New_York"]
STARTS = [
    int(datetime(*start, tzinfo=timezone.utc).timestamp())
    for start in [
        (2026, 1, 1, 0, 0, 0),
        (2024, 2, 28, 23, 59, 30),
        (2027, 6, 15, 12, 34, 56),
        (2031, 12, 30, 17, 0, 1),
    ]
]
draw = random.Random(20260329)


def number(low, high, names=None):
    value = draw.randint(low, high)
    if names and draw.random() < 0.4:
        return names[value % len(names)] if low == 0 else names[value - 1]
    return str(value)


def item(low, high, names=None):
    kind = draw.random()
    if kind < 0.45:
        return number(low, high, names)
    first, last = sorted(draw.sample(range(low, high + 1), 2))
    step = draw.randint(1, max(1, (high - low + 1) // 2))
    if kind < 0.65:
        if names and draw.random() < 0.4 and last - low < len(names):
            return f"{names[first - low]}-{names[last - low]}"
        return f"{first}-{last}"
    if kind < 0.8:
        return f"{first}-{last}/{step}"
    if kind < 0.9:
        return f"{first}/{step}"
    return f"*/{step}"


def field(low, high, names=None, star=0.35):
    kind = draw.random()
    if kind < star:
        return "*"
    if kind < star + 0.12:
        return f"*/{draw.randint(2, max(2, (high - low) // 2))}"
    return ",".join(item(low, high, names) for _ in range(draw.choice([1, 1, 1, 2, 3])))


def day():
    kind = draw.random()
    if kind < 0.06:
        return "L"
    if kind < 0.09:
        return f"{draw.randint(1, 28)},L"
    if kind < 0.14:
        return f"{draw.randint(1, 31)}W"
    if kind < 0.17:
        return "?"
    return field(1, 31, star=0.5)


def weekday():
    kind = draw.random()
    if kind < 0.07:
        return f"{draw.choice(DAYS)}#{draw.randint(1, 5)}"
    if kind < 0.12:
        return f"{draw.randint(0, 7)}L"
    if kind < 0.15:
        return "?"
    if kind < 0.2:
        return f"{draw.choice(DAYS[1:])}-{draw.choice(['sun', '7'])}"
    return field(0, 7 if draw.random() < 0.2 else 6, DAYS, star=0.55)


def mistakes():
    """Lines that one or the other refuses."""
    return draw.choice(
        [
            f"0 {draw.randint(13, 23)}-{draw.randint(0, 12)} * * *",
            f"{draw.randint(31, 59)}-{draw.randint(0, 30)}/2 * * * *",
            f"*/{draw.randint(61, 90)} * * * *",
            f"0 0 L-{draw.randint(1, 20)} * *",
            "0 0 LW * *",
            f"0 0 * * {draw.choice(DAYS)},{draw.choice(DAYS)}#2",
            "0 0 * nov-feb *",
            "0 0 * * sat-mon",
            f"{draw.randint(60, 70)} * * * *",
            "0 0 30 2 *",
            f"{(minute := draw.randint(0, 59))}-{minute} * * * *",
            f"0 0 {draw.randint(20, 31)}-{draw.randint(1, 10)} * *",
        ]
    )


def line():
    if draw.random() < 0.03:
        return mistakes(), draw.choice(CALM)
    zone = draw.choice(CALM + CHANGING)
    hour = field(5, 20, star=0) if zone in CHANGING else field(0, 23)
    if zone in CHANGING:
        hour = ",".join(part for part in hour.split(",") if "*" not in part and part.count("/") == 0) or "12"
    fields = [field(0, 59), hour, day(), field(1, 12, MONTHS, star=0.6), weekday()]
    if draw.random() < 0.25:
        fields.insert(0, field(0, 59))
    return " ".join(fields), zone


def theirs(text):
    """The line as croniter writes it: the last Friday is `L5`."""
    *rest, last = text.split(" ")
    parts = [f"L{part[:-1]}" if part[-1:] == "L" and part[:-1].isdigit() else part for part in last.split(",")]
    return " ".join([*rest, ",".join(parts)])


def times(text, zone, start):
    begin = datetime.fromtimestamp(start, ZoneInfo(zone))
    try:
        found = croniter(theirs(text), begin, ret_type=datetime, second_at_beginning=True)
    except (library.CroniterError, ValueError):
        return "!"
    gaps, last = [], start
    for _ in range(TIMES):
        try:
            at = int(found.get_next(datetime).timestamp())
        except library.CroniterBadDateError:
            break
        gaps.append(str(at - last))
        last = at
    return " ".join(gaps) or "-"


def main():
    rows = [f"# croniter {VERSION}, written by make.py"]
    seen = set()
    while len(seen) < LINES:
        text, zone = line()
        if (text, zone) in seen:
            continue
        seen.add((text, zone))
        for start in draw.sample(STARTS, 2):
            rows.append("\t".join([text, zone, str(start), times(text, zone, start)]))
    Path(__file__).with_name("croniter.tsv").write_text("\n".join(rows) + "\n")


main()
