#!/usr/bin/env python3
"""Writes the tables of examples/shares/MACHINES.md: what sharing a host and moving between hosts change on real machines.

`make -C examples machines` builds the programs and calls this, which takes about two hours. Above each table stands its command; names of
scripts as arguments run these alone. Sentences are written by hand.
"""

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "examples" / "shares" / "MACHINES.md"
PROGRAMS = ROOT / "target" / "release"
TABLE = re.compile(r"(<!-- run: (?P<script>\S+)(?P<options>.*?) -->\n).*?(<!-- end -->)", re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="*", help="names of scripts, such as stops (all)")
    wanted = parser.parse_args().scripts
    known = {Path(table["script"]).name for table in TABLE.finditer(PAGE.read_text(encoding="utf-8"))}
    unknown = sorted(set(wanted) - known)
    if unknown:
        parser.error(f"no table of {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    commands = [table.group("script", "options") for table in TABLE.finditer(PAGE.read_text(encoding="utf-8"))]
    for script, options in commands:
        if wanted and Path(script).name not in wanted:
            continue
        print(f"{script}{options}", file=sys.stderr, flush=True)
        done = subprocess.run([ROOT / script, PROGRAMS, *shlex.split(options)], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"machines: {script} ended with {done.returncode}")
        mark = f"<!-- run: {script}{options} -->\n"

        def written(table):
            return f"{table[1]}{done.stdout}{table[4]}" if table[1] == mark else table[0]

        # Read again each time: a run takes long, and somebody may have written in the page.
        PAGE.write_text(TABLE.sub(written, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
