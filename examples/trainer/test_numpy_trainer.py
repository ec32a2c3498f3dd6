"""The numpy trainer against the vectors of `protocol/vectors`, and against itself over its lines.

python3 -m unittest discover examples/trainer
"""

import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from types import SimpleNamespace

import exact
import mlp
import numpy as np
import units

HERE = Path(__file__).resolve().parent
VECTORS = HERE.parent.parent / "protocol" / "vectors"


def vectors(name):
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def numbers(text):
    """Numbers of single precision."""
    return np.frombuffer(bytes.fromhex(text), "<f4")


class Exact(unittest.TestCase):
    """What may not differ in a bit."""

    def test_seeds(self):
        known = vectors("seeds.json")
        for case in known["derive"]:
            self.assertEqual(exact.derive(case["domain"], *case["parts"]), case["seed"])
        for case in known["batch"]:
            self.assertEqual(exact.batch_seed(case["hop_seed"], case["batch"]), case["seed"])
        for case in known["hop"]:
            parts = [case[part] for part in ("job_seed", "trial", "epoch", "shard")]
            self.assertEqual(exact.derive("hop", *parts), case["seed"])
        for case in known["initial_weights"]:
            self.assertEqual(exact.derive("initial-weights", case["job_seed"], case["trial"]), case["seed"])
        for case in known["streams"]:
            words = exact.words_of(exact.derive(case["domain"], *case["parts"]))
            self.assertEqual([next(words) for _ in case["words"]], case["words"])
        for case in known["below"]:
            words = exact.words_of(exact.derive(case["domain"], *case["parts"]))
            self.assertEqual([exact.below(words, case["bound"]) for _ in case["draws"]], case["draws"])

    def test_orders_of_rows(self):
        known = vectors("row-orders.json")
        for case in known["row_order"]:
            self.assertEqual(exact.row_order(case["hop_seed"], case["rows"]), case["order"])
        for case in known["long_row_order"]:
            order = np.array(exact.row_order(case["hop_seed"], case["rows"]), "<u4")
            self.assertEqual(hashlib.sha256(order.tobytes()).hexdigest(), case["sha256"])
        for case in known["balanced_rows"]:
            self.assertEqual(exact.balanced_rows(case["hop_seed"], case["labels"]), case["rows"])
        for case in known["passes"]:
            self.assertEqual(exact.pass_seed(case["hop_seed"], case["pass"]), case["seed"])
        for case in known["batches"]:
            self.assertEqual(exact.batches(case["rows"], case["batch_size"]), case["batches"])

    def test_first_weights(self):
        known = vectors("initial-weights.json")
        made = 0
        for case in known["checkpoints"]:
            if case["context"]["config"]["model"]["arch"] != "mlp":
                continue  # of models that this trainer doesn't know
            trial = mlp.Trial(case["context"])
            first = trial.first_checkpoint(case["seed"], dict(trial.first_weights(case["seed"])))
            self.assertEqual({name: tensor.data.hex() for name, tensor in first.items()}, case["tensors"])
            self.assertEqual(hashlib.sha256(exact.encode(first)).hexdigest(), case["sha256"])
            made += 1
        self.assertEqual(made, 2)
        for case in known["starts"]:
            if isinstance(case["start"], dict) and "fan_in" in case["start"]:
                values = exact.uniform_weights(case["seed"], case["index"], case["shape"], case["start"]["fan_in"])
                self.assertEqual(values.tobytes().hex(), case["values"])

    def test_lineages(self):
        for case in vectors("lineages.json")["lineages"]:
            found = exact.lineage_numbers(case["hop_seed"], case["trial"], case["position"])
            self.assertEqual(found, case["numbers"])
            self.assertEqual(np.array(found, "<i8").tobytes().hex(), case["data"])

    def test_files(self):
        shards = vectors("shards.json")
        for case in [*vectors("safetensors.json")["files"], *shards["shards"], shards["scaling"]]:
            given = {
                tensor["name"]: exact.Tensor(tensor["dtype"], tensor["shape"], bytes.fromhex(tensor["data"]))
                for tensor in case["tensors"]
            }
            self.assertEqual(exact.encode(given).hex(), case["file"])
            self.assertEqual(exact.decode(bytes.fromhex(case["file"])), given)
        for case in vectors("safetensors.json")["refused"]:
            with self.assertRaises(exact.NotCanonical, msg=case["why"]):
                exact.decode(bytes.fromhex(case["file"]))
        for end in range(80):
            with self.assertRaises(exact.NotCanonical):
                exact.decode(bytes.fromhex(shards["scaling"]["file"])[:end])

    def test_checkpoints(self):
        for case in vectors("checkpoints.json")["layouts"]:
            trial = mlp.Trial(case["context"])
            first = trial.first_checkpoint(1, dict(trial.first_weights(1)))
            header = exact.header_of(first)
            self.assertEqual(header.hex(), case["header"], case["optimizer"])
            self.assertEqual(len(exact.encode(first)), case["bytes"])
            self.assertEqual([name for name, _ in trial.parameters()], case["parameters"])
            self.assertEqual(sorted(first), [name for name, *_ in case["tensors"]])
            model = mlp.Model(trial, first)
            position = {"epoch": 0, "shard": 0, "batch": 0, "step": 0}
            self.assertEqual(model.file(1, position, 0), exact.encode(first))


