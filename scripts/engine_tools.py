#!/usr/bin/env python3
"""Makes the Python environment of `make engines`, with PyTorch, Keras, Lightning and transformers, and links it into a checkout.

It lies in the user's cache folder, once for all checkouts, and takes 6 GB there: PyTorch's package has CUDA.
"""

import sys

sys.dont_write_bytecode = True  # a checkout stays as it is
from libtorch import VERSION, prepare, say  # noqa: E402
from python import environment  # noqa: E402

REQUIREMENTS = [
    f"torch=={VERSION}",
    "datasets>=3,<6",  # data of a search
    "keras>=3.6,<4",
    "lightning>=2.4,<3",  # modules as tasks, and the next two
    "numpy>=1.26,<3",
    "safetensors>=0.4,<1",
    "transformers>=4.50,<6",
]
RECIPE = f"{' '.join(REQUIREMENTS)} recipe 2\n"  # another text makes every user's copy anew


def install(cache):
    return environment(cache / "engines-2", REQUIREMENTS, RECIPE, "users' own models (PyTorch, Keras, Lightning, transformers: 6 GB)")


if __name__ == "__main__":
    if prepare("makes the Python environment of `make engines`", "engines", install):
        say("this checkout is ready: `make engines`")
