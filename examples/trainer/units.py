"""Units: hops that are trained, checkpoints that are evaluated, rows that go through a model."""

import hashlib
import sys
import time
from collections import namedtuple
from pathlib import Path

import exact
import mlp
import numpy as np
from mlp import F32, Failed, Model, Trial, fields

ROWS_AT_ONCE = 1024  # of an evaluation
KEEPING_SHARE = 50  # keeping partial checkpoints takes at most one part in so many of the time


def read_blob(files, digest):
    """The bytes of a blob. A file in the client's cache may have been altered: the client then fetches it again."""
    if digest not in files:
        raise Failed("trainer", f"no file was given for blob `{digest}`")
    try:
        data = Path(files[digest]).read_bytes()
    except FileNotFoundError:
        data = b""
    if hashlib.sha256(data).hexdigest() != digest:
        raise Failed("damaged", f"the file of blob `{digest}` has been altered or deleted")
    return data


def scale(trial, x, files):
    """Rows as the model takes them, number by number in single precision."""
    x = x.astype(F32)
    kind, content = trial.scaling
    if kind == "constant":
        x *= F32(content)
    elif kind == "standard":
        tensors = exact.decode(read_blob(files, content["sha256"]))
        mean, std = exact.array_of(tensors["mean"]), exact.array_of(tensors["std"])
        with np.errstate(divide="ignore", invalid="ignore"):
            x = (x - mean) / std
        x[:, std == 0] = 0  # a feature that doesn't vary
    return x


def load(trial, shard, files):
    """The rows of a shard, scaled, and their labels: classes, or numbers in their own units."""
    tensors = exact.decode(read_blob(files, shard["blob"]["sha256"]))
    if set(tensors) != {"x", "y"}:
        raise Failed("trainer", "a shard must hold exactly `x` and `y`")
    x, y = tensors["x"], tensors["y"]
    if x.dtype not in ("F32", "U8") or x.shape != [shard["rows"], trial.features] or y.shape != x.shape[:1]:
        raise Failed("trainer", "the shard has other rows than the unit says")
    if y.dtype != {"cross-entropy": "I64", "mse": "F32"}[trial.loss]:
        raise Failed("trainer", f"`{trial.loss}` takes other labels")
    y = exact.array_of(y)
    if trial.loss == "cross-entropy" and not 0 <= y.min() <= y.max() < trial.outputs:
        raise Failed("trainer", "the shard has a class that the model has no output for")
    return scale(trial, exact.array_of(x), files), y


def scaled_labels(trial, y):
    """Labels as they are trained on."""
    if (scaling := trial.label_scaling) is None:
        return y
    return ((y.astype(np.float64) - scaling["mean"]) / scaling["std"]).astype(F32)


def in_own_units(trial, outputs):
    """Outputs in the labels' own units."""
    if (scaling := trial.label_scaling) is None:
        return outputs
    return (outputs.astype(np.float64) * scaling["std"] + scaling["mean"]).astype(F32)


# The part of a unit that one shard has: its batches from `start` to before `end`.
Segment = namedtuple("Segment", "start end shard seed")


def position_at(segment, batch):
    trained = batch - segment.start["batch"]
    return {**segment.start, "batch": batch, "step": segment.start["step"] + trained}


def segments_of(hop, trial, until):
    """The shards of a hop batch in their order. Only the last may be told to end early."""
    visits = [(hop["shard"], hop["seed"], hop["start"])]
    for later in hop.get("then", []):
        fields(later, "a further hop", "shard_id shard seed")
        visits.append((later["shard"], later["seed"], {**hop["start"], "shard": later["shard_id"], "batch": 0}))
    segments, step = [], hop["start"]["step"]
    for shard, seed, start in visits:
        end = exact.batches(shard["rows"], trial.batch_size) * trial.passes
        if len(segments) + 1 == len(visits):
            end = min([end, *(limit for limit in (hop.get("until"), until) if limit is not None)])
        if start["batch"] >= end:
            raise Failed("trainer", f"the unit starts at batch {start['batch']} of {end}")
        segments.append(Segment({**start, "step": step}, end, shard, seed))
        step += end - start["batch"]
    return segments


def base_model(trial, base, files):
    """The model that a unit starts from. Version 0 is stored nowhere."""
    if "initial" in base:
        seed = base["initial"]["seed"]
        return Model(trial, trial.first_checkpoint(seed, dict(trial.first_weights(seed))))
    if "given" in base:
        given = base["given"]
        weights = exact.decode(read_blob(files, given["parameters"]["sha256"]))
        return Model(trial, trial.first_checkpoint(given["seed"], weights))
    if "checkpoint" in base:
        return Model(trial, exact.decode(read_blob(files, base["checkpoint"]["blob"]["sha256"])))
    raise Failed("unsupported", f"this trainer doesn't know the base `{next(iter(base), None)}`")


