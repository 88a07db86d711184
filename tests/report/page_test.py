"""The page: it is complete, and safe for any contents of the files. Also for all stored files."""

import base64
import contextlib
import glob
import gzip
import hashlib
import html.parser
import io
import json
import os
import re
import subprocess
import sys
from unittest import mock

import made
import wheels
from page import command, packages

REPORT = os.path.join(made.BENCH, "report")
STORED = sorted(glob.glob(os.path.join(made.BENCH, "results", "**", "*.json"), recursive=True))
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&{{7*7}}{{data}}\u2028\ud800"


class Reader(html.parser.HTMLParser):
    """The elements of a page with their attributes, and the data of its scripts."""

    def __init__(self, page):
        super().__init__()
        self.elements = []
        self.feed(page)
        packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page)[1]
        self.data = json.loads(gzip.decompress(base64.b64decode(packed)))
        self.sections = {section["name"]: section for section in self.data["sections"]}

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def named(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]


class Page(made.Case):
    def make(self, *documents, status=0):
        paths = [made.write(self.folder, f"file{i}.json", one) for i, one in enumerate(documents)]
        return self.page_of(paths, status)

    def page_of(self, paths, status=0):
        out, said = os.path.join(self.folder, "page.html"), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            self.assertEqual(command.run([*paths, "-o", out]), status, said.getvalue())
        self.said = said.getvalue()
        with open(out, encoding="utf-8") as file:
            return file.read()

    def test_the_same_files_make_the_same_page_which_may_fetch_nothing_and_run_its_own_scripts_alone(self):
        page, again = (self.make(made.document(made.network())) for _ in range(2))
        self.assertEqual(page, again)
        its = Reader(page)
        self.assertEqual(its.named("link", "iframe", "img"), [])
        self.assertEqual([one for _, one in its.elements if "src" in one], [])
        policy = next(one["content"] for one in its.named("meta") if "http-equiv" in one)
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe-eval", policy)
        scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        self.assertEqual(len(scripts), 2)
        for script in scripts:
            self.assertIn(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(), policy)

    def test_hostile_names_are_text(self):
        rows = made.network(HOSTILE) + made.row(made.key(what="layer", layer=HOSTILE, algorithm=HOSTILE), 1)
        its = Reader(self.make(made.document(rows, {"processor": HOSTILE, HOSTILE: HOSTILE})))
        plain = Reader(self.make(made.document(made.network("net"))))
        self.assertEqual([tag for tag, _ in its.elements], [tag for tag, _ in plain.elements])
        self.assertEqual([name for _, one in its.elements for name in one if name.startswith("on")], [])
        self.assertIn(HOSTILE, its.sections["networks"]["data"]["networks"])

    def test_a_damaged_file_is_named_in_the_page_and_the_rest_is_there(self):
        its = Reader(self.make(made.document(made.network()), "{", status=1))
        self.assertEqual([os.path.basename(one["file"]) for one in its.data["problems"]], ["file1.json"])
        self.assertIn("file1.json is left out: not usable JSON: ", self.said)
        self.assertEqual((its.data["files"], its.data["title"]), (["file0.json"], "Test CPU"))

    def test_the_networks_come_first_and_a_section_without_data_says_what_fills_it(self):
        empty, its = (Reader(self.make(made.document(rows))) for rows in ((), made.network(more={"grade": "D"})))
        for name in empty.sections.keys() - {"machine", "published"}:
            self.assertRegex(empty.sections[name]["fill"], "^lamina_bench ")
        self.assertEqual([list(one.sections)[0] for one in (empty, its)], ["networks"] * 2)
        self.assertEqual([name for name, one in its.sections.items() if not one["fill"]],
                         ["networks", "cost", "machine", "published"])
        bad = ("Test CPU: grades of rows (A to D): D: 3; load average 0.1 to 0.1. "
               "More --passes, or a quieter machine, gives better ones.")
        self.assertEqual([one.data["warnings"] for one in (empty, its)], [[], [bad]])

    def test_without_a_usable_file_there_is_no_page_and_no_traceback(self):
        out = os.path.join(self.folder, "none.html")
        words = [sys.executable, "-B", REPORT, made.write(self.folder, "bad.json", "{"), "-o", out]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, os.path.exists(out)), (1, False))
        self.assertEqual(len(done.stderr.splitlines()), 2)

    def test_packages_that_cannot_be_installed_are_named_with_the_reason(self):
        for said, text in (
            ("No module named pip", "sudo apt-get install python3-pip"),
            ("noise\nERROR: connection broken", "cannot ask .* jsonschema.*: ERROR: connection broken. Is it"),
            ("noise\nERROR: No matching distribution found for x", "has no jsonschema.*: ERROR: No matching .* for x"),
        ):
            ended = subprocess.CompletedProcess([], 1, "", said)
            folder, pip = mock.patch.dict(os.environ, XDG_CACHE_HOME=self.folder), mock.patch("subprocess.run")
            with folder, pip as run, self.assertRaisesRegex(wheels.WheelError, text):
                run.return_value = ended
                packages.install()

    def test_a_page_of_thousands_of_rows_is_small(self):
        rates = {"flops_per_second": 1e11, "bytes_per_second": 1e10}
        keys = [made.key(what="layer", layer=f"conv{place // 2}", algorithm="x" * place) for place in range(100)]
        layers = [row for place, key in enumerate(keys) for row in made.row(key, 1 + place, **rates)]
        nets = [row for batch in (1, 2, 4, 16) for row in made.network(batch=batch)]
        documents = [made.document(nets + layers, {"commit": f"{number}"}) for number in range(6)]
        self.assertLess(len(self.make(*documents).encode()), 2e6)

    def test_all_stored_files_make_a_page_with_every_section(self):
        self.assertGreater(len(STORED), 20)
        page = self.page_of(STORED)
        its = Reader(page)
        self.assertEqual((its.data["problems"], len(its.data["files"])), ([], len(STORED)))
        for name, section in its.sections.items():
            self.assertTrue(any(section.get(part) for part in ("charts", "tables", "folded")), name)
        raced = made.points(its.sections["comparisons"])[1:]
        self.assertGreater(sum("eigen against torch" in one["pair"] for one in raced), 100)
        gone = {one["pair"].split(", ")[0] for one in raced if not one["run"]}
        self.assertLessEqual(gone, {"eigen against ncnn", "eigen against keras"})  # bench/race has no such peers now
        self.assertLess(len(page.encode()), 4e6)


if __name__ == "__main__":
    made.main()
