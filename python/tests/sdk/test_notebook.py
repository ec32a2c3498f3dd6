"""Boards of jobs in notebooks: their HTML, the live one, its script in a real browser, and the example notebook."""

import importlib.util
import json
import shutil
import unittest
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import sojourn
from sojourn.job.views import Point, Status, Trial
from sojourn.notebook import board, chart
from sojourn.notebook.snapshot import Host, Snapshot
from support import PACKAGE, TABLE, Site

ROOT = PACKAGE.parent
NOTEBOOK = ROOT / "examples/python/search.ipynb"
CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = "<img src=x onerror=\"document.title='run'\">&'\"</section><script>document.title='run'</script>"
HAS_WIDGETS = importlib.util.find_spec("anywidget") is not None
HAS_BROWSER = CHROMIUM.exists() and importlib.util.find_spec("playwright") is not None


def status(state="running", **given):
    figures = {"trials": 3, "trials_ended": 1, "hops": 6, "hops_expected": 12, "value": 0.9, "best_name": "best"}
    words = {"job": 7, "name": "digits", "metric": "valid/accuracy", "waiting": None, "seconds_left": 5.0, "raw": {}}
    return Status(**{**figures, **words, "state": state, **given})


def trial(number, curve, phase="running", metric="valid/accuracy", **given):
    best = max(curve, default=None)
    made = {"name": f"mlp {number}", "values": {"lr": 0.01 * number}, "checkpoint": None, "reason": None, "raw": {}}
    at = curve.index(best) if curve else None
    points = tuple(Point(epoch, {metric: value, "valid/loss": 1 - value}, None) for epoch, value in enumerate(curve))
    figures = {"epochs": len(curve), "value": best, "best_epoch": at, "metrics": {}, "curve": points}
    return Trial(**{**made, **given}, **figures, trial=number, phase=phase)


def snapshot(of=None, trials=None, hosts=()):
    trials = trials if trials is not None else [trial(0, [0.5, 0.7]), trial(1, [0.6, 0.9]), trial(2, [])]
    return Snapshot(of or status(), trials, hosts, True, datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc))


class Tags(HTMLParser):
    """The tags of a text, and its words."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]

    def handle_data(self, data):
        self.words.append(data)


class Html(unittest.TestCase):
    def test_a_board_has_progress_curves_leaders_and_hosts(self):
        text = board.page(snapshot(hosts=[Host("mill", 1, 4)]))
        words = " ".join(Tags(text).words)
        for said in ("digits", "job 7", "running", "0.9000", "1 of 3", "6 of 12", "about 5 s", "mill", "1 of 4 slots busy"):
            self.assertIn(said, words)
        self.assertIn("as of 2026-01-02 03:04:05 UTC", words)
        self.assertEqual([text.count(f'<tr data-trial="{number}">') for number in range(3)], [1, 1, 1])
        self.assertLess(text.index('<tr data-trial="1">'), text.index('<tr data-trial="0">'), "the best comes first")
        self.assertIn('aria-valuenow="50"', text)

    def test_all_text_of_a_job_is_escaped(self):
        hostile = status("running", name=HOSTILE, waiting=HOSTILE, metric=HOSTILE, raw={"note": HOSTILE})
        bad = {"metric": HOSTILE, "name": HOSTILE, "values": {HOSTILE: HOSTILE}, "reason": HOSTILE}
        trials = [trial(0, [0.5], **bad), trial(1, [], "failed", **bad)]
        text = board.page(snapshot(hostile, trials, [Host(HOSTILE, 0, 1)])) + board.problem(HOSTILE, HOSTILE)
        found = Tags(text)
        self.assertEqual({"img", "script"} & set(found.tags), set())
        self.assertNotIn("onerror", found.attributes)
        self.assertEqual(found.tags.count("section"), 2)
        self.assertGreater("".join(found.words).count(HOSTILE), 8)

    def test_a_board_stays_small_however_many_trials_there_are(self):
        many = [trial(number, [number / 1000] * 20) for number in range(1000)]
        text = board.page(snapshot(trials=many, hosts=[Host("mill", 70, 100)] * 50))
        self.assertLess(len(text), 400_000)
        self.assertIn("and 990 further trials", text)
        self.assertIn("The best 100 of 1000 trials.", text)
        self.assertIn("and 38 more", text)

    def test_no_trial_no_host_and_no_right_to_see_hosts_are_said(self):
        self.assertIn("no trial yet", board.page(snapshot(trials=[])))
        self.assertIn("no host works for the server", board.page(snapshot()))
        self.assertNotIn("hosts", board.board(snapshot(hosts=None), is_live=True).replace('data-part="hosts"', ""))

    def test_a_loss_that_explodes_does_not_flatten_the_others(self):
        calm = [trial(number, [0.5, 0.6, 0.7]) for number in range(9)]
        text = chart.chart("valid/accuracy", [*calm, trial(9, [0.5, 1e9, float("nan")])])
        self.assertIn("Points beyond the chart: 1.", text)
        self.assertNotIn("nan", text.lower())
        for values in ([1.0], [2.0, 2.0], [0.0], [-5.0, 1e-9], [1e12, 1.0]):
            self.assertIn("<svg", chart.chart("valid/accuracy", [trial(0, values)]), values)
        self.assertEqual(chart.chart("valid/f1", calm), "")

    def test_a_server_that_is_gone_is_a_sentence(self):
        server = sojourn.Server("http://127.0.0.1:1")
        with mock.patch("sojourn.server.api.time.sleep"):
            text = sojourn.Job(server, 3)._repr_html_()
        self.assertIn("&lt;job 3 on http://127.0.0.1:1&gt;", text)


LIVE = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config
from unittest import mock
import sojourn.job.waiting
from sojourn.notebook import live

live.MIN_PAUSE = 0.05
shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
search = sojourn.Search(sojourn.mlp(hidden=[16]), data=(X, y), epochs=25, name="live")
with capture_output() as shown:
    job = search.submit()
    shell.display_formatter.format(job)
    print("NOT LIVE", len(shown.outputs))
    shell.kernel = object()
    shell.display_formatter.format(job), shell.display_formatter.format(job)
    (board,) = live._boards.values()
    first = board.widget.html
    board.wait()
print(shown.stdout.strip())
one, other, *last = shown.outputs
widget = "application/vnd.jupyter.widget-view+json"
print("LIVE", sorted(one.data) == sorted(["text/html", "text/plain", widget]), one.data[widget] == other.data[widget])
print("MOVED", "updated while" in first, first != board.widget.html, "finished" in board.widget.html)
print("LAST", len(last), {"finished" in output.data["text/html"] for output in last}, {widget in output.data for output in last})
bundle, _ = shell.display_formatter.format(job)
print("ENDED", sorted(bundle))
"""

CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
shell.user_module.__dict__.pop("__file__", None)
boards = 0
for cell in json.load(open(sys.argv[0].replace("run.py", "search.ipynb")))["cells"]:
    if cell["cell_type"] == "code":
        done = shell.run_cell("".join(cell["source"]), store_history=True)
        done.raise_error()
        if done.result is not None:
            boards += "sojourn-board" in shell.display_formatter.format(done.result)[0]["text/html"]
print("BOARDS", boards)
"""


@unittest.skipUnless(HAS_WIDGETS, "needs anywidget")
class Notebooks(Site):
    def test_a_board_is_live_until_its_job_ends_and_html_then(self):
        said = self.ran(TABLE + LIVE)
        for line in ("NOT LIVE 0", "LIVE True True", "MOVED True True True", "LAST 2 {True} {False}"):
            self.assertIn(line, said)
        self.assertIn("ENDED ['text/html', 'text/plain']", said)

    def test_the_example_runs(self):
        (self.folder / "python").mkdir()
        shutil.copytree(ROOT / "examples/digits", self.folder / "digits")
        shutil.copy(NOTEBOOK, self.folder / "python")
        before = "import os\nos.chdir('python')\n"
        said = self.ran(before + CELLS, "python/run.py")
        self.assertIn("BOARDS 2", said)
        self.assertIn("12 of 12 trials ended", said)
        self.assertIn("[0 1 2 3 4 5 6 7 8 9]", said)

    def test_the_example_has_no_outputs(self):
        cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
        self.assertEqual([cell for cell in cells if cell.get("outputs")], [])


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>calm</title>
<style>body {{ background: #fff; color: #1c2024 }}
@media (prefers-color-scheme: dark) {{ body {{ background: #14171a; color: #e6e9ec }} }} {style}</style><main><h1>a notebook</h1><div id="output"></div></main>
<script type="module">
{script}
let changed;
const model = {{ html: {first}, get: () => model.html, on: (_, call) => (changed = call), off() {{}} }};
render({{ model, el: document.querySelector("#output") }});
window.show = (html) => {{ model.html = html; changed(); }};
</script></html>"""


@unittest.skipUnless(HAS_BROWSER, "needs playwright and Chromium")
class Browser(unittest.TestCase):
    """The script of the live board in Chromium, wide and narrow, in a light and a dark theme."""

    def test_a_board_can_be_read_and_keeps_what_its_reader_has_opened(self):
        from playwright.sync_api import sync_playwright

        first = board.board(snapshot(status(name=HOSTILE), hosts=[Host("mill", 1, 4)]), is_live=True)
        second = board.board(snapshot(status(hops=9, name=HOSTILE), [trial(0, [0.1]), trial(1, [0.2, 0.3])]), is_live=True)
        script = (board.FOLDER / "board.js").read_text(encoding="utf-8")
        text = PAGE.format(style=board.STYLE.read_text(encoding="utf-8"), script=script, first=_literal(first))
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
            for scheme, width in (("light", 1200), ("dark", 320)):
                with self.subTest(scheme=scheme, width=width):
                    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}, offline=True)
                    page = context.new_page()
                    faults = []
                    page.on("pageerror", lambda fault, faults=faults: faults.append(fault))
                    page.set_content(text)
                    self._is_accessible(page)
                    page.locator("summary").click()
                    page.locator(".wide").focus()
                    page.evaluate("html => show(html)", second)
                    self.assertEqual(page.locator("[role=progressbar]").get_attribute("aria-valuenow"), "75")
                    self.assertTrue(page.locator("details").evaluate("one => one.open"), "losses stay open")
                    self.assertTrue(page.locator(".wide").evaluate("one => one === document.activeElement"))
                    page.locator("tr[data-trial='1'] th").hover()
                    self.assertEqual(page.locator("g.lit").first.get_attribute("data-trial"), "1")
                    self.assertEqual(page.title(), "calm", "a job's name is text")
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    self.assertEqual(faults, [])
                    context.close()
            chromium.close()

    def _is_accessible(self, page):
        if importlib.util.find_spec("axe_playwright_python") is None:
            return
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(page)
        self.assertEqual(found.violations_count, 0, found.generate_report())


def _literal(text):
    """A text as a literal of JavaScript within HTML."""
    return json.dumps(text).replace("<", "\\u003c")


if __name__ == "__main__":
    unittest.main()
