#!/usr/bin/env python3
"""Makes the Python environment of the tests, in which they run `examples/predict.py`, searches from Python, the examples of `examples/search`,
readers of exported tables, generators and checkers of the API's document, and stand-ins for S3 and EC2, and links it into a checkout.

It lies in the user's cache folder, once for all checkouts; the system's Python stays as it is. A stamp,
written last, says that it is whole; a lock keeps two runs apart.
"""

import shutil
import sys

sys.dont_write_bytecode = True  # a checkout stays as it is
from libtorch import prepare, run, say  # noqa: E402

REQUIREMENTS = [
    "anywidget>=0.9,<1",  # shows the live board of a job; brings IPython, which runs the cells of the example notebook
    "axe-playwright-python>=0.1.4,<1",  # finds what a screen reader or a keyboard can't use
    "check-jsonschema>=0.29,<1",  # has the schema of compose files
    "mlflow>=3.5,<4",  # a tracking server, to which jobs are pushed
    "moto[s3,server]>=5.2,<6",
    "mypy>=2.4,<3",  # checks the types of the package `sojourn`
    "numpy>=1.26,<3",
    "openapi-python-client>=0.29,<0.30",  # makes a client of the document that describes the API
    "optuna>=4.2,<6",  # drives a search from outside
    "pandas>=2.2,<4",  # reads exported tables, and tables beside our own reader
    "playwright>=1.50,<2",  # drives the system's Chromium over the web page
    "polars>=1,<2",  # reads tables beside our own reader
    "pyarrow>=17",  # reads Parquet for pandas
    "safetensors>=0.4,<1",
    "scikit-learn>=1.6,<2",  # takes a search for an estimator of its own
    "schemathesis>=4.32,<5",  # tries a running server against that document
    "tensorboard>=2.18,<3",  # reads exported event files
]
RECIPE = f"{' '.join(REQUIREMENTS)} recipe 10\n"  # another text makes every user's copy anew


def is_whole(folder, recipe):
    stamp = folder / "stamp"
    # The interpreter is a link to the system's, which may have gone since.
    known = stamp.is_file() and stamp.read_text(encoding="utf-8") == recipe
    return known and (folder / "bin" / "python").is_file()


def environment(folder, requirements, recipe, purpose):
    """Makes the environment in this folder, if it isn't there."""
    if is_whole(folder, recipe):
        return folder
    say(f"making a Python environment for {purpose}")
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(folder)])
    options = ["--quiet", "--only-binary=:all:", "--disable-pip-version-check", "--no-cache-dir"]
    run([str(folder / "bin" / "python"), "-m", "pip", "install", *options, *requirements])
    (folder / "stamp").write_text(recipe, encoding="utf-8")
    return folder


def install(cache):
    return environment(cache / "python-9", REQUIREMENTS, RECIPE, "the tests (mlflow, moto, numpy, optuna, pandas, tensorboard and others)")


if __name__ == "__main__":
    if prepare("makes the Python environment of the tests", "python", install):
        say("this checkout is ready: `cargo test`")
