"""The check trains by PyTorch and by the graph, whole and cut."""

import unittest

import models
from test_program import HERE, run


class Check(unittest.TestCase):
    def check(self, name, data=None):
        entry, config, described, _ = models.FIXTURES[name]
        request = {"folder": str(HERE), "entry": f"models.py:{entry.__name__}", "data": data or described, "configs": [config]}
        status, lines, errors = run(request, "sojourn.check")
        self.assertEqual((status, len(lines)), (0, 1), errors)
        return lines[0]

    def test_a_task_whose_graph_trains_alike_is_repeatable(self):
        answer = self.check("vae")
        self.assertTrue(answer["repeatable"], answer)
        self.assertEqual(answer["describes"]["parameters"], 3721)
        self.assertGreater(answer["seconds_per_batch"], 0)
        self.assertGreater(answer["peak_memory"], 1 << 20)

    def test_several_stages_are_cut_too(self):
        self.assertTrue(self.check("gan")["repeatable"])

    def test_what_a_graph_does_not_keep_is_found(self):
        request = {"folder": str(HERE), "entry": "refused.py:Remembers", "data": models.flat(4, 3), "configs": [{}]}
        _, lines, errors = run(request, "sojourn.check")
        self.assertEqual(lines[0]["differs"], {"tensor": "net.weight", "between": "PyTorch and its graph"}, errors)

    def test_a_refusal_is_the_answer(self):
        request = {"folder": str(HERE), "entry": "refused.py:Branches", "data": models.flat(4, 3), "configs": [{}]}
        status, lines, _ = run(request, "sojourn.check")
        self.assertEqual(status, 0)
        self.assertIn("depends on the numbers", lines[0]["refused"]["message"])


if __name__ == "__main__":
    unittest.main()
