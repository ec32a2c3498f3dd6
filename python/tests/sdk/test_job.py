"""Fifteen lines, and all that can be done with their job, over a local server."""

import importlib.util
import json
import unittest

from support import TABLE, Site

HAS_TORCH = importlib.util.find_spec("torch") is not None

FIFTEEN = (
    TABLE
    + """
search = sojourn.Search(
    sojourn.mlp(hidden=[16]), data=(X, y), valid=0.2, test=0.1,
    space={"lr": sojourn.log_uniform(1e-3, 1e-1), "batch_size": sojourn.choice(16, 32)},
    epochs=4, trials=4, method="random", metric="valid/accuracy")
job = search.run()
print(job.best.values, job.best.metrics)
classes = job.best.predict(X[:50])
"""
)

CALLS = """
import json, os
from sojourn.job import follow
status, best, trials = job.status, job.best, job.trials()
said = {
    "values": sorted(best.values), "metrics": sorted(best.metrics), "share": float((classes == y[:50]).mean()),
    "state": (status.state, status.has_ended, status.value == best.value == max(trial.value for trial in trials)),
    "trials": [(trial.phase, trial.epochs, len(trial.curve)) for trial in trials],
    "proba": best.predict_proba(X[:3]).shape, "classes": best.classes.tolist(),
    "curves": len(job.curves()), "metrics of curves": sorted({row.metric for row in job.curves()}),
    "kinds": sorted({event["kind"] for event in job.events()})[:3],
    "tested": job.evaluate()["metrics"]["rows"],
    "evaluated": job.evaluate(split="valid")["metrics"]["accuracy"] == best.metrics["valid/accuracy"],
    "replay": job.replay()["verdict"],
}
job.trial(1).export("model.safetensors", last=True)
job.export(csv="tables"), job.report("report.html")
said["files"] = sorted(os.listdir("tables")) + [name for name in ("model.safetensors", "report.html") if os.path.getsize(name)]
job.extend(epochs=6)
job.pause(), job.pause()
said["paused"] = job.status.state
try:
    job.delete()
except sojourn.Refused as refused:
    said["running"] = (refused.status, refused.kind)
job.widen({"lr": sojourn.log_uniform(1e-4, 0.5)}, why="a test")
clone = job.clone(0, values={"lr": 0.002})
job.prioritise(clone), job.set(note="a note", priority=3, budget=1.5, deadline=7200)
said["placed"] = {key: job.detail()["spec"]["placement"][key] for key in ("priority", "budget", "deadline")}
said["link"] = job.share(3600, label="for a test").startswith(f"{job.server.url}/share#")
job.stop(1, why="a test")
said["resumed"] = job.resume().state
said["waited"] = job.wait(timeout=200).state
after = job.trials()
said["after"] = [(trial.phase, trial.epochs) for trial in (after[0], after[clone])]
said["stopped"] = (after[1].phase, after[1].epochs < 6, after[1].reason.endswith("epochs: a test"))
job.revive(1)
said["revived"] = (job.wait().state, job.trials()[1].epochs)
said["lost"] = [(lost["trial"], lost["epochs"], lost["epochs_lost"]) for lost in job.rollback(0, 0, preview=True, reopen=True)]
said["note"] = job.status.raw["note"]
said["name"] = job.server.job("mlp").number == job.number
try:
    job.server.job(77)
except sojourn.Refused as refused:
    said["unknown"] = (refused.status, refused.kind, refused.message)
other = sojourn.Search(sojourn.mlp(hidden=[8]), data=(X, y), epochs=900, name="other").submit()
try:
    other.end(why="a test")
except sojourn.Refused as refused:
    said["ended"] = refused.message
said["cancelled"] = other.cancel().state
try:
    follow(other, progress=False, cancels=False)
except sojourn.JobFailed as failed:
    said["failed"] = (failed.job == other.number, failed.state)
said["deleted"] = other.delete()["jobs"][0]["job"] == other.number

import asyncio
async def later():
    states = [status.state async for status in job.aio.watch()]
    await job.aio.set(note="later")
    return states, (await job.aio.wait()).state, (await job.aio.events())[-1]["kind"], len(await job.aio.trials()), (await job.aio.best()).trial == job.best.trial
said["later"] = asyncio.run(later())
print("SAID", json.dumps(said))
"""

INTERRUPTED = (
    TABLE
    + """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # Python leaves it ignored where a shell's background job began it
search = sojourn.Search(sojourn.mlp(hidden=[16]), data=(X, y), epochs=900, name="long")
stderr, wanted = sys.stderr, INTERRUPTS
class Watching:
    'Interrupts the script once progress is shown, and again once it says that it leaves the job.'
    sent = 0
    def write(self, text):
        stderr.write(text)
        if self.sent < wanted and ("hops, best" in text and self.sent == 0 or "once more" in text):
            self.sent += 1
            signal.raise_signal(signal.SIGINT)
    def flush(self): stderr.flush()
    def isatty(self): return False
sys.stderr = Watching()
try:
    search.run(on_interrupt=FATE)
except KeyboardInterrupt:
    print("INTERRUPTED", sojourn.local().jobs()[0].status.state)
"""
)

