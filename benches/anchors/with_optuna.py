"""Optuna: two processes of one thread on one study, which holds the twelve trials."""

import subprocess
import sys
import tempfile

import digits


def study_in(path):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.JournalStorage(JournalFileBackend(path))
    return optuna.create_study(
        storage=storage, study_name="digits", direction="maximize", load_if_exists=True
    )


def work(path, arguments):
    digits.one_thread()
    data = digits.load(arguments.data)

    def objective(trial):
        arch, rate = digits.TRIALS[trial.suggest_int("trial", 0, len(digits.TRIALS) - 1)]
        epoch = iter(range(arguments.epochs))
        return digits.train(
            data, arch, rate, arguments.epochs,
            lambda accuracy: trial.report(accuracy, next(epoch)),
        )

    study_in(path).optimize(objective, n_trials=len(digits.TRIALS) // 2)


if __name__ == "__main__":
    if "--study" in sys.argv:
        path = sys.argv.pop(sys.argv.index("--study") + 1)
        sys.argv.remove("--study")
        work(path, digits.arguments())
    else:
        digits.arguments()
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/study.log"
            study = study_in(path)
            for trial in range(len(digits.TRIALS)):
                study.enqueue_trial({"trial": trial})
            command = [sys.executable, *sys.argv, "--study", path]
            workers = [subprocess.Popen(command) for _ in range(2)]
            if any([worker.wait() for worker in workers]):
                sys.exit(1)
            best = study_in(path).best_value
        digits.report("Optuna, 2 processes", best)
