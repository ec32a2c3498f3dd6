"""Random kills of interpreter, server and client: the same script, run again, ends with the same digests.

Up to four kills by default, as many as there is time for while the job trains; as many as SOJOURN_KILLS says where that is set:
`make engines` has 20. SOJOURN_KILL_SEED draws the same processes again.
"""

import json
import os
import random
import signal
import unittest
from collections import Counter

import sojourn
from support import PATIENCE, TABLE, Site, poll

KILLS = int(os.environ.get("SOJOURN_KILLS", "4"))
FEWEST = KILLS if "SOJOURN_KILLS" in os.environ else 1
"""A machine that trains faster than this test looks ends the job sooner; a job that no machine ends so soon is for `make engines`."""
SEED = int(os.environ.get("SOJOURN_KILL_SEED", random.randrange(2**32)))
EPOCHS_A_KILL = 12 if FEWEST > 1 else 6
MAX_HOPS = 20
"""Hops between two kills, at most."""
VICTIMS = ("interpreter", "serve", "client")

SCRIPT = (
    TABLE
    + """
search = sojourn.Search(
    sojourn.mlp(hidden=sojourn.choice([16], [64])), data=(X, y), valid=0.2, name="killed",
    space={"lr": sojourn.log_uniform(1e-3, 1e-1)},
    epochs=EPOCHS, trials=4, method="random", metric="valid/accuracy", placement={"visits": "fixed"})
job = search.run()
import json
print("TRIALS", json.dumps([(trial.checkpoint, trial.raw["numeric_class"], trial.epochs) for trial in job.trials()]))
"""
)


class Kills(Site):
    def hops(self):
        """How many hops are done; None while no server answers."""
        folder = self.folder / ".sojourn/server"
        try:
            address = (folder / "address").read_text().strip()
            api = sojourn.Server(f"http://{address}", (folder / "admin-token").read_text().strip()).api
            jobs = api.call("GET", "jobs", retries=0)
        except (OSError, ValueError, sojourn.SojournError):
            return None
        return jobs[0]["hops"] if jobs else None

    def hops_beyond(self, wanted, script):
        """Waits until more hops than that are done; how many, or 0 where the script has ended."""
        poll(lambda: (self.hops() or 0) > wanted or script.poll() is not None)
        return self.hops() or wanted if script.poll() is None else 0

    def kill(self, victim, script):
        """Kills a process of the script's; was it there?"""
        if victim == "interpreter":
            script.kill()
            script.wait()
            return True
        found = list(self.processes(f"sojourn {victim} "))
        for process in found[:1]:
            os.kill(process, signal.SIGKILL)
        return bool(found)

    def result(self):
        said = [line for line in self.said().splitlines() if line.startswith("TRIALS ")]
        return json.loads(said[-1].removeprefix("TRIALS "))

    def test_whatever_is_killed_the_next_run_ends_with_the_same_digests(self):
        chance = random.Random(SEED)
        text = f"EPOCHS = {20 + EPOCHS_A_KILL * KILLS}\n" + SCRIPT
        script, killed, hops = self.start(text), Counter(), 0
        while killed.total() < KILLS and (hops := self.hops_beyond(hops + chance.randrange(MAX_HOPS), script)):
            victim = chance.choice(VICTIMS)
            killed[victim] += self.kill(victim, script)
            if victim == "interpreter":
                script = self.start(text)
        self.assertGreaterEqual(killed.total(), FEWEST, f"seed {SEED}: the job has ended too soon")
        self.assertEqual(script.wait(PATIENCE), 0, f"seed {SEED}, {killed}:\n{self.said()}{self.logs()}")
        faulty = self.result()
        (self.folder / ".sojourn").rename(self.folder / "before")
        self.ran(text)
        calm = self.result()
        # A machine may offer several numeric classes, and a trial is of the one that was faster when it began.
        same_class = [(one, other) for one, other in zip(faulty, calm, strict=True) if one[1] == other[1]]
        self.assertEqual([one for one, _ in same_class], [other for _, other in same_class], f"seed {SEED}, {killed}")
        self.assertEqual({epochs for _, _, epochs in faulty}, {20 + EPOCHS_A_KILL * KILLS})
        poll(lambda: not self.processes())


if __name__ == "__main__":
    unittest.main()
