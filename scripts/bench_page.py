#!/usr/bin/env python3
"""Runs the benches and writes their figures into docs/benchmarks.md, between the markers of each section.

Each bench prints JSON lines with name, value, unit, anchor (what it is measured beside) and ratio. They go to stdout
as they come; a section whose bench has ended without a fault gets a new table. With names of sections as arguments
only those are run.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
PYTHON = "SOJOURN_BENCH_PYTHON"
SECTIONS = {  # the package and the bench of each figure, or a script of scripts/ that is given the folder of the programs
    "search": [("sojourn", "search")],
    "trainer": [("sojourn-trainer", "hop"), ("sojourn-trainer", "graphs"), ("sojourn-trainer", "pace")],
    "core": [
        ("sojourn-core", "commands"),
        ("sojourn-core", "choices"),
        ("sojourn-core", "large_job"),
        ("sojourn-core", "moves"),
        ("sojourn-core", "searches"),
        ("sojourn-workgen", "plan"),
        ("sojourn-workgen", "search"),
        ("sojourn-workgen", "objectives"),
        ("sojourn-workgen", "stopping"),
        ("sojourn-shares", "plan"),
        ("sojourn-sim", "fleet"),
        ("sojourn-sim", "verification"),
    ],
    "server": [("sojourn", "server")],
    "data": [("sojourn-ingest", "ingest"), ("sojourn-ingest", "downloads"), ("sojourn-codec", "delta")],
    "merging": [
        ("sojourn-rules", "merge"),
        ("sojourn-assimilator", "updates"),
        ("sojourn-assimilator", "ranges"),
    ],
    "grown": [("sojourn-grown", "grown")],
    "python": ["bench_python.py"],
}


def figures(bench):
    """What a bench prints, each line passed on as it comes."""
    if isinstance(bench, str):
        target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
        command = [sys.executable, str(ROOT / "scripts" / bench), f"{target}/release"]
    else:
        command = ["cargo", "bench", "--locked", "-p", bench[0], "--bench", bench[1]]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            print(line, end="", flush=True)
            if line.startswith("{"):
                yield json.loads(line)
    if run.returncode != 0:
        raise SystemExit(f"bench: `{' '.join(command)}` ended with {run.returncode}")


def number(value):
    """Three digits that count, with commas between thousands."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def row(figure):
    measured = f"{number(figure['value'])} {figure.get('unit', '')}".strip()
    anchor = "" if figure.get("anchor") is None else number(figure["anchor"])
    ratio = "" if figure.get("ratio") is None else f"{figure['ratio']:.3g}"
    return f"| {figure['name'].replace('|', '/')} | {measured} | {anchor} | {ratio} |"


def table(found):
    return "\n".join(["| figure | measured | beside | ratio |", "|---|---|---|---|", *map(row, found)])


def replace(page, section, text):
    """The page with another table in a section."""
    start, end = f"<!-- bench:{section} -->", f"<!-- /bench:{section} -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.S)
    if not pattern.search(page):
        raise SystemExit(f"bench: `{PAGE.relative_to(ROOT)}` has no section `{section}`")
    return pattern.sub(lambda _: f"{start}\n{text}\n{end}", page)


def main():
    wanted = sys.argv[1:] or list(SECTIONS)
    unknown = [section for section in wanted if section not in SECTIONS]
    if unknown:
        raise SystemExit(f"bench: no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    for section in wanted:
        if section == "python" and PYTHON not in os.environ:
            print(f"bench: `{section}` is left out: {PYTHON} names no Python", file=sys.stderr)
            continue
        found = [figure for bench in SECTIONS[section] for figure in figures(bench)]
        # Read again each time: a run takes long, and somebody may have written in the page.
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(replace(page, section, table(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
