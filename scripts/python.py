#!/usr/bin/env python3
"""Makes the Python environment in which tests run what README shows, and links it into a checkout.

It lies in the user's cache folder, once for all checkouts; the system's Python stays as it is. A stamp,
written last, says that it is whole; a lock keeps two runs apart.
"""

import shutil
import sys

sys.dont_write_bytecode = True  # a checkout stays as it is
from libtorch import prepare, run, say  # noqa: E402

REQUIREMENTS = ["numpy>=1.26,<3", "safetensors>=0.4,<1"]
RECIPE = f"{' '.join(REQUIREMENTS)} recipe 1\n"  # another text makes every user's copy anew


def is_whole(folder):
    stamp = folder / "stamp"
    # The interpreter is a link to the system's, which may have gone since.
    known = stamp.is_file() and stamp.read_text(encoding="utf-8") == RECIPE
    return known and (folder / "bin" / "python").is_file()


def install(cache):
    folder = cache / "python"
    if is_whole(folder):
        return folder
    say("making a Python environment for the tests (numpy, safetensors)")
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(folder)])
    options = ["--quiet", "--only-binary=:all:", "--disable-pip-version-check", "--no-cache-dir"]
    run([str(folder / "bin" / "python"), "-m", "pip", "install", *options, *REQUIREMENTS])
    (folder / "stamp").write_text(RECIPE, encoding="utf-8")
    return folder


if __name__ == "__main__":
    if prepare("makes the Python environment of the tests", "python", install):
        say("this checkout is ready: `cargo build`")