OWN_MODEL = """
from sojourn.torch import Task, Batch
from torch import nn
import torch
from torch.nn import functional as F

TIMES = 2

class Net(Task):
    def setup(self, c, data):
        self.net = nn.Sequential(nn.Linear(8, c.width * TIMES), nn.ReLU(), nn.Linear(c.width * TIMES, data.classes))

    def loss(self, batch):
        return F.cross_entropy(self.net(batch.x), batch.y)

print("RUNS")
search = sojourn.Search(
    Net, data=(X, y), valid=0.2, space={"width": sojourn.choice(4, 8), "lr": sojourn.log_uniform(1e-3, 1e-1)},
    epochs=3, trials=3, method="random")
job = search.run()
net = job.best.model()
with torch.no_grad():
    outputs = net.predict(Batch(x=torch.tensor(X[:50]), y=None)).argmax(1).numpy()
print("SAME", (outputs == job.best.predict(X[:50])).all(), type(net) is Net, not net.training)
"""

REFUSED_MODEL = """
from sojourn.torch import Task

class Net(Task):
    def setup(self, c, data):
        pass

    def loss(self, batch):
        return batch.x.mean()

try:
    sojourn.Search(Net, data=(X, y), epochs=3).submit()
except sojourn.InvalidSearch as error:
    print("REFUSED", error)
"""


class Jobs(Site):
    maxDiff = None

    def test_fifteen_lines_and_every_call(self):
        said = json.loads(self.ran(FIFTEEN + CALLS).split("\nSAID ")[1].splitlines()[0])
        self.assertGreater(said.pop("share"), 0.6)
        sums = ["train/accuracy", "train/loss", "valid/accuracy", "valid/loss"]
        wanted = {
            "values": ["batch_size", "lr"],
            "metrics": sums,
            "state": ["finished", True, True],
            "trials": [["finished", 4, 4]] * 4,
            "proba": [3, 2],
            "classes": [0, 1],
            "curves": 4 * 4 * 4,
            "metrics of curves": sums,
            "kinds": ["assimilated", "evaluated", "extra-evaluated"],
            "tested": 60,
            "evaluated": True,
            "replay": "identical",
            "files": ["hops.csv", "metrics.csv", "trials.csv", "model.safetensors", "report.html"],
            "paused": "paused",
            "placed": {"priority": 3, "budget": 1_500_000, "deadline": 7_200_000},
            "link": True,
            "running": [409, "conflict"],
            "resumed": "running",
            "waited": "finished",
            "after": [["finished", 6]] * 2,
            "stopped": ["pruned", True, True],
            "revived": ["finished", 6],
            "lost": [[0, 0, 6]],
            "note": "a note",
            "name": True,
            "unknown": [404, "not-found", "no job 77"],
            "ended": "the search of job 2 tries no more combinations anyway",
            "cancelled": "cancelled",
            "failed": [True, "cancelled"],
            "deleted": True,
            "later": [["finished"], "finished", "job-noted", 5, True],
        }
        self.assertEqual(said, wanted)

    def test_the_first_interrupt_leaves_the_job_and_the_second_ends_it(self):
        for interrupts, fate, state, words in (
            (1, "leave", "running", "goes on while"),
            (2, "leave", "cancelled", "is cancelled"),
        ):
            text = f"INTERRUPTS, FATE = {interrupts}, {fate!r}\n" + INTERRUPTED
            said = self.ran(text, f"interrupted-{interrupts}.py")
            self.assertIn(f"INTERRUPTED {state}", said)
            self.assertIn(words, said)

    @unittest.skipUnless(HAS_TORCH, "needs PyTorch")
    def test_a_class_of_the_script_trains_and_comes_back_with_its_weights(self):
        said = self.ran(TABLE + OWN_MODEL)
        self.assertEqual(said.count("RUNS"), 1, "the script itself isn't run again")
        self.assertIn("SAME True True True", said)

    @unittest.skipUnless(HAS_TORCH, "needs PyTorch")
    def test_a_model_that_cannot_be_a_graph_is_refused_with_a_line(self):
        said = self.ran(TABLE + REFUSED_MODEL)
        self.assertIn("REFUSED", said)
        self.assertIn("has no parameters", said)
        self.assertIn(f"`{self.folder / 'script.py'}:Net`", said)
        self.assertNotIn(".sojourn/models", said)


if __name__ == "__main__":
    unittest.main()
