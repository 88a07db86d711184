"""The page in a browser: its scripts run without an error and fetch nothing, every chart is drawn, and the price slider
changes the ranking. Skipped where there is no Chromium, or the page's packages are not here."""

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
from results_test import KEY, ledger
from shown import main

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

PRICES = """source,date,configuration,usd_per_hour,note
here,2026-11,Slow CPU,1.0,
here,2026-11,Quick CPU,1.0,
"""

# Runs after the scripts of the page, and leaves what it saw as JSON.
DRIVER = """
const violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
const first = () => document.querySelector("#cost-table tbody th").textContent;
const ranking = () => views.cost.data("ranking").map((one) => one.who);
drawn.then(async () => {
  const seen = {violations, charts: {}, before: first()};
  for (const name of Object.keys(await unpacked("data-charts").json()))
    seen.charts[name] = document.querySelectorAll(`#chart-${name} svg [class*="mark-"] path, #chart-${name} svg text`).length;
  const wait = () => new Promise((done) => setTimeout(done, 300));
  await wait();
  const dots = () => views.speedups.data("speedups").map((one) => [one.network, one.series, one.ratio]);
  const pick = (id, value) => {
    const list = document.getElementById(id);
    list.value = value;
    list.dispatchEvent(new Event("change"));
  };
  seen.dots = dots();
  seen.heads = [...document.querySelectorAll("#networks-one th[scope=col]")].map((one) => one.textContent);
  const rows = [...document.getElementById("networks-against").options];
  pick("networks-against", rows.find((one) => one.text.includes("Slow")).value);
  pick("networks-network", "vgg16");
  await wait();
  seen.dots_against_slow = dots();
  seen.markdown = markdownOf(document.getElementById("networks-one")).split("\\n");
  seen.links = [...document.querySelectorAll("#networks-more a")].map((one) => one.textContent);
  document.querySelector("#networks-more a").click();
  await wait();
  seen.chosen = [views.batches.signal("batch_what"), document.querySelector("#chart-batches select").value];
  seen.ranking = ranking();
  const machine = document.getElementById("cost-machine"), slider = document.getElementById("cost-slider");
  machine.value = [...machine.options].map((one) => one.value).find((one) => one.includes("Slow"));
  machine.dispatchEvent(new Event("change"));
  slider.value = "-3";
  slider.dispatchEvent(new Event("input"));
  await wait();
  seen.after = first();
  seen.ranking_after = ranking();
  seen.usd = document.getElementById("cost-usd").value;
  const heads = [...document.querySelectorAll("#cost-table thead th")].map((one) => one.textContent);
  const slow = [...document.querySelectorAll("#cost-table tbody tr")].find((row) => row.textContent.includes("Slow"));
  seen.energy = slow.cells[heads.indexOf("J / image")].textContent;
  seen.copied = [];
  Object.defineProperty(navigator, "clipboard", {value: {writeText: async (text) => { seen.copied.push(text); }}});
  document.querySelector("#summary dd [data-run]").click();
  await wait();
  copyCommands("first\\nsecond\\nthird");
  await wait();
  seen.said = document.getElementById("said").textContent;
  document.querySelector("#chart-memory svg .mark-rect path").dispatchEvent(new MouseEvent("click", {bubbles: true}));
  await wait();
  seen.fetched = performance.getEntriesByType("resource").map((one) => one.name);
  seen.copies = [...document.querySelectorAll("[data-run]")].filter((one) => one.tagName !== "BUTTON").length;
  const place = document.createElement("pre");
  place.id = "seen-by-test";
  place.textContent = JSON.stringify(seen);
  document.body.append(place);
});
"""


def documents():
    compared = {"name": "net/x", "key": made.key(), "ratio": 1.2, "low": 1.1, "high": 1.3, "verdict": "slower"}
    swept = [one for batch in (1, 2, 4) for one in made.network("vgg16", 10 * batch, batch=batch)]
    threads = [
        one
        for count in ("1", "2")
        for one in made.row(made.key(network="vgg16", differs={"threads": count}), 300 / int(count))
    ]
    epochs = [{"seconds": 2 + i, "loss": 0.5 / (1 + i), "accuracy": 0.8 + 0.05 * i} for i in range(3)]
    lists = {
        "ledgers": [ledger()],
        "memories": [{"key": KEY, "total": 2**22, "steps": made.memory_steps()}],
        "frontiers": [
            {"key": KEY, "complete": True, "lines": [{"node": "c", "pass": "forward", "layers": 2, "algorithms": [made.tried()]}]}
        ],
        "comparisons": [compared],
    }
    rows = made.network() + swept + threads + made.training("mnist_mlp", epochs)
    rows = [one | ({"joules": 8.0} if one["key"]["part"] == "total" else {}) for one in rows]
    facts = {"processor": "Slow CPU", "energy_eigen": "RAPL package-0", "idle_power_w_eigen": "12.5"}
    return [
        made.document(rows, facts, **lists),
        made.document(made.network(forward=50), {"processor": "Quick CPU"}),
    ]


