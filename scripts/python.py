#!/usr/bin/env python3
"""Makes the Python environment in which tests run what README shows, and links it into a checkout.

It lies in the user's cache folder, once for all checkouts; the system's Python stays as it is. A stamp,
written last, says that it is whole; a lock keeps two runs apart.
"""

import argparse
import pathlib
import shutil
import sys

sys.dont_write_bytecode = True  # a checkout stays as it is
from libtorch import SetupError, cache_folder, link, locked, run, say  # noqa: E402

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


def main():
    parser = argparse.ArgumentParser(description="makes the Python environment of the tests")
    parser.add_argument("--checkout", type=pathlib.Path, required=True, help="the checkout to link")
    arguments = parser.parse_args()
    try:
        cache = cache_folder()
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / "setup.lock"):
            folder = install(cache)
        if link(arguments.checkout.resolve(), "python", folder):
            say("this checkout is ready: `cargo build`")
    except (SetupError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