class Rounded(unittest.TestCase):
    """What is right within rounding."""

    def test_schedules(self):
        for case in vectors("schedules.json")["schedules"]:
            for step, factor in case["factors"]:
                found = mlp.schedule_factor(case["schedule"], step, case["total_steps"])
                self.assertAlmostEqual(found, factor, delta=1e-12, msg=str((case["schedule"], step)))

    def test_optimizers(self):
        known = vectors("optimizers.json")
        for case in known["cases"]:
            weights = numbers(case["weights"]).copy()
            state = [np.zeros_like(weights) for _ in case["steps"][0]["state"]]
            for step in case["steps"]:
                gradient = numbers(step["gradient"]).copy()
                mlp.update(case["optimizer"], case["clip_norm"], weights, gradient, state, step["step"], step["factor"])
                for found, expected in zip([weights, *state], [step["weights"], *step["state"]]):
                    expected = numbers(expected)
                    limit = known["tolerance"] * np.abs(expected).max()
                    self.assertLessEqual(np.abs(found - expected).max(), limit, (case["optimizer"], step["step"]))
                # Rounding doesn't add up from step to step.
                weights[:], state[:] = numbers(step["weights"]), [numbers(slot).copy() for slot in step["state"]]

    def test_gradients_are_slopes_of_the_loss(self):
        for loss, targets in [("cross-entropy", "plain"), ("cross-entropy", {"weighted": [1.0, 2.5, 0.5]}), ("mse", "plain")]:
            outputs = 3 if loss == "cross-entropy" else 1
            trial = mlp.Trial({**context(hidden=[6, 5], loss=loss, outputs=outputs), "targets": targets})
            model = mlp.Model(trial, trial.first_checkpoint(3, dict(trial.first_weights(3))))
            chance = np.random.default_rng(1)
            x = chance.normal(size=(7, 4)).astype(np.float32)
            y = chance.integers(0, 3, 7) if loss == "cross-entropy" else chance.normal(size=7).astype(np.float32)
            out, inputs = model.forward(x)
            model.backward(inputs, mlp.mean_loss(trial, out, y)[1])
            found = model.gradient.copy()
            model.weights = model.weights.astype(np.float64)  # so that small differences show
            for at in range(0, len(found), 5):
                sides = []
                for shift in (1e-6, -2e-6):
                    model.weights[at] += shift
                    sides.append(mlp.mean_loss(trial, model.forward(x.astype(np.float64))[0], y)[0])
                model.weights[at] += 1e-6
                self.assertAlmostEqual(found[at], (sides[0] - sides[1]) / 2e-6, delta=1e-4)


