"""A local server: it goes with its scripts, however they end, and comes back with their jobs."""

import json
import os
import signal
import unittest

from support import PATIENCE, TABLE, Site, poll

SEARCH = """
search = sojourn.Search(
    sojourn.mlp(hidden=sojourn.choice([16], [64])), data=(X, y), valid=0.2, name=NAME,
    space={"lr": sojourn.log_uniform(1e-3, 1e-1)},
    epochs=EPOCHS, trials=4, method="random", metric="valid/accuracy", placement={"visits": "fixed"})
job = search.run()
print(job.server, "has", len(job.server.jobs()), "jobs")
import json
print("TRIALS", json.dumps([(trial.checkpoint, trial.raw["numeric_class"], trial.epochs) for trial in job.trials()]))
"""


def script(name="first", epochs=6, before=""):
    return f"NAME, EPOCHS = {name!r}, {epochs}\n" + TABLE + before + SEARCH


class Scripts(Site):
    def trials(self, said):
        return [line for line in said.splitlines() if line.startswith("TRIALS")]

    def hops(self, name="script.py"):
        """Has a script said that hops are done?"""
        return "hops, best" in self.said(name)

    def test_a_script_that_ends_leaves_no_process_and_finds_its_job_again(self):
        first = self.ran(script())
        self.assertEqual(self.processes(), {})
        again = self.ran(script())
        self.assertEqual(self.trials(again)[1:], self.trials(first), "the job is there with its results")
        self.assertIn("has 1 jobs", again.splitlines()[-2])

    def test_a_killed_interpreter_leaves_no_process_and_its_job_ends_with_the_same_digests(self):
        killed = self.start(script(epochs=60))
        poll(self.hops)
        # Server and client don't end by the interpreter's word.
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        poll(lambda: not self.processes())
        goes_on = self.ran(script(epochs=60))
        self.assertIn("has 1 jobs", goes_on)
        (self.folder / ".sojourn").rename(self.folder / "before")
        (self.folder / "script.log").unlink()
        calm = self.ran(script(epochs=60))
        faulty, undisturbed = (json.loads(self.trials(said)[-1].removeprefix("TRIALS ")) for said in (goes_on, calm))
        # A machine may offer several numeric classes, and a trial is of the one that was faster when it began.
        same_class = [(one, other) for one, other in zip(faulty, undisturbed, strict=True) if one[1] == other[1]]
        self.assertEqual([one for one, _ in same_class], [other for _, other in same_class])
        self.assertEqual({epochs for _, _, epochs in faulty}, {60})

    def test_two_scripts_at_once_share_a_server(self):
        wait = "server = sojourn.local(slots=2)\nprint('SLOTS', server.slots, server.url, flush=True)\n"
        scripts = {name: self.start(script(name, 100, wait), f"{name}.py") for name in ("first", "second")}
        for name, process in scripts.items():
            self.assertEqual(process.wait(PATIENCE), 0, self.said(f"{name}.py") + self.logs())
        said = [self.said(f"{name}.py") for name in scripts]
        slots = {line for text in said for line in text.splitlines() if line.startswith("SLOTS")}
        self.assertEqual(len(slots), 1, f"both have one server: {said}")
        poll(lambda: not self.processes())

    def test_a_killed_server_and_a_killed_client_are_started_again_under_a_script(self):
        running = self.start(script(epochs=80))
        poll(self.hops)
        for word in (" serve ", " client "):
            (before,) = self.processes(f"sojourn{word}")
            os.kill(before, signal.SIGKILL)
            poll(lambda word=word, before=before: set(self.processes(f"sojourn{word}")) - {before})
        self.assertEqual(running.wait(PATIENCE), 0, self.said() + self.logs())
        self.assertIn("has 1 jobs", self.said())

    def test_a_killed_supervisor_takes_its_children_along_and_comes_back(self):
        running = self.start(script(epochs=80))
        poll(self.hops)
        state = json.loads((self.folder / ".sojourn/supervisor.json").read_text())
        os.kill(state["pid"], signal.SIGKILL)
        self.assertEqual(running.wait(PATIENCE), 0, self.said() + self.logs())
        self.assertIn("has 1 jobs", self.said())
        poll(lambda: not self.processes())

    def test_a_server_that_cannot_start_says_why(self):
        (self.folder / ".sojourn").mkdir()
        (self.folder / ".sojourn/server").write_text("no folder")
        begun = "import sojourn\ntry:\n    sojourn.local()\nexcept sojourn.SojournError as error:\n    print('REFUSED', error)\n"
        said = self.ran(begun)
        self.assertIn("REFUSED `sojourn serve` keeps ending", said)
        self.assertEqual(self.processes(), {})


if __name__ == "__main__":
    unittest.main()
