"""The HTML report in a real headless browser, from disk: it draws, it asks no network, hostile names stay text."""
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from harness import DEMO, SANITIZED, Case, span, teller, trace  # noqa: E402

BROWSER = shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars"]
HOSTILE = "</script><script>document.documentElement.dataset.owned='yes'</script><img src=x onerror=\"document.title='owned'\">\u202e"


class Elements(html.parser.HTMLParser):
    """Counts tags and keeps ids and visible text."""

    def __init__(self):
        super().__init__()
        self.tags = {}
        self.ids = set()
        self.classes = {}
        self.root = {}
        self.text = []
        self.inside = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.ids.add(attrs.get("id"))
        for name in (attrs.get("class") or "").split():
            self.classes[name] = self.classes.get(name, 0) + 1
        if tag == "html":
            self.root = attrs
        if tag in ("script", "style", "noscript"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside:
            self.text.append(data)


@unittest.skipIf(SANITIZED, "the page is the same")
@unittest.skipUnless(BROWSER, "there is no chromium")
class Page(Case):
    def browse(self, path, *extra):
        done = subprocess.run([BROWSER, *FLAGS, f"--user-data-dir={self.folder / 'profile'}", *extra, path.as_uri()],
                              capture_output=True, timeout=120)
        return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def render(self, run):
        page = self.folder / "report.html"
        done = teller("diagnose", run, "--format", "html", "-o", page)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        dom, log = self.browse(page, "--dump-dom", "--enable-logging=stderr", "--v=0")
        self.assertNotRegex(log, r"Content.Security.Policy|Uncaught|Refused to")
        elements = Elements()
        elements.feed(dom)
        self.assertEqual(elements.root.get("data-rendered"), "yes")
        return elements, page

    def test_demo_is_drawn(self):
        elements, page = self.render(DEMO)
        for part in ("verdict", "F1", "E1", "timeline", "steps", "tree", "logs"):
            self.assertIn(part, elements.ids)
        self.assertGreater(elements.tags["rect"], 100)
        self.assertGreater(elements.tags["circle"], 80)
        self.assertGreaterEqual(elements.classes["proof"], 1)
        self.assertIn("KERNEL_REGRESSION", " ".join(elements.text))
        self.assertNotRegex(page.read_text(), r"(src|href)=\"?https?:")

    def test_picture_is_not_blank(self):
        page = self.folder / "report.html"
        teller("diagnose", DEMO, "--format", "html", "-o", page)
        shot = self.folder / "page.png"
        self.browse(page, f"--screenshot={shot}", "--window-size=1200,2400")
        # A blank page of this size compresses to a few kilobytes.
        self.assertGreater(shot.stat().st_size, 60_000)

    def test_hostile_names_stay_text(self):
        for rank in range(2):
            events = []
            for step in range(14):
                slow = 9000 if rank == 1 and step in (6, 7, 8) else 0
                at = 1000 + 20_000 * step
                events += [span(f"decode step {step}", at, 5000 + slow, cat="user_annotation"),
                           span(HOSTILE, at + 10, 4900 + slow, **{"Input Dims": [[4, 4]]})]
            self.write(f"run/rank{rank}.json", trace(events, distributedInfo={"rank": rank, "world_size": 2}))
        self.write("run/server.log", f"2026-01-15 09:30:00,130 ERROR [a.py:1] {HOSTILE}\n")
        elements, page = self.render(self.folder / "run")
        self.assertNotIn("data-owned", elements.root)
        self.assertEqual(elements.tags.get("img", 0), 0)
        self.assertEqual(elements.tags["script"], 2)
        self.assertIn("onerror=", " ".join(elements.text))
        self.assertEqual(len(re.findall(r"<script", page.read_text())), 2)

    def test_run_without_traces_is_drawn(self):
        self.write("run/server.log", "2026-01-15 09:30:00,130 INFO [a.py:1] all is well\n" * 3)
        elements, _ = self.render(self.folder / "run")
        self.assertIn("verdict", elements.ids)


if __name__ == "__main__":
    unittest.main()
