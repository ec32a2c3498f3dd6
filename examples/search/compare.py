"""Runs job.toml under each rule of early stopping with several seeds, and prints a table.

    python3 examples/search/compare.py --seeds 5

It submits to the server that `sojourn` finds, where clients work. SOJOURN names another program than `sojourn`.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import mean

FOLDER = Path(__file__).resolve().parent
RULES = [None, "asha", "sha", "hyperband", "median", "patience"]


def sojourn(*arguments):
    """What the command prints as JSON."""
    command = [os.environ.get("SOJOURN", "sojourn"), *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def job_file(rule, seed):
    """The example's job with this rule and seed."""
    text = (FOLDER / "job.toml").read_text().replace("seed = 1\n", f"seed = {seed}\n")
    data = FOLDER.parent / "digits" / "digits.csv"
    text = text.replace("../digits/digits.csv", str(data))
    if rule == "hyperband":
        # As many trials as its brackets take.
        text = text.replace("trials = 27\n", "")
    return text.replace('stopping = "asha"\n', f'stopping = "{rule}"\n' if rule else "")


def searched(rule, seed):
    """The best value of a search, the epochs that its trials have trained, its best trial, and its time in ms."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.toml"
        file.write_text(job_file(rule, seed))
        job = str(sojourn("submit", str(file), "--again", "--wait")["job"])
    view = sojourn("status", job)["summary"]
    epochs = sum(trial["epoch"] for trial in sojourn("trials", job))
    return view["best"]["value"], epochs, view["best"]["trial"], view["ended_at"] - view["submitted_at"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds, from 1 on")
    parser.add_argument("--rules", nargs="*", default=RULES[1:], help="which rules, beside none")
    arguments = parser.parse_args()
    seeds = range(1, arguments.seeds + 1)
    print("| `stopping` | epochs | of all | time of all | best loss | the best trial of all found |")
    print("|---|---:|---:|---:|---:|---:|")
    whole = None
    for rule in [None, *arguments.rules]:
        runs = [searched(rule, seed) for seed in seeds]
        whole = whole or runs
        losses, epochs, _, times = zip(*runs)
        share = mean(epochs) / mean(run[1] for run in whole)
        time = mean(times) / mean(run[3] for run in whole)
        found = sum(run[2] == other[2] for run, other in zip(runs, whole))
        name = f"`\"{rule}\"`" if rule else "none"
        print(f"| {name} | {mean(epochs):.0f} | {share:.0%} | {time:.0%} | {mean(losses):.4f} | {found} of {len(runs)} |", flush=True)


if __name__ == "__main__":
    main()
