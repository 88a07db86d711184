"""What sweeps answer: in the words of lamina_bench, of the times that are in the files."""

import json
import os
import unittest

import made
import two_runs
from page import answers

QUESTIONS = {what: getattr(answers, what) for what in answers.FROM_TIMES}


class Answers(unittest.TestCase):
    def test_they_are_those_of_the_table_that_both_languages_check(self):
        with open(os.path.join(made.HERE, "../data/sweep_answers.json"), encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        self.assertEqual({case["what"] for case in cases}, set(QUESTIONS))
        for case in cases:
            found = QUESTIONS[case["what"]]([answers.Point(**point) for point in case["points"]])
            said = (found.what, found.value, found.whole) if found else (case["what"], None, None)
            self.assertEqual(said, (case["what"], case.get("value"), case.get("text")))

    def test_ranks_are_one_more_than_the_critical_values_of_mann_and_whitneys_table(self):
        for first, second, greatest in ((4, 4, 0), (5, 5, 2), (5, 8, 6), (8, 5, 6), (9, 9, 17), (20, 20, 127)):
            self.assertEqual(two_runs.rank(first, second), greatest + 1)
        self.assertEqual(two_runs.rank(3, 3), 0)

    def test_many_pairs_have_the_ratio_that_a_list_of_all_has(self):
        first, second = [1 + (i * 37 % 101) / 1000 for i in range(101)], [1.1 + (i * 53 % 103) / 900 for i in range(103)]
        self.assertGreater(len(first) * len(second), two_runs.PAIRS)
        ratios = sorted(b / a for a in first for b in second)
        place = two_runs.rank(101, 103)
        expected = (ratios[place - 1], ratios[len(ratios) // 2], ratios[-place])
        self.assertEqual(tuple(two_runs.of_ratio(first, second)), expected)

    def test_many_pairs_of_equal_times_have_a_ratio_of_exactly_1(self):
        alike = [1.0] * 60 + [1.01] * 41
        self.assertEqual(tuple(two_runs.of_ratio(alike, alike)), (1, 1, 1))


if __name__ == "__main__":
    unittest.main()