def check_base(hop, lineage):
    """Is the base where the unit starts? Training from another would be refused only at the end."""
    seed, trial, epoch, shard, batch, step = lineage
    start = hop["start"]
    if step != start["step"]:
        raise Failed("trainer", f"the base checkpoint is at step {step}, the unit starts at {start['step']}")
    if "checkpoint" not in hop["base"]:
        return
    if trial != hop["trial"]:
        raise Failed("trainer", f"the base is a checkpoint of trial {trial}, expected trial {hop['trial']}")
    goes_on = lineage == exact.lineage_numbers(hop["seed"], hop["trial"], start)
    # After a partial checkpoint, other shards of the epoch may have come before the rest.
    is_between = epoch == start["epoch"] and shard != start["shard"]
    if start["batch"] > 0 and not goes_on and not is_between:
        raise Failed("trainer", "the base isn't the part of the hop that the unit goes on with")


class Training:
    """A hop batch that is trained: one base, one result."""

    def __init__(self, run, listener):
        self.run, self.listener, self.files = run, listener, dict(run["files"])
        self.hop = fields(run["unit"]["train"], "the hop", "job trial base start shard seed context", "then until")
        self.trial = Trial(self.hop["context"])
        self.segments = segments_of(self.hop, self.trial, run.get("until"))
        self.of = sum(segment.end - segment.start["batch"] for segment in self.segments)
        self.done, self.is_stopped = 0, False
        self.sums = {"rows": 0, "loss": 0.0}
        if self.trial.loss == "cross-entropy":
            self.sums["correct"] = 0

    def result(self):
        rows = load(self.trial, self.segments[0].shard, self.files)
        self.model = base_model(self.trial, self.hop["base"], self.files)
        check_base(self.hop, self.model.lineage)
        self.started = self.kept_at = time.monotonic()
        self.keep_after = self.run.get("keep_every", 0) / 1000
        for n, segment in enumerate(self.segments):
            if n > 0:
                rows = self.further_rows(segment.shard)
                if rows is None:
                    break  # the hops before it are a result
            ended = self.train(segment, *rows)
            if self.is_stopped:
                break
        return self.save(*ended, self.run["output"])

    def further_rows(self, shard):
        """The rows of a later shard; none where the unit is to end before it. It may still be on its way."""
        waited, digest = time.monotonic(), shard["blob"]["sha256"]
        if digest in self.run.get("coming", []) and digest not in self.files:
            path = self.listener.file(digest)
            self.started += time.monotonic() - waited
            if path is None:
                return None
            self.files[digest] = path
        try:
            return load(self.trial, shard, self.files)
        except Failed as failure:
            # The next unit begins with this shard, and reports it.
            print(f"the hop over the next shard can't begin: {failure}", file=sys.stderr)
            return None

    def order(self, seed, y):
        """The rows of one pass over a shard, in their order."""
        return np.array(exact.balanced_rows(seed, y) if self.trial.is_balanced else exact.row_order(seed, len(y)))

    def train(self, segment, x, y):
        """Trains on a shard; gives the segment and the batch before which it ended.

        Batch b depends on the model, the hop's seed and b alone. So a hop gives the same bytes wherever it is cut in two,
        and a hop batch those of its hops one by one.
        """
        trial, model = self.trial, self.model
        of_pass, in_pass, order = exact.batches(len(y), trial.batch_size), None, None
        targets = scaled_labels(trial, y)
        unit = trial.label_scaling["std"] ** 2 if trial.label_scaling else 1.0
        for batch in range(segment.start["batch"], segment.end):
            # A trainer with dropout or augmentation seeds everything random here, with this:
            # exact.batch_seed(segment.seed, batch)
            number, first = divmod(batch, of_pass)
            if number != in_pass:
                in_pass, order = number, self.order(exact.pass_seed(segment.seed, number), y)
            rows = order[first * trial.batch_size : (first + 1) * trial.batch_size]
            outputs, inputs = model.forward(x[rows])
            loss, slope = mlp.mean_loss(trial, outputs, targets[rows])
            step = position_at(segment, batch)["step"]
            if not np.isfinite(loss):
                raise Failed("non-finite", f"the loss of step {step} (batch {batch} of the shard) is {loss}")
            model.backward(inputs, slope)
            factor = mlp.schedule_factor(trial.schedule, step, trial.total_steps)
            mlp.update(trial.optimizer, trial.clip_norm, model.weights, model.gradient, model.state, step + 1, factor)

            self.sums["rows"] += len(rows)
            self.sums["loss"] += loss * len(rows) * unit
            if "correct" in self.sums:
                self.sums["correct"] += int((outputs.argmax(axis=1) == y[rows]).sum())
            self.done += 1
            self.keep_part(segment, batch + 1)
            self.started += self.listener.progress(self.done, self.of)
            if self.listener.is_stopped():
                self.is_stopped = True
                break
        model.check_finite()
        return segment, batch + 1

    def keep_part(self, segment, batch):
        """Now and then a partial checkpoint is written: all that a killed client loses is what came after it."""
        began = time.monotonic()
        if "keep_every" not in self.run or self.done == self.of or began - self.kept_at < self.keep_after:
            return
        self.model.check_finite()
        step = position_at(segment, batch)["step"]
        try:
            part = self.save(segment, batch, Path(self.run["output"]).with_suffix(f".{step}.part"))
            self.listener.tell({"kept": part})
        except OSError as error:
            self.listener.tell({"not_kept": str(error)})
        self.kept_at = time.monotonic()
        self.keep_after = max(self.run["keep_every"] / 1000, KEEPING_SHARE * (self.kept_at - began))

    def save(self, segment, batch, path):
        micros = int((time.monotonic() - self.started) * 1e6)
        end = position_at(segment, batch)
        checkpoint = exact.write_file(path, self.model.file(segment.seed, end, self.hop["trial"]))
        base = self.hop["base"].get("checkpoint", {}).get("version", 0)
        return {"base": base, "checkpoint": checkpoint, "end": end, "sums": dict(self.sums), "train_micros": micros}


