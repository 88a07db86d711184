"""Results of another form than run-all knows: they lose neither the step's verdict nor the page."""

import json
import os
import sys
import tempfile
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "../../bench/gpu"))

from runner import judge, steps, summary  # noqa: E402
from runner.process import Ended  # noqa: E402


def step(kind):
    return steps.Step("a step", "A", 1, 1, kind, ())


class OtherForm(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def judged(self, kind, name, content):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
        return judge.judge(step(kind), Ended(0, "", 1.0), "", self.folder)

    def test_a_step_fails_and_says_what_its_results_lack(self):
        for kind, name, content, lacks in (
                ("bench", "bench.json", {"benchmarks": [{"run_type": "iteration"}]}, "KeyError: 'run_name'"),
                ("bench", "bench.json", [1], "AttributeError: "),
                ("peers", "peers.json", {"comparison": [{}], "failures": [{"ours": True}]}, "KeyError: 'name'"),
                ("tests", "cases.json", {"passed": 1}, "KeyError: 'cases'")):
            found = self.judged(kind, name, content)
            self.assertEqual(found["state"], "failed")
            self.assertIn("its results have another form: " + lacks, found["line"])

    def test_the_page_says_which_table_cannot_be_made_and_has_the_others(self):
        race = self.judged("peers", "peers.json", {"comparison": [{"pass": "total"}]})
        medians = [{"key": {"network": "n", "backend": "cuda", "type": "f32", "part": "total"}, "ms": 2.0}]
        records = {"a step": race, "rows": {"state": "passed", "medians": medians}}
        data = {"machine": {}, "identity": {}, "steps": records}
        lines = summary.page([step("peers")], types.SimpleNamespace(data=data, folder=self.folder))
        self.assertEqual(race["state"], "passed")
        self.assertIn("Cannot be made: KeyError: 'backend'. results.json has the numbers.", lines)
        self.assertEqual([line.split() for line in lines if "| n " in line], [["|", "n", "|", "2.00", "|"]])
        self.assertIn("- A a step: 1 ratios", lines)


if __name__ == "__main__":
    unittest.main()
