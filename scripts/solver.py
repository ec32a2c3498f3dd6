#!/usr/bin/env python3
"""Makes the Python environment in which `examples/scripts/gang_study.py` has HiGHS, and links it into a checkout.

As `python.py` does for the tests: once for all checkouts, in the user's cache folder.
"""

import sys

sys.dont_write_bytecode = True  # a checkout stays as it is
from libtorch import prepare  # noqa: E402
from python import environment  # noqa: E402

REQUIREMENTS = ["highspy>=1.16,<2", "numpy>=1.26,<3"]
RECIPE = f"{' '.join(REQUIREMENTS)} recipe 1\n"  # another text makes every user's copy anew


def install(cache):
    return environment(cache / "solver-1", REQUIREMENTS, RECIPE, "mixed-integer programs (highspy, numpy)")


if __name__ == "__main__":
    prepare("makes the Python environment of mixed-integer programs", "solver", install)