def evaluate(run, listener):
    """Sums over the rows of each shard. Evaluations count all rows alike, and in the labels' own units."""
    required, optional = "job trial epoch version checkpoint shards context", "split counting"
    unit = fields(run["unit"]["evaluate"], "the evaluation", required, optional)
    trial = Trial(unit["context"])
    counting = fields(unit.get("counting", {}), "what is counted", "", "top_k by_class")
    model = Model(trial, exact.decode(read_blob(run["files"], unit["checkpoint"]["sha256"])))
    if model.lineage[1] != unit["trial"]:
        raise Failed("trainer", f"a checkpoint of trial {model.lineage[1]}, expected trial {unit['trial']}")
    counts = [exact.batches(shard["rows"], trial.batch_size) for shard in unit["shards"]]
    started, shards, confusion = time.monotonic(), [], np.zeros((trial.outputs, trial.outputs), np.int64)
    for n, shard in enumerate(unit["shards"]):
        x, y = load(trial, shard, run["files"])
        sums = {"rows": len(y), "loss": 0.0}
        if trial.loss == "cross-entropy":
            sums.update({"correct": 0}, **({"top_k": 0} if counting.get("top_k") else {}))
        for at in range(0, len(y), ROWS_AT_ONCE):
            labels = y[at : at + ROWS_AT_ONCE]
            outputs = in_own_units(trial, model.forward(x[at : at + ROWS_AT_ONCE])[0])
            sums["loss"] += float(mlp.row_losses(trial.loss, outputs, labels)[0].sum(dtype=np.float64))
            if "correct" in sums:
                predicted = outputs.argmax(axis=1)  # the first of equal ones
                sums["correct"] += int((predicted == labels).sum())
                np.add.at(confusion, (labels, predicted), 1)
            if "top_k" in sums:
                # Stable: of equal outputs the first class comes first.
                ranked = np.argsort(-outputs, axis=1, kind="stable")[:, : counting["top_k"]]
                sums["top_k"] += int((ranked == labels[:, None]).any(axis=1).sum())
            done = counts[n] if at + ROWS_AT_ONCE >= len(y) else (at + ROWS_AT_ONCE) // trial.batch_size
            started += listener.progress(sum(counts[:n]) + done, sum(counts))
        if not np.isfinite(sums["loss"]):
            raise Failed("non-finite", f"the loss of the evaluation is {sums['loss']}")
        shards.append(sums)
    answer = {"version": unit["version"], "shards": shards, "train_micros": int((time.monotonic() - started) * 1e6)}
    if counting.get("by_class") == "confusion":
        answer["by_class"] = {"confusion": confusion.tolist()}
    elif counting.get("by_class") == "totals":
        totals = {"labelled": confusion.sum(axis=1), "predicted": confusion.sum(axis=0), "correct": confusion.diagonal()}
        answer["by_class"] = {"totals": {word: numbers.tolist() for word, numbers in totals.items()}}
    return answer


def predict(request):
    """Puts rows of a file through a model, and writes its outputs into another."""
    fields(request, "the prediction", "context checkpoint files rows output")
    trial = Trial(request["context"])
    model = Model(trial, exact.decode(read_blob(request["files"], request["checkpoint"])))
    rows = exact.decode(Path(request["rows"]).read_bytes())
    if set(rows) != {"x"} or rows["x"].dtype != "F32" or rows["x"].shape[1:] != [trial.features]:
        raise Failed("trainer", f"rows must be `x` alone, F32 of shape [rows, {trial.features}]")
    x = scale(trial, exact.array_of(rows["x"]), request["files"])
    outputs = np.zeros((len(x), trial.outputs), F32)
    for at in range(0, len(x), ROWS_AT_ONCE):
        outputs[at : at + ROWS_AT_ONCE] = in_own_units(trial, model.forward(x[at : at + ROWS_AT_ONCE])[0])
    exact.write_file(request["output"], exact.encode({"outputs": exact.tensor_of(outputs)}))
    return {"rows": len(x)}
