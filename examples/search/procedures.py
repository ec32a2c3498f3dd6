"""Runs one search of 32 trials under each procedure, and prints a table.

    python3 examples/search/procedures.py --seeds 3

It submits to the server that `sojourn` finds, where clients work. SOJOURN names another program than `sojourn`. With --replay
the best trial of each is trained again on this machine, and must come to the same bytes.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path
from statistics import mean

from compare import FOLDER, sojourn

RANDOM = 'method = "random"\ntrials = 32\n'
PROCEDURES = {
    "random": RANDOM,
    "tpe": 'method = "tpe"\ntrials = 32\n',
    "asha": RANDOM + 'stopping = "asha"\n',
    "tpe, asha": 'method = "tpe"\ntrials = 32\nstopping = "asha"\n',
    "hyperband": RANDOM + 'stopping = "hyperband"\n',
    "pbt": 'method = { name = "pbt", interval = 3 }\ntrials = 32\n',
}


def job_file(procedure, seed):
    """The example's job under this procedure, of 27 epochs and compared by accuracy."""
    text = (FOLDER / "job.toml").read_text().replace("seed = 1\n", f"seed = {seed}\n")
    text = text.replace("../digits/digits.csv", str(FOLDER.parent / "digits" / "digits.csv"))
    text = text.replace('metric = "valid/loss"', 'metric = "valid/accuracy"')
    return text.replace('method = "random"\ntrials = 27\n', PROCEDURES[procedure]).replace('valid/accuracy"\nstopping = "asha"\n', 'valid/accuracy"\n')


def searched(procedure, seed, replay):
    """The best accuracy of a search, the epochs that its trials have trained, and its time in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.toml"
        file.write_text(job_file(procedure, seed))
        job = str(sojourn("submit", str(file), "--again", "--wait")["job"])
    view = sojourn("status", job)["summary"]
    trials = sojourn("trials", job)
    # A clone begins with the epochs of the trial that it goes on from.
    epochs = sum(trial["epoch"] - trial.get("origin", {}).get("epochs", 0) for trial in trials)
    if replay:
        verdict = sojourn("replay", job, "--trial", str(view["best"]["trial"]))["verdict"]
        assert verdict == "identical", f"{procedure}, seed {seed}: {verdict}"
    return view["best"]["value"], epochs, (view["ended_at"] - view["submitted_at"]) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 1 on")
    parser.add_argument("--replay", action="store_true", help="train the best trial of each again")
    parser.add_argument("--procedures", nargs="*", default=list(PROCEDURES), help="which procedures")
    arguments = parser.parse_args()
    print("| procedure | best accuracy | epochs | time |")
    print("|---|---:|---:|---:|")
    for procedure in arguments.procedures:
        runs = [searched(procedure, seed, arguments.replay) for seed in range(1, arguments.seeds + 1)]
        accuracy, epochs, time = (mean(column) for column in zip(*runs))
        print(f"| {procedure} | {accuracy:.4f} | {epochs:.0f} | {time:.0f} s |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{' '.join(error.cmd)} failed") from error
