"""The documents are true to the tree: links lead somewhere, commands exist, the demo says what the README shows."""
import re
import unittest

from harness import DEMO, ROOT, Case, teller

PAGES = sorted(p for p in ROOT.rglob("*.md") if "build" not in p.relative_to(ROOT).parts)


class Documents(Case):
    def test_links_lead_to_files(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}")

    def test_every_module_has_its_page(self):
        for module in sorted(p for p in (ROOT / "src").iterdir() if p.is_dir()):
            self.assertTrue((module / "README.md").exists(), module.name)

    def test_options_of_the_reference_exist(self):
        text = (ROOT / "docs" / "reference" / "cli.md").read_text()
        commands = ("diagnose", "inspect", "tree", "logs", "requests", "request", "whatif", "export", "lab list", "lab check", "lab retime", "lab simulate", "lab score",
                    "tpe train", "tpe encode", "tpe decode",
                    "tpe stats", "tpe sweep")
        help_text = "".join(teller(*c.split(), "--help").stdout.decode() for c in commands)
        for option in set(re.findall(r"`(?:-\w, )?(--[a-z-]+)", text)) - {"--version"}:
            self.assertIn(option, help_text)
        for option in set(re.findall(r"(--[a-z-]+)", help_text)):
            self.assertIn(option, text)

    def test_readme_shows_what_the_demo_says(self):
        # Durations move when what counts as normal is estimated better; what is said about the culprit may not.
        words = lambda text: " ".join(re.sub(r"\d[\d.,:e-]*", "#", text).split())
        said = words(teller("diagnose", DEMO).stdout.decode())
        shown = (ROOT / "README.md").read_text().split("(shortened):")[1].split("## What it reads")[0]
        for part in re.split(r"\.\.\.|\n\s*\n", shown):
            part = words(part)
            for line in re.split(r" (?=victims|evidence|F1|module|operator|culprit|read|rank #:|do first)", part):
                self.assertIn(line.strip(" ,"), said)

    def test_verbs_of_dev_are_documented(self):
        usage = (ROOT / "dev").read_text()
        for verb in ("setup", "build", "test", "lint", "fmt", "bench", "fuzz", "demo", "lab", "teller", "all"):
            self.assertRegex(usage, rf"\n  {verb}\b")


if __name__ == "__main__":
    unittest.main()
