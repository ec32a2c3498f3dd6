"""The seeds are those that the tests of protocol/src/seeds.rs and protocol/model/src/initial.rs pin."""

import unittest

import numpy as np

from sojourn import seeds


class Seeds(unittest.TestCase):
    def test_derived_seeds_and_orders_are_the_pinned_ones(self):
        self.assertEqual(seeds.derive("hop", 1, 2), 3_501_609_502_209_702_517)
        order = seeds.row_order(7, 100)
        self.assertEqual(order[:6], [30, 28, 19, 23, 82, 55])
        self.assertEqual(sorted(order), list(range(100)))
        self.assertEqual(seeds.row_order(7, 0), [])
        self.assertEqual(seeds.row_order(9, 1), [0])

    def test_first_numbers_are_the_pinned_ones(self):
        values = seeds.initial_values(7, 0, {"fan_in": 3}, [2, 3])
        expected = np.float32([-0.566_337_17, 0.408_794_85, 0.547_484_4, -0.190_443_92])
        np.testing.assert_array_equal(values.reshape(-1)[:4], expected)

    def test_other_starts_have_their_bounds_and_moments(self):
        uniform = seeds.initial_values(1, 0, {"uniform": [-0.5, 0.25]}, [100, 100])
        self.assertTrue(-0.5 <= uniform.min() < -0.49 and 0.24 < uniform.max() < 0.25)
        normal = seeds.initial_values(1, 0, {"normal": [1.0, 0.5]}, [100, 100])
        self.assertAlmostEqual(float(normal.mean()), 1.0, delta=0.02)
        self.assertAlmostEqual(float(normal.std()), 0.5, delta=0.02)
        self.assertEqual(seeds.initial_values(1, 0, "ones", [2]).tolist(), [1.0, 1.0])
        self.assertEqual(seeds.initial_values(1, 0, {"constant": 0.5}, [2]).tolist(), [0.5, 0.5])


if __name__ == "__main__":
    unittest.main()
