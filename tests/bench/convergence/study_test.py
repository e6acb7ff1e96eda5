"""The study's choices, its page and its curves, on runs that a formula answers instead of the program."""
import csv
import dataclasses
import pathlib
import sys
import tempfile
import unittest
from xml.etree import ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench/convergence"))
import curves  # noqa: E402
import lab  # noqa: E402
import study  # noqa: E402


class FakeLab(lab.Lab):
    """Best at rate 5e-3 and decay 0.9; counts what it was asked to run."""

    def _run(self, run):
        loss = 2 + abs(run.lr - 5e-3) + abs(run.beta - 0.9) + run.seed / 1000
        with open(self._csv(run), "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["round", "tokens", "held_out_loss", "sent_bytes", "received_bytes", "seconds"])
            rows.writerow([0, 0, 5, 0, 0, 0])
            rows.writerow([300, 614400, loss, 3e5, 6e5, 1])
        self.seconds.append(1)
        return run, loss


class StudyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)
        (self.out / "model").mkdir()  # so that none is made
        self.text = self.out / "text"
        self.text.write_text("text")

    def lab(self, jobs):
        return FakeLab("convergence", "distroctl", self.text, self.out, jobs)

    def test_climbs_until_every_neighbour_loses(self):
        best, tried = study.distro(self.lab(1))
        self.assertEqual((best.lr, best.beta), (5e-3, 0.9))
        self.assertEqual(tried, str(self.lab(1).count()))

    def test_a_climb_that_was_not_finished_says_so(self):
        self.lab(1).losses([study.Run(lr=2e-3, beta=0.95), study.Run(lr=5e-3, beta=0.95)])
        best, tried = study.distro(self.lab(0))
        self.assertEqual((best.lr, tried), (5e-3, "2 so far"))

    def test_a_lab_without_jobs_runs_nothing(self):
        with self.assertRaises(lab.NotRun):
            study.distro(self.lab(0))
        self.assertEqual(self.lab(0).count(), 0)

    def test_what_was_run_is_read_back(self):
        study.distro(self.lab(1))
        self.assertEqual(study.distro(self.lab(0)), study.distro(self.lab(1)))

    def test_the_page_has_what_is_known_and_says_what_is_not(self):
        page = self.out / "page.md"
        page.write_text("".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in (*study.QUESTIONS, "conditions")))
        best, _ = study.distro(self.lab(1))
        self.lab(1).curves([dataclasses.replace(best, overlap=1)])
        study.write_report(self.lab(0), page)
        text = page.read_text()
        self.assertIn("| All-Reduce, AdamW | not run yet |", text)
        self.assertIn("| 1 | 2.001 (one seed) |", text)
        study.write_report(self.lab(0), page)
        self.assertEqual(page.read_text(), text)

    def test_a_page_without_a_place_for_a_table_is_refused(self):
        page = self.out / "page.md"
        page.write_text("nothing\n")
        with self.assertRaises(SystemExit):
            study.write_report(self.lab(0), page)


def points(*losses):
    return [{"round": i * 30, "tokens": i * 61440, "held_out_loss": loss, "sent_bytes": i * 5e4, "received_bytes": i * 2e5}
            for i, loss in enumerate(losses)]


class CurvesTest(unittest.TestCase):
    def test_draws_three_charts_with_a_line_and_a_name_of_each_curve(self):
        with tempfile.TemporaryDirectory() as folder:
            curves.draw({"AdamW": points(5, 3, 2.5), "<DisTrO>": points(5, 4, 3)}, pathlib.Path(folder))
            for name, lines in (("tokens", 2), ("bytes", 2), ("time", 4)):
                tree = ElementTree.parse(f"{folder}/learning_{name}.svg")
                self.assertEqual(len(tree.findall(".//{*}polyline")), lines)
                texts = " ".join(text.text for text in tree.findall(".//{*}text"))
                self.assertIn("<DisTrO>", texts)
                self.assertIn("nats a byte", texts)

    def test_a_logarithmic_axis_leaves_out_what_begins_at_nothing(self):
        drawn = ElementTree.fromstring(curves.chart("", "", [("a", 0, "", [(0, 5), (10, 4), (1000, 3)])], True))
        line = drawn.find(".//{*}polyline").get("points").split()
        self.assertEqual([point.split(",")[0] for point in line], [f"{curves.LEFT}.0", f"{curves.WIDTH - curves.RIGHT}.0"])

    def test_an_exchange_takes_as_long_as_the_slower_direction(self):
        point = {"round": 0, "sent_bytes": 1000, "received_bytes": 4000}
        self.assertEqual(curves.seconds(point, up=8000, down=80000), 1)
        self.assertEqual(curves.seconds(point, up=80000, down=8000), 4)


if __name__ == "__main__":
    unittest.main()
