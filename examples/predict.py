"""Runs a model that `sojourn export` wrote over a data file, with numpy alone, and prints predictions as CSV.

    pip install numpy safetensors
    python3 predict.py best.safetensors new.csv > predictions.csv

It reads CSV (separated by `,`, `;`, tabs or `|`), IDX of bytes (names that end with `-ubyte`), NPY and NPZ, each also
packed by gzip (`.gz`), and knows the architectures `mlp` and `cnn`.
`docs/models.md` describes the file.
"""

import csv, gzip, io, json, sys
import numpy as np
from safetensors import safe_open


def read(model, path):
    """The rows of a data file, flat, one after the other."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as packed:
        file = io.BytesIO(packed.read())
    path = path.removesuffix(".gz")
    if path.endswith((".csv", ".tsv")):
        return read_table(model, io.TextIOWrapper(file, "utf-8-sig", newline=""))
    if path.endswith("-ubyte"):
        sides = file.read(4)[3]
        shape = np.frombuffer(file.read(4 * sides), ">u4")
        x = np.frombuffer(file.read(), np.uint8).reshape(shape)
    else:
        x = np.load(file)
        x = x if path.endswith(".npy") else x[model.get("array", "x")]
    in_order = x.shape[1:] == tuple(model["shape"])
    if model.get("channels") == "last" and x.ndim == 4 and not in_order:
        x = x.transpose(0, 3, 1, 2)
    return x.reshape(len(x), -1).astype(np.float32)


def read_table(model, file):
    """The rows of a CSV file, by the names of its columns."""
    header = file.readline()
    file.seek(0)
    lines = csv.DictReader(file, delimiter=max(",;\t|", key=header.count))
    names = model["features"] or [name for name in lines.fieldnames if name != model["label"]]
    columns = {column["first"]: column for column in model.get("categories", [])}
    # Of each feature, what a missing value is taken as.
    fill = model.get("fill") or [0.0 if model.get("missing") == "zero" else None] * len(names)

    def features(line, first):
        """The features of one column."""
        column = columns.get(first, {"column": names[first], "words": None, "coding": None})
        text, words = line[column["column"]].strip(), column["words"]
        width = len(words) if column["coding"] == "one_hot" else 1
        missing = text.lower() in ("", "na", "n/a", "nan", "null", "?")
        if missing and text not in (words or []) and fill[first] is not None:
            return fill[first : first + width]
        if not words:
            return [float(text)]
        place = words.index(text)
        one_hot = column["coding"] == "one_hot"
        return [float(place == word) for word in range(width)] if one_hot else [float(place)]

    def row(line):
        values = []
        while len(values) < len(names):
            values += features(line, len(values))
        return values

    return np.array([row(line) for line in lines], np.float32)


def load(path):
    """The description and the tensors of an exported model."""
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        return json.loads(file.metadata()["sojourn"]), tensors


def scale(model, tensors, x):
    """Features as the model was trained on them."""
    if model["scaling"] == "standard":
        return (x - tensors["scaling.mean"]) / tensors["scaling.std"]
    return x if model["scaling"] == "none" else x * model["scaling"]["constant"]


def convolution(x, weight, bias):
    """3x3 with a padding of 1; x is [rows, channels, height, width]."""
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.einsum("rchwij,ocij->rohw", windows, weight) + bias[:, None, None]


def pooling(x, reduce):
    """`reduce` over each window of 2x2."""
    height, width = x.shape[2] // 2, x.shape[3] // 2
    x = x[:, :, : 2 * height, : 2 * width]
    return reduce(x.reshape(*x.shape[:2], height, 2, width, 2), axis=(3, 5))


def batch_norm(x, tensors, name):
    """Normalises each channel by the running statistics."""

    def by_channel(part):
        return tensors[f"{name}.{part}"].reshape(-1, *[1] * (x.ndim - 2))

    x = (x - by_channel("running_mean")) / np.sqrt(by_channel("running_var") + 1e-5)
    return x * by_channel("weight") + by_channel("bias")


def outputs(model, tensors, x):
    """The last layer's outputs, one row for each row of x."""
    sizes, convolutions = model["architecture"], 0
    x = scale(model, tensors, x).reshape(-1, *model["shape"])
    last = sum(name.endswith(".weight") for name in tensors) - 1
    for layer in range(last + 1):
        weight = tensors[f"layers.{layer}.weight"]
        if weight.ndim == 1:
            x = batch_norm(x, tensors, f"layers.{layer}")
        else:
            bias = tensors.get(f"layers.{layer}.bias", np.zeros(len(weight), np.float32))
            is_image = weight.ndim == 4
            convolutions += is_image
            x = convolution(x, weight, bias) if is_image else x.reshape(len(x), -1) @ weight.T + bias
        if layer == last or f"layers.{layer + 1}.running_mean" in tensors:
            continue
        x = np.maximum(x, 0)
        pool = sizes.get("pool", "max")
        if is_image and pool != "none" and convolutions % sizes.get("pool_every", 1) == 0:
            x = pooling(x, np.max if pool == "max" else np.mean) if min(x.shape[2:]) >= 2 else x
    return x


def main():
    """Reads the two files that the command line names, and prints a line for each row."""
    model, tensors = load(sys.argv[1])
    if model["architecture"]["arch"] not in ("mlp", "cnn"):
        sys.exit("only the architectures mlp and cnn are known here")
    y = outputs(model, tensors, read(model, sys.argv[2]))
    if "label_scaling" in model:
        y = y.astype(np.float64) * model["label_scaling"]["std"] + model["label_scaling"]["mean"]
    table = csv.writer(sys.stdout, lineterminator="\n")
    if model["labels"] == "number":
        table.writerow(["row", "prediction"])
        table.writerows([row, *value] for row, value in enumerate(y, 1))
    else:
        classes = model["labels"]["classes"]
        table.writerow(["row", "prediction", *(f"p_{name}" for name in classes)])
        shares = np.exp(y - y.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        for row, share in enumerate(shares, 1):
            table.writerow([row, classes[share.argmax()], *share])


if __name__ == "__main__":
    main()
