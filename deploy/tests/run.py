"""Runs every check of deploy/, prints each with its time, and fails where any fails. `run.py NAME...` runs those of that name.

A check that can't be made on this machine is skipped, and said so, only where its tool is no Python or Debian package.
"""

import concurrent.futures
import sys
import time
import traceback

sys.dont_write_bytecode = True  # a checkout stays as it is
import chart  # noqa: E402, F401
import cloud  # noqa: E402, F401
import containers  # noqa: E402, F401
import files  # noqa: E402, F401
import machine  # noqa: E402, F401
import monitoring  # noqa: E402, F401
import packages  # noqa: E402, F401
import server  # noqa: E402, F401
from checks import CHECKS, Failed, Skipped  # noqa: E402


def attempt(name):
    """A check's verdict, its seconds, and what there is to say."""
    start = time.monotonic()
    try:
        CHECKS[name]()
        verdict, text = "ok", ""
    except Skipped as why:
        verdict, text = "SKIPPED", str(why)
    except Failed as why:
        verdict, text = "FAILED", str(why)
    except Exception:  # noqa: BLE001: a check that breaks has failed
        verdict, text = "FAILED", traceback.format_exc()
    return name, verdict, time.monotonic() - start, text


def main():
    wanted = sys.argv[1:] or list(CHECKS)
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        print(f"there is no check {', '.join(unknown)}; there are: {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    counts = {"ok": 0, "FAILED": 0, "SKIPPED": 0}
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        for name, verdict, seconds, text in pool.map(attempt, wanted):
            counts[verdict] += 1
            print(f"{verdict:7} {name} ({seconds:.1f} s)", flush=True)
            if text:
                print("        " + text.strip().replace("\n", "\n        "), flush=True)
    skipped = f", {counts['SKIPPED']} skipped" if counts["SKIPPED"] else ""
    print(f"deploy: {counts['ok']} passed, {counts['FAILED']} failed{skipped}")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
