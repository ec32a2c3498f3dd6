"""Ray Tune: the twelve trials, two at once, of one thread each; actors are used again."""

import os
import sys

import digits

if __name__ == "__main__":
    arguments = digits.arguments()
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    # The workers import `digits` too.
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(digits.__file__))

    import ray
    from ray import tune

    def run(config):
        digits.one_thread()
        data = digits.load(config["data"])
        arch, rate = digits.TRIALS[config["trial"]]
        digits.train(
            data, arch, rate, arguments.epochs, lambda accuracy: tune.report({"accuracy": accuracy})
        )

    # Its own messages are no result: only our line goes to stdout.
    stdout = os.dup(1)
    os.dup2(2, 1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    trials = tune.grid_search(list(range(len(digits.TRIALS))))
    results = tune.Tuner(
        tune.with_resources(run, {"cpu": 1}),
        param_space={"trial": trials, "data": str(arguments.data.resolve())},
        tune_config=tune.TuneConfig(
            metric="accuracy", mode="max", max_concurrent_trials=2, reuse_actors=True
        ),
        run_config=tune.RunConfig(verbose=0),
    ).fit()
    best = results.get_best_result(scope="all").metrics["accuracy"]
    ray.shutdown()
    sys.stdout.flush()
    os.dup2(stdout, 1)
    digits.report("Ray Tune, 2 at once", best)
