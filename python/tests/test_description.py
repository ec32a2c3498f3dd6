"""Values are attributes and a mapping, name what there is, and note what was read."""

import unittest

from sojourn.description import Values


class Description(unittest.TestCase):
    def test_values_are_attributes_and_a_mapping(self):
        c = Values("c", {"width": 3, "lr": 0.1})
        self.assertEqual((c.width, c["lr"], dict(c)), (3, 0.1, {"width": 3, "lr": 0.1}))
        with self.assertRaisesRegex(AttributeError, "c has no 'widht'; it has lr, width"):
            c.widht
        with self.assertRaisesRegex(AttributeError, "can't be changed"):
            c.width = 4

    def test_what_is_not_read_does_not_matter(self):
        c = Values("c", {"width": 3, "lr": 0.1})
        self.assertEqual((c.width, c.get("depth", 2)), (3, 2))
        self.assertTrue(c.read_same({"width": 3, "lr": 0.5, "dropout": 0.1}))
        self.assertFalse(c.read_same({"width": 4, "lr": 0.1}))
        self.assertFalse(c.read_same({"width": 3, "depth": 5}))
        dict(c)
        self.assertTrue(c.read_same({"lr": 0.1, "width": 3}))
        self.assertFalse(c.read_same({"width": 3, "lr": 0.1, "dropout": 0.1}))


if __name__ == "__main__":
    unittest.main()
