"""From rounds to medians, ratios, one table and one JSON file.

A ratio above 1 says that Drumtower is better: its jobs a second over the peer's, or the peer's delay over its own.
"""

import json
import statistics

BASES = ("drumtower-sqlite", "drumtower-postgres")
COLUMNS = [
    ("burn", "per_s", "jobs/s"),
    ("steady", "p50", "steady p50"),
    ("steady", "p99", "p99"),
    ("steady", "max", "max ms"),
    ("storm", "p50", "storm p50"),
    ("storm", "p99", "p99"),
    ("storm", "max", "max ms"),
]
TROUBLES = ("lost", "doubled", "unfinished", "early", "refused", "left")


def value(result, key):
    """A figure of one round, or None."""
    if result is None:
        return None
    return result.get(key) if key == "per_s" else (result.get("start_delay_ms") or {}).get(key)


def median(rounds, key):
    values = [value(result, key) for result in rounds]
    values = [it for it in values if it is not None]
    return round(statistics.median(values), 2) if values else None


def medians(measured):
    """{subject: {measure: [round, …]}} to {subject: {measure: {figure: median}}}."""
    return {name: {what: {key: median(rounds[what], key) for where, key, _ in COLUMNS if where == what}
                   for what in rounds} for name, rounds in measured.items()}


def ratios(figures):
    found = {}
    for name, own in figures.items():
        for base in BASES:
            for what, values in own.items():
                theirs = figures.get(base, {}).get(what) or {}
                for key, mine in values.items():
                    if name not in BASES and mine and theirs.get(key):
                        ratio = theirs[key] / mine if key == "per_s" else mine / theirs[key]
                        found.setdefault(name, {}).setdefault(base, {})[f"{what} {key}"] = round(ratio, 2)
    return found


def troubles(measured):
    """What was not exact, by subject, in words."""
    found = {}
    for name, rounds in measured.items():
        for what, results in rounds.items():
            for key in TROUBLES:
                total = sum(result.get(key) or 0 for result in results)
                if total:
                    found.setdefault(name, []).append(f"{total} {key} ({what})")
    return found


def better(found):
    """Where a peer beats Drumtower, in words."""
    lines = []
    for name, bases in found.items():
        for base, values in bases.items():
            won = [f"{what} ×{1 / ratio:.2f}" for what, ratio in values.items() if 0 < ratio < 1]
            if won:
                lines.append(f"{name} beats {base} at {', '.join(won)}")
    return lines


def table(subjects, figures, found, wrong, not_run, versions):
    head = ["", "store", *(title for _, _, title in COLUMNS), "× sqlite", "× postgres", "exact"]
    rows = [head]
    for subject in subjects:
        name = subject.name
        if name in not_run and name not in figures:
            rows.append([name, subject.server, f"not run: {not_run[name]}"])
            continue
        own = figures.get(name, {})
        cells = [shown(own.get(what, {}).get(key)) for what, key, _ in COLUMNS]
        burned = [shown(found.get(name, {}).get(base, {}).get("burn per_s")) for base in BASES]
        exact = "; ".join(wrong.get(name, []) + ([f"not run: {not_run[name]}"] if name in not_run else [])) or "yes"
        rows.append([name + (f" {versions[name]}" if versions.get(name) else ""), subject.server, *cells, *burned, exact])
    whole = [row for row in rows if len(row) == len(head)]
    widths = [max(len(row[column]) for row in whole) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(widths[at]) if at in (0, 1, len(head) - 1) else cell.rjust(widths[at])
                               for at, cell in enumerate(row)).rstrip() for row in rows)


def shown(number):
    if number is None:
        return "-"
    return f"{number:,.0f}" if number >= 100 else f"{number:.4g}" if number >= 10 else f"{number:.3g}"


def write(path, report):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