class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            paths = [made.write(folder, f"file{i}.json", one) for i, one in enumerate(documents())]
            prices = made.write(folder, "prices.csv", PRICES)
            page = os.path.join(folder, "page.html")
            assert command.run([*paths, "--prices", prices, "-o", page]) == 0
            with open(page, encoding="utf-8") as file:
                text = file.read()
            # The page allows its own scripts by their checksums, so the test's needs one, too.
            allowed = "'sha256-" + base64.b64encode(hashlib.sha256(DRIVER.encode()).digest()).decode() + "'"
            text = text.replace("script-src ", f"script-src {allowed} ", 1)
            before, end, after = text.rpartition("</body>")
            text = f"{before}<script>{DRIVER}</script>{end}{after}"
            with open(page, "w", encoding="utf-8") as file:
                file.write(text)
            ended = subprocess.run(
                [
                    BROWSER,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    f"--user-data-dir={folder}/profile",
                    "--window-size=1400,900",
                    "--virtual-time-budget=60000",
                    "--enable-logging=stderr",
                    "--dump-dom",
                    f"file://{page}",
                ],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        cls.console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
        seen = re.search(r'<pre id="seen-by-test">(.*?)</pre>', ended.stdout, re.S)
        assert seen, f"the page's scripts did not end: {ended.returncode}, {cls.console}, {ended.stderr[-2000:]}"
        cls.seen = json.loads(html.unescape(seen[1]))

    def test_no_script_complains(self):
        self.assertEqual(self.console, [])
        self.assertEqual(self.seen["violations"], [])

    def test_nothing_is_fetched(self):
        self.assertEqual([name for name in self.seen["fetched"] if not name.startswith(("data:", "blob:"))], [])

    def test_every_chart_is_drawn(self):
        self.assertLessEqual(
            {"speedups", "batches", "threads", "kinds", "roofline", "frontier", "versions", "memory", "cost", "training"},
            set(self.seen["charts"]),
        )
        self.assertEqual([name for name, marks in self.seen["charts"].items() if marks < 3], [])

    def test_networks_are_compared_with_the_row_that_is_chosen(self):
        self.assertEqual(
            self.seen["heads"],
            ["machine", "forward", "backward", "total", "forward ×", "backward ×", "total ×", "images/s"],
        )
        self.assertEqual(
            {(net, who.split(",")[0]) for net, who, _ in self.seen["dots"]},
            {("resnet50", "Slow CPU"), ("resnet50", "Quick CPU"), ("vgg16", "Slow CPU")},
        )
        against_slow = [(net, round(ratio, 6)) for net, _, ratio in self.seen["dots_against_slow"]]
        self.assertEqual(against_slow, [("resnet50", 2)])

    def test_a_table_is_copied_as_it_is_shown(self):
        caption, empty, head, line, *rows = self.seen["markdown"]
        self.assertTrue(caption.startswith("vgg16, ms"))
        self.assertEqual(empty, "")
        self.assertEqual(head, "| machine | forward | backward | total | images/s |")
        self.assertEqual(line, "|---|---:|---:|---:|---:|")
        ours = [row for row in rows if "Slow CPU, Lamina eigen, batch 4" in row]
        self.assertRegex(ours[0], r"^\| Slow CPU, Lamina eigen, batch 4 \| 160 \(15\d – 16\d\) \|")

    def test_a_network_is_followed_into_the_other_sections(self):
        self.assertEqual(self.seen["links"], ["Batches", "Threads"])
        self.assertEqual(self.seen["chosen"], ["vgg16, total"] * 2)

    def test_the_slider_changes_the_ranking(self):
        self.assertIn("Quick", self.seen["before"])
        self.assertIn("Quick", self.seen["ranking"][0])
        self.assertIn("Slow", self.seen["after"])
        self.assertIn("Slow", self.seen["ranking_after"][0])
        self.assertEqual(self.seen["usd"], "0.001")

    def test_the_joules_of_an_image_have_those_of_the_idle_machine_beside_them(self):
        self.assertEqual(self.seen["energy"], "0.5000.235 of it idle")  # 8 J, and 12.5 W for 300.75 ms, of 16 images

    def test_a_click_on_a_sentence_or_a_mark_copies_its_command(self):
        sentence, several, mark = self.seen["copied"]
        self.assertEqual(sentence.split()[:2], ["lamina_bench", "run"])
        self.assertEqual((several, self.seen["said"]), ("first\nsecond\nthird", "Copied: first, and 2 more"))
        self.assertEqual(mark, "lamina_bench memory net --backend=eigen --batch=4")


if __name__ == "__main__":
    if BROWSER is None:
        print(f"SKIPPED: none of {', '.join(BROWSERS)} is on the path")
        sys.exit(77)
    main()
