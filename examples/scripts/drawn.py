"""Section 11 of PROOFS.md: fleets that are drawn by chance, by their kind."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import kept
from study import FOLDER, say, table

NAME = "11-drawn"


def run(given):
    """The kinds that the scenario file gives, with the policies and seeds that they are of."""
    say(f"{NAME} ...")
    command = [given.sojourn, "simulate", FOLDER / f"{NAME}.toml"] + (["--seeds", str(given.seeds)] if given.seeds else [])
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, cwd=out)
    if done.returncode != 0:
        sys.exit(f"proofs: {NAME}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    cells = result["cells"]
    return {"kinds": result["kinds"], "policies": list(dict.fromkeys(cell["policy"] for cell in cells)), "seeds": len(cells[0]["runs"])}


def drawn(given):
    result = kept.kept(given.results, NAME, lambda: run(given))
    kinds, policies = result["kinds"], [f"`{policy}`" for policy in result["policies"]]
    lines, slower, far = [], [], []
    for kind in kinds:
        other, bound = kind["over_best_other"], kind["over_bound"]
        lines.append([
            kind["kind"], kind["fleets"], f"{other['mean']:.3f}", f"{other['max']:.3f} ({kind['worst']})",
            f"{bound['mean']:.2f}", f"{bound['max']:.2f}", f"{100 * kind['waiting']:.1f} %",
        ])  # fmt: skip
        slower += [f"{kind['kind']} ({other['mean']:.3f})"] if other["mean"] > 1.0005 else []
        far += [f"{kind['worst']} ({other['max']:.3f})"] if other["max"] > 1.05 else []
    mean = (
        "In the mean of each kind `rollout` takes no longer than the best of the others, chosen anew for each fleet."
        if not slower
        else "In the mean it takes longer than the best of the others, chosen anew for each fleet, in: " + "; ".join(slower) + "."
    )
    worst = "It takes at most 1.05 times as long in any fleet." if not far else "It takes over 1.05 times as long in: " + "; ".join(far) + "."
    header = ["fleets", "drawn", "over the best other policy", "worst", "over the bound", "worst ratio", "waiting"]
    return "## 11. Drawn fleets\n", [
        f"`{NAME}.toml`, {sum(kind['fleets'] for kind in kinds)} fleets, {result['seeds']} seeds each. Policies {', '.join(policies)}. "
        "The makespan of `rollout`, the server's default, over that of the best other policy of the same fleet and over the lower bound, "
        "lines included: means over the seeds. [README.md](README.md#drawn-fleets) says what is drawn.\n",
        table(header, lines, ("worst",)),
        f"{mean} {worst}\n",
    ]
