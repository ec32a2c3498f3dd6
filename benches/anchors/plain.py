"""Two plain PyTorch processes of one thread, six of the twelve trials each."""

import json
import subprocess
import sys

import digits

if __name__ == "__main__":
    if "--half" in sys.argv:
        half = int(sys.argv.pop(sys.argv.index("--half") + 1))
        sys.argv.remove("--half")
        arguments = digits.arguments()
        digits.one_thread()
        data = digits.load(arguments.data)
        best = [digits.train(data, *trial, arguments.epochs) for trial in digits.TRIALS[half::2]]
        print(json.dumps(max(best)))
    else:
        digits.arguments()
        halves = [
            subprocess.Popen([sys.executable, *sys.argv, "--half", str(half)], stdout=subprocess.PIPE)
            for half in range(2)
        ]
        outputs = [half.communicate()[0] for half in halves]
        if any(half.returncode for half in halves):
            sys.exit(1)
        digits.report("plain PyTorch, 2 processes", max(json.loads(output) for output in outputs))
