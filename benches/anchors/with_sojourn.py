"""Sojourn from Python: the same twelve trials as a search of fifteen lines, with a server and a client of its own in an empty folder."""

import tempfile

import digits
import sojourn

arguments = digits.arguments()
with tempfile.TemporaryDirectory() as folder, sojourn.local(slots=2, gpus="none", folder=folder):
    search = sojourn.Search(
        [sojourn.mlp(hidden=[64]), sojourn.cnn(channels=[16, 32])],
        data=sojourn.Data(arguments.data, label="label", shape=[1, 8, 8], scale="standard", shards=2), valid=0.2,
        space={"lr": sojourn.log_uniform(1e-3, 1e-2, points=len(digits.RATES))},
        epochs=arguments.epochs, batch_size=32, optimizer="adam", method="grid", metric="valid/accuracy", folder=folder,
    )
    job = search.run(progress=False)
    job.best.export(f"{folder}/best.safetensors")
    digits.report("Sojourn from Python, 2 slots", job.best.value)