def context(hidden=(8,), loss="cross-entropy", outputs=2, batch_size=8, **training):
    """A trial over rows of four numbers."""
    optimizer = {"name": "adam", "lr": 0.01, "momentum": 0.0, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01}
    schedule = {"name": "cosine", "warmup": 3, "every": 1, "gamma": 1.0, "floor": 0.1}
    basic = {"epochs": 2, "batch_size": batch_size, "loss": loss, "optimizer": optimizer, "schedule": schedule, "clip_norm": 1.0}
    config = {"model": {"arch": "mlp", "hidden": list(hidden)}, "training": {**basic, **training}}
    return {"config": config, "shape": [4], "outputs": outputs, "scaling": "none", "total_steps": 40, "pinned_threads": None}


class Trainer:
    """The program as the client sees it; `program` starts another one."""

    def __init__(self, program=(sys.executable, str(HERE / "numpy_trainer.py"))):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*program, "--threads", "1"], stdin=pipe, stdout=pipe, text=True)
        # A trainer that says nothing would keep the test for ever.
        self.watchdog = threading.Timer(120, self.process.kill)
        self.watchdog.start()
        self.told = []
        self.hello = self.line()["hello"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.watchdog.cancel()

    def send(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def line(self):
        return json.loads(self.process.stdout.readline())

    def answer(self, request, said=lambda update: None):
        """The answer to a request; `said` hears the updates before it."""
        self.send(request)
        self.told = []
        while "told" in (line := self.line()):
            self.told.append(line["told"])
            said(line["told"])
        return line


class Lines(unittest.TestCase):
    """Conversations: a hop of 61 rows in eight batches, and another of 20 rows in three."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.files = Path(folder.name), {}
        chance, self.shards = np.random.default_rng(5), []
        for rows in (61, 20):
            y = chance.integers(0, 2, rows)
            x = (chance.normal(size=(rows, 4)) + y[:, None]).astype(np.float32)
            self.shards.append({"blob": self.put({"x": exact.tensor_of(x), "y": exact.tensor_of(y)}), "rows": rows})

    def put(self, tensors):
        data = tensors if isinstance(tensors, bytes) else exact.encode(tensors)
        digest = hashlib.sha256(data).hexdigest()
        self.files[digest] = str(self.folder / digest)
        return exact.write_file(self.files[digest], data)

    def hop(self, **more):
        start = {"epoch": 0, "shard": 4, "batch": 0, "step": 0}
        unit = {"job": 1, "trial": 2, "base": {"initial": {"seed": 5}}, "start": start, "shard": self.shards[0], "seed": 77}
        return {**unit, "context": context(), **more}

    def run_of(self, unit, output="output", **more):
        files = {digest: path for digest, path in self.files.items() if digest not in more.get("coming", [])}
        return {"run": {"unit": unit, "files": files, "output": str(self.folder / output), **more}}

    def trained(self, trainer, hop, **more):
        line = trainer.answer(self.run_of({"train": hop}, **more))
        self.assertIn("trained", line)
        return line["trained"], (self.folder / "output").read_bytes()

    def rest(self, hop, trained, checkpoint):
        """The unit that goes on where a result ends."""
        self.put(checkpoint)
        return {**hop, "base": {"checkpoint": {"version": 3, "blob": trained["checkpoint"]}}, "start": trained["end"]}

    def test_hello(self):
        with Trainer() as one, Trainer() as two:
            self.assertEqual(one.hello["protocol"], 7)
            self.assertEqual(one.hello["engine"]["models"], ["mlp"])
            self.assertEqual(one.hello["numeric_class"], two.hello["numeric_class"])
            self.assertGreater(one.hello["flops"], 0)

    def test_a_hop_gives_the_same_bytes_wherever_it_is_cut(self):
        hop = self.hop()
        with Trainer() as one:
            whole, file = self.trained(one, hop)
            self.assertEqual(whole["end"], {"epoch": 0, "shard": 4, "batch": 8, "step": 8})
            self.assertEqual((whole["base"], whole["sums"]["rows"]), (0, 61))
            self.assertEqual(whole["checkpoint"], {"sha256": hashlib.sha256(file).hexdigest(), "bytes": len(file)})
            lineage = exact.array_of(exact.decode(file)["lineage"]).tolist()
            self.assertEqual(lineage, [77, 2, 0, 4, 8, 8])
            self.assertIn("peak", one.told[-1])
            example = next(line["trained"] for line in vectors("lines.json")["answers"] if "trained" in line)
            self.assertEqual(set(whole), set(example))
            self.assertEqual(set(whole["sums"]), set(example["sums"]))
            for until in (1, 5, 7):
                part, bytes_of_part = self.trained(one, hop, until=until)
                self.assertEqual(part["end"]["batch"], until)
                with Trainer() as two:
                    rest, end = self.trained(two, self.rest(hop, part, bytes_of_part))
                self.assertEqual(rest["base"], 3)
                self.assertEqual(end, file)
                self.assertEqual(rest["sums"]["rows"] + part["sums"]["rows"], 61)

    def test_passes_go_over_the_shard_in_other_orders_and_are_cut_anywhere(self):
        hop = self.hop(context=context(local_epochs=3))
        with Trainer() as trainer:
            whole, file = self.trained(trainer, hop)
            self.assertEqual((whole["end"]["batch"], whole["end"]["step"], whole["sums"]["rows"]), (24, 24, 183))
            for until in (5, 8, 13):
                part, bytes_of_part = self.trained(trainer, hop, until=until)
                self.assertEqual(self.trained(trainer, self.rest(hop, part, bytes_of_part))[1], file)
            one, parts = self.trained(trainer, self.hop())
            for number in (1, 2):
                start = {**one["end"], "batch": 0}
                again = {**self.rest(hop, one, parts), "start": start, "shard": self.shards[0], "context": context()}
                again = {**again, "seed": exact.pass_seed(77, number)}
                one, parts = self.trained(trainer, again)
            weights = lambda file: {name: of.data for name, of in exact.decode(file).items() if name != "lineage"}  # noqa: E731
            self.assertEqual(weights(parts), weights(file))

    def test_hops_in_a_batch_are_hops_one_by_one(self):
        first = self.hop()
        later = {"shard_id": 1, "shard": self.shards[1], "seed": 78}
        with Trainer() as trainer:
            one, file = self.trained(trainer, first)
            start = {**one["end"], "shard": 1, "batch": 0}
            second = {**self.rest(first, one, file), "start": start, "shard": self.shards[1], "seed": 78}
            two, end = self.trained(trainer, second)
            both, file = self.trained(trainer, {**first, "then": [later]})
            self.assertEqual((both["end"], file), (two["end"], end))
            self.assertEqual(both["end"], {"epoch": 0, "shard": 1, "batch": 3, "step": 11})
            self.assertEqual(both["sums"]["rows"], 81)
            # Only the last hop of a batch ends early.
            part, _ = self.trained(trainer, {**first, "then": [later], "until": 2})
            self.assertEqual(part["end"], {"epoch": 0, "shard": 1, "batch": 2, "step": 10})

    def test_a_shard_may_arrive_later_or_never(self):
        blob = self.shards[1]["blob"]["sha256"]
        hop = {**self.hop(), "then": [{"shard_id": 1, "shard": self.shards[1], "seed": 78}]}
        with Trainer() as trainer:
            _, file = self.trained(trainer, hop)
            arrived = {"here": {"blob": blob, "path": self.files[blob]}}
            request = self.run_of({"train": hop}, coming=[blob])
            line = trainer.answer(request, lambda update: trainer.send(arrived) if "waits" in update else None)
            self.assertIn({"waits": blob}, trainer.told)
            self.assertEqual((self.folder / "output").read_bytes(), file)
            line = trainer.answer(request, lambda update: trainer.send("stop") if "waits" in update else None)
            self.assertEqual(line["trained"]["end"], {"epoch": 0, "shard": 4, "batch": 8, "step": 8})

    def test_partial_checkpoints_are_kept_and_can_be_gone_on_from(self):
        hop = self.hop()
        with Trainer() as trainer:
            _, file = self.trained(trainer, hop, keep_every=0)
            kept = [update["kept"] for update in trainer.told if "kept" in update]
            self.assertTrue(kept)
            part = self.folder / f"output.{kept[0]['end']['step']}.part"
            with Trainer() as two:
                _, end = self.trained(two, self.rest(hop, kept[0], part.read_bytes()))
            self.assertEqual(end, file)

    def test_a_unit_stands_still_at_pace_0_and_stops_there(self):
        hop = self.hop()
        with Trainer() as trainer:
            trainer.send({"pace": 0})
            line = trainer.answer(self.run_of({"train": hop}), lambda update: trainer.send("stop"))
            self.assertEqual(trainer.told[0], {"progress": {"done": 1, "of": 8}})
            self.assertEqual(line["trained"]["end"]["batch"], 1)
            # The pace holds from unit to unit, the stop doesn't.
            line = trainer.answer(self.run_of({"train": hop}), lambda update: trainer.send({"pace": 50}))
            self.assertEqual(line["trained"]["end"]["batch"], 8)

    def test_evaluations_count_and_predictions_are_the_model_s(self):
        hop = self.hop()
        with Trainer() as trainer:
            trained, file = self.trained(trainer, hop)
            self.put(file)
            unit = {"job": 1, "trial": 2, "epoch": 0, "version": 4, "checkpoint": trained["checkpoint"], "shards": self.shards}
            unit |= {"context": context(), "counting": {"top_k": 2, "by_class": "confusion"}}
            found = trainer.answer(self.run_of({"evaluate": unit}))["evaluated"]
            self.assertEqual([sums["rows"] for sums in found["shards"]], [61, 20])
            self.assertEqual([sums["top_k"] for sums in found["shards"]], [61, 20])
            correct = sum(sums["correct"] for sums in found["shards"])
            confusion = np.array(found["by_class"]["confusion"])
            self.assertEqual((confusion.sum(), confusion.trace()), (81, correct))

            rows = exact.decode(Path(self.files[self.shards[0]["blob"]["sha256"]]).read_bytes())
            (self.folder / "rows").write_bytes(exact.encode({"x": rows["x"]}))
            request = {"context": context(), "checkpoint": trained["checkpoint"]["sha256"], "files": self.files}
            request |= {"rows": str(self.folder / "rows"), "output": str(self.folder / "predicted")}
            self.assertEqual(trainer.answer({"predict": request}), {"predicted": {"rows": 61}})
            outputs = exact.array_of(exact.decode((self.folder / "predicted").read_bytes())["outputs"])
            hits = (outputs.argmax(axis=1) == exact.array_of(rows["y"])).sum()
            self.assertEqual(hits, found["shards"][0]["correct"])

    def test_bytes_and_scaled_rows_are_trained_like_numbers(self):
        chance = np.random.default_rng(7)
        x, y = chance.integers(0, 256, (61, 4)).astype(np.uint8), chance.integers(0, 2, 61)
        mean, std = x.mean(axis=0).astype(np.float32), x.std(axis=0).astype(np.float32)
        scaling = self.put({"mean": exact.tensor_of(mean), "std": exact.tensor_of(std)})
        files = []
        with Trainer() as trainer:
            for rows in (x, x.astype(np.float32)):
                shard = {"blob": self.put({"x": exact.tensor_of(rows), "y": exact.tensor_of(y)}), "rows": 61}
                hop = self.hop(shard=shard, context={**context(), "scaling": {"standard": scaling}})
                files.append(self.trained(trainer, hop)[1])
        self.assertEqual(*files)

    def test_what_is_not_understood_is_refused_and_the_next_unit_is_done(self):
        other = context()
        model = {"arch": "cnn", "channels": [4]}
        cases = [
            ("unsupported", {"context": {**other, "config": {**other["config"], "model": model}}}),
            ("unsupported", {"context": {**other, "config": {**other["config"], "model": {"arch": "mlp", "hidden": [], "dropout": 0.1}}}}),
            ("unsupported", {"context": context(precision="bf16")}),
            ("unsupported", {"context": context(augment={"flip": True})}),
            ("unsupported", {"context": {**other, "scaling": {"robust": 1.0}}}),
            ("unsupported", {"something": "new"}),
            ("trainer", {"context": context(batch_size=0)}),
            ("trainer", {"start": {"epoch": 0, "shard": 4, "batch": 8, "step": 0}}),
            ("trainer", {"start": {"epoch": 0, "shard": 4, "batch": 1, "step": 1}}),
            ("damaged", {"shard": {"blob": self.put(b"other bytes"), "rows": 61}}),
            ("non-finite", {"context": context(optimizer={**other["config"]["training"]["optimizer"], "lr": 1e30})}),
        ]
        Path(self.files[cases[-2][1]["shard"]["blob"]["sha256"]]).write_bytes(b"altered")
        with Trainer() as trainer:
            for kind, more in cases:
                line = trainer.answer(self.run_of({"train": self.hop(**more)}))
                self.assertEqual(line.get("failed", {}).get("kind"), kind, (line, more))
            self.assertEqual(trainer.answer({"describe": {}})["failed"]["kind"], "trainer")
            self.assertEqual(trainer.answer({"run": {"unit": {"tune": {}}}})["failed"]["kind"], "unsupported")
            self.trained(trainer, self.hop())

    def test_the_end_of_stdin_ends_a_unit_that_stands_still(self):
        with Trainer() as trainer:
            trainer.send({"pace": 0})
            trainer.send(self.run_of({"train": self.hop()}))
            self.assertIn("told", trainer.line())
            trainer.process.stdin.close()
            self.assertIsNotNone(trainer.process.wait(timeout=30))


class Fields(unittest.TestCase):
    """The trainer takes every field of `lines.json`, and answers with no others."""

    def test_requests_are_understood(self):
        known = vectors("lines.json")
        run = known["requests"][0]["run"]
        training = units.Training(run, None)
        ends = [(segment.start["batch"], segment.end) for segment in training.segments]
        self.assertEqual((ends, training.of), ([(5, 8), (0, 1)], 4))
        self.assertTrue(training.trial.is_balanced)
        numbers = mlp.Trial(known["contexts"][1])
        self.assertEqual((numbers.loss, numbers.label_scaling["std"]), ("mse", 77.0))
        # No file is there: each is refused only when it looks for one.
        for base in known["bases"][1:]:
            with self.assertRaisesRegex(mlp.Failed, "no file was given"):
                units.base_model(training.trial, base, {})
        with self.assertRaisesRegex(mlp.Failed, "no file was given"):
            units.evaluate({**known["requests"][1]["run"], "files": {}}, None)
        with self.assertRaisesRegex(mlp.Failed, "no file was given"):
            units.predict({**known["requests"][2]["predict"], "files": {}})


class Segments(unittest.TestCase):
    def test_units_are_cut_as_the_protocol_says(self):
        shard = lambda rows: {"blob": {"sha256": "", "bytes": 0}, "rows": rows}  # noqa: E731
        start = {"epoch": 1, "shard": 4, "batch": 12, "step": 100}
        hop = {"start": start, "shard": shard(155), "seed": 1}
        hop["then"] = [{"shard_id": n, "shard": shard(rows), "seed": n} for n, rows in [(1, 160), (7, 70)]]
        trial = lambda batch_size, passes=1: SimpleNamespace(batch_size=batch_size, passes=passes)  # noqa: E731
        ends = lambda *limits: [(s.start["shard"], s.start["step"], s.end) for s in units.segments_of(*limits)]  # noqa: E731
        self.assertEqual(ends(hop, trial(8), None), [(4, 100, 20), (1, 108, 20), (7, 128, 9)])
        self.assertEqual(ends({**hop, "until": 5}, trial(8), 7)[-1], (7, 128, 5))
        self.assertEqual(list(itertools.islice(ends(hop, trial(8), 2), 3))[-1], (7, 128, 2))
        self.assertEqual(ends(hop, trial(8, 2), None), [(4, 100, 40), (1, 128, 40), (7, 168, 18)])


if __name__ == "__main__":
    unittest.main()
