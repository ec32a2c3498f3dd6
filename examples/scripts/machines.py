#!/usr/bin/env python3
"""Writes the tables of examples/shares/MACHINES.md: what sharing a host and moving between hosts change on real machines.

`make -C examples machines` builds the programs and calls this, which takes about two hours. Above each table stands its command. Tables that are
kept in `results/machines` aren't measured again, but for those of the scripts that are named. Sentences are written by hand.
"""

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # a checkout stays as it is
import kept  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "examples" / "shares"
PAGE = "MACHINES.md"
PROGRAMS = ROOT / "target" / "release"
TABLE = re.compile(r"(<!-- run: (?P<script>\S+)(?P<options>.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def measured(script, options):
    """The table that a script prints."""
    print(f"{script}{options}", file=sys.stderr, flush=True)
    done = subprocess.run([ROOT / script, PROGRAMS, *shlex.split(options)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"machines: {script} ended with {done.returncode}")
    return {"command": f"{script}{options}", "table": done.stdout.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names of scripts, such as stops, that measure again")
    kept.options(parser, FOLDER, "results/machines")
    given = parser.parse_args()
    page = (FOLDER / PAGE).read_text(encoding="utf-8")
    tables = {Path(table["script"]).name: table.group("script", "options") for table in TABLE.finditer(page)}
    if unknown := sorted(set(given.scripts) - set(tables)):
        parser.error(f"no table of {', '.join(unknown)}; there are {', '.join(sorted(tables))}")
    for name, command in tables.items():
        if name in given.scripts:
            (given.results / f"{name}.json").unlink(missing_ok=True)
        result = kept.kept(given.results, name, lambda command=command: measured(*command))
        mark = f"<!-- run: {result['command']} -->\n"

        def written(table):
            return "\n".join([table[1].rstrip("\n"), *result["table"], table[4]]) if table[1] == mark else table[0]

        # Read again each time: a run takes long, and somebody may have written in the page.
        page = TABLE.sub(written, (FOLDER / PAGE).read_text(encoding="utf-8"))
        if given.to == FOLDER:
            (FOLDER / PAGE).write_text(page, encoding="utf-8")
    given.to.mkdir(parents=True, exist_ok=True)
    (given.to / PAGE).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
