"""Records learning curves for the surrogates of the study: trains random configurations of a space, none stopped, and writes each
one's values and its validation loss after each epoch. Above them stand the widths of the surrogate's kernel, as a share of each
setting's range, at which held-out curves are met best (server/sim/src/fleet/surrogate/ has the surrogate).

    python3 examples/search/study/curves.py digits --trials 240 > examples/search/study/digits.csv
    python3 examples/search/study/curves.py mnist --trials 160 --images FOLDER > examples/search/study/mnist.csv

It submits to the server that `sojourn` finds, where clients work. SOJOURN names another program than `sojourn`. For MNIST the
folder has t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz, of which the first 2,500 images are taken.
"""

import argparse
import csv
import gzip
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
IMAGES = 2500
# The widths from which the best are sought, and the factors by which they change.
START = 0.3
STEPS = (2, 1.4)
# Of an IDX file: a magic number, the number of rows, and the sizes of a row.
HEADERS = {"images-idx3-ubyte": 16, "labels-idx1-ubyte": 8}


def sojourn(*arguments):
    """What the command prints as JSON."""
    command = [os.environ.get("SOJOURN", "sojourn"), *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def first_images(folder, into):
    """The first images and labels of MNIST's test files."""
    for name, header in HEADERS.items():
        data = gzip.decompress((folder / f"t10k-{name}.gz").read_bytes())
        rows = int.from_bytes(data[4:8], "big")
        size = (len(data) - header) // rows
        head = data[:4] + IMAGES.to_bytes(4, "big") + data[8:header]
        (into / name).write_bytes(head + data[header : header + IMAGES * size])


def searched(space, trials, images):
    """The trials of a finished search."""
    text = (FOLDER / f"{space}.toml").read_text().replace('method = "grid"', f'method = "random"\ntrials = {trials}')
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if images:
            first_images(images, folder)
        text = text.replace("../../digits/digits.csv", str(FOLDER.parent.parent / "digits" / "digits.csv"))
        (folder / "job.toml").write_text(text)
        job = str(sojourn("submit", str(folder / "job.toml"), "--again", "--wait")["job"])
    return sorted(sojourn("trials", job), key=lambda trial: trial["trial"])


def short(value):
    """A value as JSON, numbers with five digits."""
    return f"{value:.5g}" if isinstance(value, float) else json.dumps(value)


def shares(values):
    """A setting's values as shares of its range, by logarithms where the median is then nearer to the middle."""
    if not all(isinstance(value, (int, float)) for value in values):
        return [json.dumps(value) for value in values]

    def scaled(values):
        least, most = min(values), max(values)
        return [(value - least) / (most - least) for value in values]

    def off_middle(scaled):
        return abs(sorted(scaled)[len(scaled) // 2] - 0.5)

    linear = scaled(values)
    logarithmic = scaled([math.log(value) for value in values]) if min(values) > 0 else linear
    return logarithmic if off_middle(logarithmic) < off_middle(linear) else linear


def error(places, curves, widths):
    """The sum of squared errors of held-out curves, of logarithms of losses after epochs that are powers of 3."""

    def distance(a, b):
        apart = (float(x != y) if isinstance(x, str) else x - y for x, y in zip(a, b))
        return sum((along / width) ** 2 for along, width in zip(apart, widths))

    total = 0
    for n, (place, curve) in enumerate(zip(places, curves)):
        near = [(distance(place, other), other_curve) for m, (other, other_curve) in enumerate(zip(places, curves)) if m != n]
        least = min(near, key=lambda of: of[0])[0]
        weighted = [(math.exp((least - far) / 2), other) for far, other in near]
        weights = sum(weight for weight, _ in weighted)
        for epoch, log in enumerate(curve):
            total += (sum(weight * other[epoch] for weight, other in weighted) / weights - log) ** 2
    return total


def best_widths(settings, losses):
    """Widths for these columns of settings, found one after the other in steps."""
    places = list(zip(*map(shares, settings)))
    curves = [[math.log(curve[epoch - 1]) for epoch in (1, 3, 9, 27)] for curve in losses]
    widths = [START for _ in settings]
    least = error(places, curves, widths)
    for step in STEPS:
        for axis in range(len(widths)):
            for factor in (step, 1 / step):
                tried = [width * (factor if n == axis else 1) for n, width in enumerate(widths)]
                while (of_tried := error(places, curves, tried)) < least:
                    least, widths = of_tried, tried
                    tried = [width * (factor if n == axis else 1) for n, width in enumerate(widths)]
    return widths


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("space", choices=["digits", "mnist"])
    parser.add_argument("--trials", type=int, default=240)
    parser.add_argument("--images", type=Path, help="the folder of MNIST's files")
    arguments = parser.parse_args()
    trials = searched(arguments.space, arguments.trials, arguments.images)
    keys = sorted(trials[0]["choices"])
    settings = [[trial["choices"][key] for trial in trials] for key in keys]
    losses = [[point["valid"]["loss"] / point["valid"]["rows"] for point in trial["curve"]] for trial in trials]
    write(keys, settings, losses)


def write(keys, settings, losses):
    epochs = range(1, len(losses[0]) + 1)
    table = csv.writer(sys.stdout, lineterminator="\n")
    # The only `[[model]]` table is the trial's model.
    table.writerow([*(key.replace("model[0]", "model") for key in keys), *epochs])
    table.writerow([*map(short, best_widths(settings, losses)), *("" for _ in epochs)])
    for values, curve in zip(zip(*settings), losses, strict=True):
        table.writerow([*map(short, values), *(f"{loss:.4g}" for loss in curve)])


if __name__ == "__main__":
    main()
