"""The page: made from files, whole, and safe whatever they hold. Skipped where its packages are not here."""

import base64
import contextlib
import gzip
import hashlib
import html.parser
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

import made
import shown
from page import command
from results_test import ledger

REPORT = os.path.join(made.BENCH, "report")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&{{7*7}}\u2028"


class Reader(html.parser.HTMLParser):
    """Elements, ids, texts of scripts, and all text that is shown."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.scripts, self.text, self.open, self.events = [], [], {}, [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        its = dict(attributes)
        self.tags.append((tag, its))
        self.events += [name for name in its if name.startswith("on")]
        if "id" in its:
            self.ids.append(its["id"])
        self.open.append((tag, its))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        tag, its = self.open[-1] if self.open else ("", {})
        if tag == "script":
            self.scripts[its.get("id", f"script {len(self.scripts)}")] = text
        elif tag != "style":
            self.text.append(text)


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def make(self, *documents, status=0, words=()):
        paths = [made.write(self.folder, f"file{i}.json", one) for i, one in enumerate(documents)]
        self.out = os.path.join(self.folder, "page.html")
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            self.assertEqual(command.run([*paths, "-o", self.out, *words]), status, said.getvalue())
        self.said = said.getvalue()
        with open(self.out, encoding="utf-8") as file:
            return file.read()

    def test_the_same_files_make_the_same_page(self):
        document = made.document(made.network())
        self.assertEqual(self.make(document), self.make(document))

    def test_ids_are_unlike_each_other_and_links_lead_somewhere(self):
        its = Reader(self.make(made.document(made.network())))
        self.assertEqual(sorted(its.ids), sorted(set(its.ids)))
        for tag, attributes in its.tags:
            if tag == "a":
                self.assertIn(attributes["href"].removeprefix("#"), its.ids)

    def test_nothing_is_fetched(self):
        page = self.make(made.document(made.network()))
        its = Reader(page)
        self.assertEqual(
            [attributes for tag, attributes in its.tags if "src" in attributes or tag in ("link", "iframe", "img")], []
        )
        policy = next(
            attributes["content"]
            for tag, attributes in its.tags
            if attributes.get("http-equiv") == "Content-Security-Policy"
        )
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe-eval", policy)

    def test_hostile_names_are_text(self):
        rows = made.network(HOSTILE) + made.row(made.key(what="layer", layer=HOSTILE, algorithm=HOSTILE), 1)
        page = self.make(made.document(rows, {"processor": HOSTILE, HOSTILE: HOSTILE}))
        its = Reader(page)
        self.assertEqual(its.events, [])
        self.assertEqual([tag for tag, _ in its.tags if tag == "img"], [])
        plain = Reader(
            self.make(
                made.document(made.network("net") + made.row(made.key(what="layer", layer="l", algorithm="a"), 1))
            )
        )
        self.assertEqual(
            len([tag for tag, _ in its.tags if tag == "script"]), len([tag for tag, _ in plain.tags if tag == "script"])
        )
        self.assertIn(HOSTILE, "".join(its.text))
        self.assertIn(HOSTILE, json.loads(its.scripts["data-networks"])["networks"])

    def test_the_files_are_in_the_page_as_they_were_read(self):
        document = made.document(made.network())
        its = Reader(self.make(document, made.document(made.network("vgg16"))))
        self.assertEqual(json.loads(gzip.decompress(base64.b64decode(its.scripts["file-0"]))), document)
        self.assertIn("file-1", its.scripts)

    def test_numbers_of_the_table_are_those_of_the_files(self):
        its = Reader(self.make(made.document(made.network(forward=123.4))))
        ours = [machine for machine in json.loads(its.scripts["data-networks"])["machines"] if machine["ours"]]
        self.assertAlmostEqual(ours[0]["times"]["resnet50"]["total"]["ms"], 3 * 123.4, delta=1)
        self.assertTrue(any(text.strip() in ("370", "371") for text in its.text))

    def test_many_runs_are_summed_up_by_machine(self):
        one, other = (made.document(made.network(), {"processor": name}) for name in ("Test CPU", "Other CPU"))
        two, three = (one | {"context": one["context"] | {"commit": commit}} for commit in "23")
        text = "".join(Reader(self.make(one, two, three, other)).text)
        self.assertIn("Test CPU, 2 cores: 3 runs; load average 0.1 to 0.1", text)
        self.assertIn("Other CPU, 2 cores: 1 run;", text)

    def test_files_without_joules_say_why_and_those_with_them_have_a_price_of_electricity(self):
        why = "not available: no counter here"
        text = "".join(Reader(self.make(made.document(made.network(), {"energy_eigen": why}))).text)
        self.assertIn("No joules of whole trainings or passes in these files: " + why, text)
        # Of a training one epoch has none.
        short = "energy: it took 0.9 s"
        epochs = [{"seconds": 5, "joules": 7.0}, {"seconds": 0.9, "joules_missing": short}]
        its = made.document(made.training("mnist_mlp", epochs), {"energy_eigen": "RAPL package-0"})
        text = "".join(Reader(self.make(its)).text)
        self.assertIn(f"No joules of whole trainings or passes in these files: {short}. Costs", text)
        with_joules = made.document(made.row(made.key(), 5, joules=2.5))
        its = json.loads(Reader(self.make(with_joules)).scripts["data-cost"])
        self.assertTrue(its["energy"])
        self.assertEqual([item["joules"] for item in its["items"] if item["ours"]], [2.5 / 16 * 1e6])

    def test_the_page_begins_with_what_the_files_say(self):
        its = Reader(self.make(made.document(made.network())))
        text = "".join(its.text)
        self.assertLess(text.index("What these files say"), text.index("Machine and grade"))
        self.assertIn("Test CPU, Lamina eigen: a training pass over an image takes", text)
        empty = Reader(self.make(made.document(made.row(made.key(what="setup", part="plan"), 1))))
        self.assertNotIn("summary", empty.ids)

    def test_what_the_page_begins_with_has_its_commands(self):
        page = self.make(made.document(made.network(), ledgers=[ledger()]))
        summary = page[page.index('<section id="summary"') : page.index('<section id="machine"')]
        runs = re.findall(r'<dd>[^<]* <button type="button" class="copy" data-run="([^"]*)"', summary)
        self.assertEqual(len(runs), len(re.findall("<dd>", summary)) - 1)  # the cheapest has a published price alone
        self.assertIn("lamina_bench ledger net --backend=eigen --batch=4", runs)

    def test_the_cheapest_machine_is_named_for_each_file_of_prices(self):
        one, other = (
            made.document(made.network(forward=ms), {"processor": name}) for name, ms in (("Slow", 2), ("Quick", 1))
        )
        head, words = "source,date,configuration,usd_per_hour,note\n", []
        for name, slow in (("cheap.csv", 1), ("dear.csv", 4)):
            words += ["--prices", made.write(self.folder, name, f"{head}x,2026-01,Slow,{slow},\nx,2026-01,Quick,3,\n")]
        text = " ".join("".join(Reader(self.make(one, other, words=words)).text).split())
        self.assertIn("by cheap.csv: the cheapest is Slow", text)
        self.assertIn("by dear.csv: the cheapest is Quick", text)
        self.assertIn("next: Slow, Lamina eigen, batch 16, 2.67 times as much", text)

    def test_published_machines_stand_beside_ours(self):
        text = "".join(Reader(self.make(made.document(made.network()))).text)
        self.assertIn("Pascal Titan X, cuDNN 5.1.05", text)
        self.assertIn("Test CPU", text)

    def test_a_damaged_file_is_named_in_the_page_and_the_rest_is_there(self):
        its = Reader(self.make(made.document(made.network()), "{", status=1))
        text = "".join(its.text)
        self.assertIn("file1.json", text)
        self.assertIn("file1.json", self.said)
        self.assertIn("Test CPU", text)

    def test_a_section_without_data_says_what_fills_it(self):
        page = self.make(made.document(made.row(made.key(what="setup", part="plan"), 1)))
        self.assertRegex(page, r"This fills it: <code>lamina_bench run ")

    def test_without_a_usable_file_there_is_no_page(self):
        path = made.write(self.folder, "bad.json", "{")
        out = os.path.join(self.folder, "none.html")
        done = subprocess.run(
            [sys.executable, "-B", REPORT, path, "-o", out], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 1)
        self.assertFalse(os.path.exists(out))

    def test_a_page_of_twenty_files_is_small_and_soon_made(self):
        layers = [
            row
            for layer in range(50)
            for part in ("forward", "backward_params")
            for row in made.row(
                made.key(part, what="layer", layer=f"conv{layer}", algorithm="default"),
                1 + layer,
                flops_per_second=1e11,
                bytes_per_second=1e10,
            )
        ]
        documents = [
            made.document(
                [row for batch in (1, 2, 4, 16) for row in made.network(batch=batch)] + layers, {"commit": f"{number}"}
            )
            for number in range(20)
        ]
        start = time.process_time()  # which other programs change little
        page = self.make(*documents)
        self.assertLess(time.process_time() - start, 10)
        self.assertLess(len(page.encode()), 6e6)

    def test_every_script_of_the_page_is_one_that_the_policy_names(self):
        page = self.make(made.document(made.network()))
        its = Reader(page)
        policy = next(attributes["content"] for tag, attributes in its.tags if attributes.get("http-equiv"))
        run = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        self.assertEqual(len(run), 2)
        for script in run:
            self.assertIn(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(), policy)


if __name__ == "__main__":
    shown.main()
