"""Results of runs, kept beside the page that shows them: from these its script writes the page again and runs nothing.

A folder of results has a JSON file for each run or study. `read` and `write` are the only ways in and out. A page says where its
results are in a comment, `mark`, by which a test finds page, script and results, writes the page anew and compares.
"""

import json
from pathlib import Path

# What pages show of a run. The rest of what the simulator tells isn't kept.
OF_RUNS = {
    "seed", "makespan", "bound", "capacity", "lost_share", "twice_share", "departures", "busy", "lost",
    "shard_bytes", "checkpoints_up", "checkpoints_down", "jobs", "curve", "staleness", "merged",
    "granted", "late", "late_used", "best", "believed", "lies",
}  # fmt: skip
OF_JOBS = {"submitted", "ended", "epochs"}
OF_CELLS = {"row", "policy", "ratio", "normalised", "makespan"}


def options(parser, folder, results="results"):
    """What a script that writes a page is told about its results."""
    parser.add_argument("--results", type=Path, default=folder / results, help="take results from this folder, and keep new ones there")
    parser.add_argument("--to", type=Path, default=folder, help="write the page and its charts into this folder")


def mark(script, results="results"):
    """The comment on a page that says what writes it, and from which results."""
    return f"<!-- written by examples/scripts/{script} from {results} -->"


def read(folder, name):
    """A result, if it is kept."""
    file = folder / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def write(folder, name, result):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, separators=(",", ":")) + "\n", encoding="utf-8")


def kept(folder, name, make):
    """A result out of the folder, or made and put there."""
    result = read(folder, name)
    if result is None:
        result = make()
        write(folder, name, result)
    return result


def slim(cells):
    """The cells of a simulation with what pages show of them."""
    only = lambda value, keys: {key: part for key, part in value.items() if key in keys and part is not None}
    shown = []
    for cell in cells:
        runs = [only(run, OF_RUNS) for run in cell["runs"]]
        for run in runs:
            run["jobs"] = [only(job, OF_JOBS) for job in run.get("jobs", [])]
        shown.append(only(cell, OF_CELLS) | {"runs": runs})
    return shown


def notes(folder):
    """What results say of where they are from, if not from a run of today's script: sentences, or nothing."""
    said = {}
    for file in sorted(folder.glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        if note := isinstance(result, dict) and result.get("note"):
            said.setdefault(note, []).append(f"`{file.stem}`")
    return "".join(f" Of {' and '.join(files)}: {note}" for note, files in said.items())
