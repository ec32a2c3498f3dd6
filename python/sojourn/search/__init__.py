"""Searches: the space, the models, the data, and the job file that they make."""

from sojourn.search.data import Data
from sojourn.search.models import Model, cnn, graph, mlp, resnet
from sojourn.search.search import Search
from sojourn.search.space import Dimension, choice, formula, int_uniform, log_int, log_uniform, normal, uniform

__all__ = [
    "Data",
    "Dimension",
    "Model",
    "Search",
    "choice",
    "cnn",
    "formula",
    "graph",
    "int_uniform",
    "log_int",
    "log_uniform",
    "mlp",
    "normal",
    "resnet",
    "uniform",
]
