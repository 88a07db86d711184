"""The page in a browser, if there is one: no errors, no downloads, charts, the width of a phone, and prices."""

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import made
from page import command

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

PRICES = """source,date,configuration,usd_per_hour,note
here,2025-11,Slow CPU,9,
here,2026-11,Slow CPU,1.0,
here,2026-12,Slow CPU,0.1,preemptible
here,2026-11,Quick CPU,3.0,
"""

# This script runs after the scripts of the page, and writes its findings as JSON.
DRIVER = """
const violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
const wait = () => new Promise((done) => setTimeout(done, 300));
const pick = (id, value, event = "change") => {
  byId(id).value = value;
  byId(id).dispatchEvent(new Event(event));
};
const all = (selector) => [...document.querySelectorAll(selector)];
const table = (id) => all(`#${id} tbody tr`).map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
const heads = (id) => all(`#${id} thead th`).map((one) => one.textContent);
const optionOf = (id, text) => [...byId(id).options].find((one) => one.text.includes(text)).value;
const ranking = () => views.cost.data("records_0").map((one) => one.who.split(",")[0]);
// The words of the first screen that are broken into two lines.
const broken = () => {
  const found = [], range = document.createRange(), walker = document.createTreeWalker(byId("networks"), 4);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    for (const word of node.textContent.matchAll(/[^\\s_/-]+/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) found.push(word[0]);
    }
  return found;
};
drawn.then(async (data) => {
  const seen = {violations, charts: {}};
  await wait();
  for (const {name} of data.sections.flatMap((section) => section.charts || []))
    seen.charts[name] = all(`#chart-${name} svg :is([class*="mark-"] path, text)`).length;
  seen.links = all("a[href]").filter((one) => !document.querySelector(one.hash)).length;
  const ids = all("main [id]").map((one) => one.id);
  seen.same_ids = ids.length - new Set(ids).size;
  seen.missing = missingOf([{title: "Threads", fill: "run"}, {title: "Memory", fill: "run"}]).textContent;
  seen.sections = all("main section").map((one) => one.id);
  const shown = all("#networks-numbers, #networks-picture, #chart-raced");
  seen.tops = shown.map((one) => Math.round(one.getBoundingClientRect().top));
  seen.broken = broken();
  seen.heads = heads("networks-one");
  seen.numbers = all("#networks-numbers p").map((one) => one.textContent);
  seen.picture = table("networks-picture").map(([who, , ms, ratio]) => [who, ms, ratio]);
  pick("networks-network", "resnet34");
  seen.nearest = byId("networks-numbers").lastChild.textContent;
  pick("networks-network", "resnet50");
  pick("networks-against", optionOf("networks-against", "Slow"));
  seen.speed_up = table("networks-one").find(([who]) => who.startsWith("Quick"))[6];
  pick("networks-network", "vgg16");
  await wait();
  seen.one = [heads("networks-one"), ...table("networks-one")];
  for (const details of all("details")) details.open = true;
  await wait();
  document.querySelector("#batches thead button").click();
  seen.chart_table = [heads("batches"), table("batches")[0]];
  document.querySelector("#batches th:nth-child(3) button").click();
  document.querySelector("#batches th:nth-child(3) button").click();
  seen.sorted = table("batches").map((row) => row[2]).slice(0, 3);
  seen.cost_heads = heads("cost-table");
  seen.cost = table("cost-table").slice(0, 2);
  byId("cost-preemptible").click();
  seen.preemptible = table("cost-table").find((row) => row[0].includes("Slow"))[3];
  byId("cost-preemptible").click();
  seen.ranking = ranking();
  pick("cost-machine", optionOf("cost-machine", "Quick"));
  pick("cost-slider", "-3", "input");
  await wait();
  seen.ranking_after = ranking();
  seen.usd = byId("cost-usd").value;
  pick("cost-what", "resnet34, training pass");
  seen.unpriced = views.cost.data("records_0").map((one) => [one.who.split(",")[0], one.said]);
  seen.copied = [];
  Object.defineProperty(navigator, "clipboard", {value: {writeText: async (text) => { seen.copied.push(text); }}});
  document.querySelector("#networks-picture [data-run]").click();
  await wait();
  seen.said = byId("said").textContent;
  document.querySelector("#chart-memory svg .mark-rect path").dispatchEvent(new MouseEvent("click", {bubbles: true}));
  await wait();
  seen.fetched = performance.getEntriesByType("resource").map((one) => one.name);
  seen.width = [document.documentElement.scrollWidth, innerWidth];
  document.body.append(make("pre", {id: "seen-by-test", hidden: true}, JSON.stringify(seen)));
  parent.postMessage(JSON.stringify(seen), "*");
});
"""
# A frame as wide as a phone shows the page, because a window cannot be so narrow.
FRAME = """<iframe src="page.html" style="width:400px;height:900px"></iframe>
<script>onmessage = (event) => document.body.append(Object.assign(document.createElement("pre"),
  {id: "seen-by-test", textContent: event.data}));</script>"""


