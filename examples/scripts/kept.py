"""Results of runs, kept beside the page that shows them: from these its script writes the page again and runs nothing.

A folder of results has a JSON file for each run or study. `read` and `write` are the only ways in and out. A page says where its
results are in a comment, `mark`, by which a test finds page, script and results, writes the page anew and compares.
"""

import json
from pathlib import Path

def options(parser, folder, results="results"):
    """The options of a script that writes a page from results."""
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


def slim(cells, of_runs, of_cells=("row",)):
    """The cells of a simulation with what a page shows of them, and of their runs; of jobs, their times."""
    only = lambda value, keys: {key: value[key] for key in keys if value.get(key) is not None}
    times = lambda run: {key: [only(job, ("submitted", "ended", "epochs")) for job in part] if key == "jobs" else part for key, part in run.items()}
    return [only(cell, of_cells) | {"runs": [times(only(run, of_runs)) for run in cell["runs"]]} for cell in cells]


def notes(folder):
    """Sentences about the origin of results that aren't from a run of today's script."""
    said = {}
    for file in sorted(folder.glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        if note := isinstance(result, dict) and result.get("note"):
            said.setdefault(note, []).append(f"`{file.stem}`")
    listed = lambda files: " and ".join([", ".join(files[:-1]), files[-1]] if files[1:] else files)
    return "".join(f" Of {listed(files)}: {note}" for note, files in said.items())
