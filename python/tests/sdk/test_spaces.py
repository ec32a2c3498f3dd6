"""Spaces of Optuna and Ray Tune as dimensions, and back."""

import importlib.util
import unittest

import sojourn
from sojourn.adapters import spaces
from sojourn.search.space import as_dimension


def of_ray(name, **attributes):
    """A stand-in for a domain of Ray Tune: its class's name, its module, and its attributes are all that is read."""
    kind = type(name, (), {"__module__": "ray.tune.search.sample"})
    domain = kind()
    domain.__dict__.update(attributes)
    return domain


def in_range(name, sampler, low, high, q=None):
    inner = of_ray(sampler, mean=low, sd=high)
    outer = inner if q is None else of_ray("Quantized", q=q, get_sampler=lambda: inner)
    return of_ray(name, lower=low, upper=high, get_sampler=lambda: outer)


class OfRay(unittest.TestCase):
    def test_domains_have_their_forms(self):
        nested = {
            "lr": in_range("Float", "_LogUniform", 1e-4, 1e-1),
            "dropout": in_range("Float", "_Uniform", 0, 0.5, q=0.1),
            "width": in_range("Integer", "_Uniform", 16, 65),
            "steps": in_range("Integer", "_LogUniform", 1, 64, q=1),
            "noise": in_range("Float", "_Normal", 0.0, 0.1),
            "optimizer": {"momentum": of_ray("Categorical", categories=[0.0, 0.9])},
            "kind": {"grid_search": ["gru", "lstm"]},
            "layers": 3,
        }
        wanted = {
            "lr": sojourn.log_uniform(1e-4, 1e-1),
            "dropout": sojourn.uniform(0, 0.5, step=0.1),
            "width": sojourn.int_uniform(16, 64),
            "steps": sojourn.log_int(1, 64),
            "noise": sojourn.normal(0.0, 0.1),
            "optimizer.momentum": sojourn.choice(0.0, 0.9),
            "kind": sojourn.choice("gru", "lstm"),
            "layers": 3,
        }
        self.assertEqual(spaces.from_ray(nested), wanted)
        self.assertEqual(as_dimension(nested["lr"]), wanted["lr"], "a space of a search takes it as it is")
        with self.assertRaisesRegex(ValueError, "has no form in a job file"):
            spaces.dimension_of(of_ray("Function"))

    @unittest.skipUnless(importlib.util.find_spec("ray"), "needs ray")
    def test_ray_s_own_domains_are_read(self):
        from ray import tune

        space = {
            "lr": tune.loguniform(1e-4, 1e-1),
            "n": tune.randint(1, 9),
            "q": tune.quniform(0, 1, 0.25),
            "c": tune.choice([1, 2]),
        }
        wanted = {
            "lr": sojourn.log_uniform(1e-4, 1e-1),
            "n": sojourn.int_uniform(1, 8),
            "q": sojourn.uniform(0, 1, step=0.25),
            "c": sojourn.choice(1, 2),
        }
        self.assertEqual(spaces.from_ray(space), wanted)


@unittest.skipUnless(importlib.util.find_spec("optuna"), "needs optuna")
class OfOptuna(unittest.TestCase):
    def test_distributions_come_back_as_they_went(self):
        space = {
            "lr": sojourn.log_uniform(1e-4, 1e-1),
            "dropout": sojourn.uniform(0.0, 0.5, step=0.1),
            "width": sojourn.int_uniform(16, 64, step=16),
            "depth": sojourn.log_int(1, 8),
            "kind": sojourn.choice("gru", "lstm"),
        }
        distributions = spaces.to_optuna({**space, "fixed": 3})
        self.assertEqual(spaces.from_optuna(distributions), space)
        self.assertEqual({name: as_dimension(one) for name, one in distributions.items()}, space)

    def test_lists_are_text_for_optuna_alone(self):
        (distribution,) = spaces.to_optuna({"hidden": sojourn.choice([64], [128, 64])}).values()
        self.assertEqual(distribution.choices, ("[64]", "[128, 64]"))
        values = {"hidden": [128, 64], "lr": 0.1, "kind": "gru"}
        self.assertEqual(spaces.values_of(spaces.params_of(values)), values)

    def test_what_optuna_cannot_draw_is_refused(self):
        for dimension in (sojourn.normal(0, 1), sojourn.formula("lr * 2"), sojourn.choice(1, 2, when={"optimizer": "sgd"})):
            with self.assertRaisesRegex(ValueError, "no distribution for `x`"):
                spaces.to_optuna({"x": dimension})


if __name__ == "__main__":
    unittest.main()