def documents():
    swept = [one for batch in (1, 2, 4) for one in made.network("vgg16", 10 * batch, batch=batch)]
    threads = {count: made.key(network="vgg16", differs={"threads": count}) for count in ("1", "2")}
    threads = [one for count, key in threads.items() for one in made.row(key, 300 / int(count))]
    epochs = [{"seconds": 2 + i, "loss": 0.5 / (1 + i), "accuracy": 0.8 + 0.05 * i} for i in range(3)]
    lists = {"ledgers": [made.ledger()], "memories": [made.memory()], "comparisons": [made.comparison()]}
    lists["frontiers"] = [made.frontier(("c", 2, [made.tried()]))]
    rows = made.network(factors=[1] * 6) + made.network("resnet34", 2000) + made.network("alexnet")
    rows += swept + threads + made.training("mnist_mlp", epochs)
    facts = {"processor": "Slow CPU"}
    quick = made.document(made.network(forward=50, factors=[1] * 6), {"processor": "Quick CPU"})
    unpriced = made.document(made.network("resnet34", 1000, more={"grade": "D"}))
    return [made.document(rows, facts, **lists), quick, unpriced, made.raced("vgg19")]


def open_page(folder, name):
    """(the findings of DRIVER, the lines of the console)."""
    flags = "--headless --no-sandbox --disable-gpu --window-size=1400,900 --virtual-time-budget=60000".split()
    flags += [f"--user-data-dir={folder}/profile", "--enable-logging=stderr", "--dump-dom", f"file://{folder}/{name}"]
    ended = subprocess.run([BROWSER, *flags], capture_output=True, text=True, timeout=300, check=False)
    console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
    seen = re.search(r'<pre id="seen-by-test"[^>]*>(.*?)</pre>', ended.stdout, re.S)
    assert seen, f"the page's scripts did not end: {ended.returncode}, {console}, {ended.stderr[-2000:]}"
    return json.loads(html.unescape(seen[1])), console


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            paths = [made.write(folder, f"file{i}.json", one) for i, one in enumerate(documents())]
            page = os.path.join(folder, "page.html")
            assert command.run([*paths, "--prices", made.write(folder, "prices.csv", PRICES), "-o", page]) == 0
            with open(page, encoding="utf-8") as file:
                text = file.read()
            # The page allows only scripts with known checksums, so the test's script needs a checksum, too.
            allowed = "'sha256-" + base64.b64encode(hashlib.sha256(DRIVER.encode()).digest()).decode() + "'"
            text = text.replace("script-src ", f"script-src {allowed} ", 1)
            before, end, after = text.rpartition("</body>")
            made.write(folder, "page.html", f"{before}<script>{DRIVER}</script>{end}{after}")
            made.write(folder, "phone.html", FRAME)
            cls.seen, cls.console = open_page(folder, "page.html")
            cls.phone, more = open_page(folder, "phone.html")
            cls.console += more

    def test_no_script_complains_and_nothing_is_fetched(self):
        self.assertEqual((self.console, self.seen["violations"]), ([], []))
        self.assertEqual([name for name in self.seen["fetched"] if not name.startswith(("data:", "blob:"))], [])

    def test_every_chart_is_drawn_and_nothing_is_wider_also_on_a_phone(self):
        names = "raced batches threads kinds roofline frontier comparisons memory cost training"
        for seen in self.seen, self.phone:
            self.assertLessEqual(set(names.split()), set(seen["charts"]))
            self.assertEqual([name for name, marks in seen["charts"].items() if marks < 3], [])
            self.assertEqual((seen["links"], seen["same_ids"], seen["width"][0] <= seen["width"][1]), (0, 0, True))
        self.assertEqual(self.phone["width"][1], 400)

    def test_networks_are_compared_with_the_row_that_is_chosen(self):
        heads = ["machine", "forward", "backward", "total", "forward ×", "backward ×", "total ×", "images/s"]
        self.assertEqual((self.seen["heads"], self.seen["speed_up"]), (heads, "×2.00"))

    def test_the_first_screen_has_the_numbers_the_picture_and_the_race_and_breaks_no_word(self):
        self.assertEqual((self.seen["sections"][0], self.seen["sections"][-2:]), ("networks", ["machine", "published"]))
        self.assertRegex(self.seen["missing"], r"^Not in these files \(.*\): Threads, Memory$")
        for seen, lowest in (self.seen, 600), (self.phone, 1500):
            self.assertEqual((seen["broken"], seen["tops"]), ([], sorted(seen["tops"])))
            self.assertLess(seen["tops"][2], lowest)
        time, race, near = self.seen["numbers"]
        self.assertRegex(time, "^150 ms resnet50, .*: Quick CPU, .*; half of 6 passes: 150 – 150 ms; not graded$")
        self.assertRegex(race, "^×2.00 the speed of PyTorch .*, Test CPU, for Lamina eigen: mean of 2 .* \\(1.25 – 2.50\\)$")
        self.assertEqual(near, "×0.999 as fast as the nearest published machine, GTX 1080, cuDNN 5.1.05")
        rows = [who for who, _, _ in self.seen["picture"]]
        self.assertEqual(self.seen["picture"][0], ["GTX 1080 Ti", "101", "×1.48"])
        self.assertEqual(rows.count("GTX 1080"), 1)  # only one of its four rows is shown
        self.assertLessEqual({"Quick CPU, Lamina eigen", "Slow CPU, Lamina eigen"}, set(rows))

    def test_the_nearest_published_machine_may_lack_another_of_our_networks(self):
        self.assertRegex(self.seen["nearest"], "^×1.32 as fast as the nearest .*, Dual Xeon E5-2630 v3, Torch nn$")

    def test_a_machine_without_a_price_is_in_the_ranking(self):
        said = "no price; the cheapest below 2.00 USD/h"
        self.assertEqual(self.seen["unpriced"], [["Slow CPU", "104"], ["Test CPU", said]])

    def test_a_table_has_times_with_their_quartiles_and_is_sorted_by_its_heads(self):
        heads, *rows = self.seen["one"]
        self.assertEqual(heads, ["machine", "forward", "backward", "total", "images/s"])
        ours = [row[1:] for row in rows if row[0] == "Slow CPU, Lamina eigen, batch 4"]
        self.assertEqual(ours, [["160 159 – 161", "321 318 – 323", "481 476 – 484", "33.3"]])
        self.assertEqual(self.seen["sorted"], ["4", "2", "1"])

    def test_what_a_chart_shows_is_in_a_table(self):
        heads, row = self.seen["chart_table"]
        self.assertEqual(heads, "Network|machine|batch|passes|ms per image|middle half from|to|again".split("|"))
        self.assertEqual(row[:6], ["vgg16, total", "Slow CPU, Lamina eigen", "1", "6", "30.1", "29.8"])

    def test_dollars_are_hours_times_the_price(self):
        heads = self.seen["cost_heads"]
        self.assertEqual(heads[1:5], ["USD / million images", "USD / ImageNet epoch", "USD/h", "wins below USD/h"])
        # 300 ms for 16 images are 5.21 hours for a million images. The quick machine takes half as long.
        slow, quick = self.seen["cost"]
        self.assertEqual(slow[1:7], ["5.21", "6.67", "1.00", "1.50", "5.21", "copy"])
        self.assertEqual(quick[1:6], ["7.81", "10.0", "3.00", "2.00", "2.60"])
        self.assertEqual(self.seen["preemptible"], "0.100")

    def test_the_slider_changes_the_ranking(self):
        self.assertEqual(self.seen["ranking"], ["Slow CPU", "Quick CPU"])
        self.assertEqual(self.seen["ranking_after"], ["Quick CPU", "Slow CPU"])
        self.assertEqual(self.seen["usd"], "0.001")

    def test_a_click_on_a_number_or_a_mark_copies_its_command(self):
        commands = ["run net/vgg16/total/eigen/f32/nchw/batch:1", "lamina_bench memory net"]
        self.assertEqual((self.seen["copied"], self.seen["said"]), (commands, f"Copied: {commands[0]}"))


if __name__ == "__main__":
    if BROWSER is None:
        print(f"SKIPPED: none of {', '.join(BROWSERS)} is on the path")
        sys.exit(77)
    made.main()
