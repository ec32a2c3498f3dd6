"""The section of PROOFS.md that holds the bytes of Cerebro's Table 2 against those that the simulator counts."""

from study import table

# The parameters of the paper's example: epochs, configurations, workers, bytes of a model and of all data, and batches of
# an epoch over all workers.
EPOCHS, CONFIGURATIONS, WORKERS = 20, 20, 10
MODEL, DATA, BATCHES = 1e9, 1e12, 100_000
# What the last row of 9-traffic.toml runs of that: it is multiplied up to all of it.
SAMPLE = 1_000
TIMES = EPOCHS * CONFIGURATIONS * BATCHES // SAMPLE

# One configuration alone, of as many: in task parallelism they don't meet.
REMOTE = "tasks, remote reads, one trial"

HOPS = EPOCHS * CONFIGURATIONS * WORKERS * MODEL
ONCE = CONFIGURATIONS * MODEL
# By row: the paper's name, its formula and what that gives; the formula of a star, in which all bytes pass the server.
ROWS = {
    "hop, shards pinned": ("model hopper parallelism", "k m p S + m S", HOPS + ONCE, "2 k m p S", 2 * HOPS, 1),
    "hop, shards anywhere": ("the same, this server's default", "", None, "2 k m p S at the most, + p D", 2 * HOPS + WORKERS * DATA, 1),
    "tasks, full replication": (
        "task parallelism, full replication",
        "p D + m S",
        WORKERS * DATA + ONCE,
        "p D + k m S",
        WORKERS * DATA + EPOCHS * ONCE,
        1,
    ),
    REMOTE: (
        "task parallelism, remote reads",
        "k S D + m S",
        EPOCHS * CONFIGURATIONS * DATA + ONCE,
        "k S D + k m p S",
        EPOCHS * CONFIGURATIONS * DATA + HOPS,
        CONFIGURATIONS,
    ),
    "averaging each epoch": ("model averaging (bulk synchronous)", "2 k m p S", 2 * HOPS, "2 k m p S", 2 * HOPS, 1),
    "parameter server, one trial, one epoch, 1,000 batches": (
        "parameter server, each batch",
        "2 k m p S ⌈B / p⌉",
        2 * HOPS * -(-BATCHES // WORKERS),
        "2 k m S B",
        2 * EPOCHS * CONFIGURATIONS * MODEL * BATCHES,
        TIMES,
    ),
}


def size(value):
    """In the unit that suits it."""
    if value is None:
        return ""
    for unit, factor in (("PB", 1e15), ("TB", 1e12)):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value / 1e9:.0f} GB"


def traffic(study):
    policy = study.policies[0]
    lines, counted = [], {}
    for row, (name, theirs, example, ours, here, times) in ROWS.items():
        run = study.cells[row, policy]["runs"][0]
        up, down, shards = (times * run[key] for key in ("checkpoints_up", "checkpoints_down", "shard_bytes"))
        if times == TIMES:
            shards = run["shard_bytes"]  # the data is fetched once, however many batches are cut from it
        counted[row] = up + down + shards
        formula = f"`{theirs}`" if theirs else ""
        lines.append([name, formula, size(example), f"`{ours}`", size(here), size(up), size(down), size(shards), size(up + down + shards)])
    lines.append(["all-reduce (decentralised), each batch", "`k m p S ⌈B / p⌉`", size(HOPS * -(-BATCHES // WORKERS)), "not offered", *[""] * 5])
    hop, anywhere, full, remote, averaging, server = (counted[row] for row in ROWS)
    paper = {row: example for row, (_, _, example, *_) in ROWS.items()}
    first, _, second, _, fourth, fifth = ROWS
    beside = [
        (f"{second} over hopping", paper[second] / paper[first], full / hop),
        ("tasks, remote reads over hopping", paper[REMOTE] / paper[first], remote / hop),
        (f"{fourth} over hopping", paper[fourth] / paper[first], averaging / hop),
        ("parameter server over hopping", paper[fifth] / paper[first], server / hop),
    ]
    facts = [[name, f"{there:,.2f}", f"{here:,.2f}", "yes" if (there > 1) == (here > 1) else "no"] for name, there, here in beside]
    reread = CONFIGURATIONS * study.cells[REMOTE, policy]["runs"][0]["shard_bytes"]
    header = ["approach", "paper's formula", "gives", "formula of a star", "gives", "counted up", "counted down", "data", "all"]
    return "## 9. Bytes, as in Cerebro's Table 2\n", [
        study.head() + f" The parameters of the paper's example: k = {EPOCHS} epochs, S = {CONFIGURATIONS} configurations, "
        f"p = {WORKERS} workers, a model of m = 1 GB, D = 1 TB of data, B = {BATCHES:,} batches in an epoch.\n",
        "The paper counts what moves between workers that already hold their data, a hop once. Its own system hops through a shared file "
        "system, which doubles that to `2 k m p S` (section 4.3). Here all bytes pass the server, so that each hop counts twice, up and "
        "down; and the data that hosts fetch is counted. Checkpoints that are evaluated are fetched too. A checkpoint stays on the host "
        "that made it, so a trial's next hop there fetches none.\n",
        table(header, lines, words=["paper's formula", "formula of a star"]),
        f"The row of the parameter server is simulated for one trial, one epoch and {SAMPLE:,} batches, and its checkpoints are multiplied by "
        f"{TIMES:,}. Under remote reads one trial is simulated on one host, and multiplied by {CONFIGURATIONS}. That host reads the data in "
        f"{WORKERS} pieces and keeps the last: of an epoch's data {100 * reread / (EPOCHS * CONFIGURATIONS * DATA):.0f} % are read anew. "
        "All-reduce needs workers that talk to each other, which hosts here don't.\n",
        table(["bytes", "paper", "counted here", "agrees in direction"], facts, words=["agrees in direction"]),
        f"By the paper's count hopping moves the fewest bytes. Here it is {'first too' if hop <= min(full, remote, averaging, server) else 'not the first'}: "
        f"{size(hop)} against {size(averaging)} of averaging. Through a server, or a shared file system, both send each model to each "
        "worker and back once an epoch.\n",
    ]
