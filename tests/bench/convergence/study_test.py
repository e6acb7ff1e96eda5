"""The study's choices, its results, its page and its curves, on runs that a formula answers instead of the program."""
import json
import pathlib
import sys
import tempfile
import unittest
from xml.etree import ElementTree

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"
sys.path[:0] = [str(BENCH / "convergence"), str(BENCH)]
import cost  # noqa: E402
import curves  # noqa: E402
import lab  # noqa: E402
import questions  # noqa: E402
import study  # noqa: E402
import tuning  # noqa: E402

METHOD = "deltas, H = 1, K = 32"


class FakeLab(lab.Lab):
    """Best at rate 8e-3 and decay 0.9; counts what it was asked to run."""

    def _run(self, run):
        loss = 2 + abs(run.lr - 8e-3) + abs((run.value("beta") or 0) - 0.9) + run.seed / 1000
        line = {"run": lab.described(run, self.names[run.text]), "curve": [[0, 0, 5, 0, 0], [300, 614400, loss, 3e5, 6e5]], "suspected": {"7": 30}}
        self.seconds.append(1)
        self._keep(run, line)
        return line


class RunTest(unittest.TestCase):
    def test_keeps_settings_of_deltas_apart(self):
        run = tuning.deltas(5, 32, beta=0.8)
        self.assertEqual((run.value("beta"), run.beta), (0.8, None))
        changed = run.having(beta=0.9, lr=1e-3, rho=0.25)
        self.assertEqual(dict(changed.deltas), {"beta": 0.9, "k": 32, "rho": 0.25, "window": 5})
        self.assertEqual(changed.having(rho=None, beta=0.8, lr=4e-3), run)
        self.assertEqual(lab.Run(method="signs").having(beta=0.9).beta, 0.9)

    def test_omits_defaults_of_program(self):
        self.assertNotIn("beta", lab.Run(method="adamw").config())
        self.assertEqual(lab.Run(method="signs", k=16).config()["kept_per_block"], 16)
        self.assertEqual(json.loads(tuning.deltas(1, 8).flags()[-1]), {"k": 8, "window": 1})


class StudyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)
        self.text = self.out / "text.txt"
        self.text.write_text("text")

    def lab(self, jobs):
        return FakeLab(self.out, [self.text], self.out, self.out / "results", jobs)

    def test_climbs_until_every_neighbour_loses(self):
        best, tried = tuning.tuned(self.lab(1), METHOD)
        self.assertEqual((best.lr, best.value("beta")), (8e-3, 0.9))
        self.assertEqual(tried, str(self.lab(1).count()))

    def test_tunes_methods_and_gives_rows(self):
        rows = questions.methods(self.lab(2)).splitlines()[2:]
        self.assertEqual([row.split(" | ")[0].lstrip("| ") for row in rows], list(tuning.METHODS))
        self.assertNotIn(tuning.NOT_RUN, "".join(rows))

    def test_says_that_climb_is_unfinished(self):
        first = tuning.METHODS[METHOD][0]
        self.lab(1).losses([first, first.having(lr=8e-3)])
        best, tried = tuning.tuned(self.lab(0), METHOD)
        self.assertEqual((best.lr, tried), (8e-3, "2 so far"))

    def test_runs_nothing_without_jobs(self):
        with self.assertRaises(lab.NotRun):
            tuning.tuned(self.lab(0), METHOD)
        self.assertEqual(self.lab(0).count(), 0)

    def test_reads_results_of_other_machines(self):
        tuning.tuned(self.lab(1), METHOD)
        self.assertEqual(tuning.tuned(self.lab(0), METHOD), tuning.tuned(self.lab(1), METHOD))
        self.text.write_text("another text")
        self.assertEqual(self.lab(0).known([tuning.METHODS[METHOD][0]]), {}, "another text is another run")

    def test_skips_known_run(self):
        one = self.lab(1)
        one.losses([tuning.deltas(1, 32)] * 2)
        self.lab(1).losses([tuning.deltas(1, 32)])
        self.assertEqual(len((self.out / "results/deltas.jsonl").read_text().splitlines()), 1)

    def test_gives_tables_of_what_is_known(self):
        for name, question in questions.QUESTIONS.items():
            try:
                self.assertTrue(question(self.lab(0)).startswith("| "), name)
            except lab.NotRun:
                pass

    def test_writes_page_and_says_what_is_missing(self):
        page = self.out / "page.md"
        page.write_text("".join(f"<!-- table: {name} -->\n<!-- end -->\n" for name in (*questions.QUESTIONS, "conditions")))
        self.lab(1).losses([tuning.BASES[0][1], tuning.BASES[0][1].having(values="float")])
        study.write_report(self.lab(0), [page])
        text = page.read_text()
        self.assertNotIn("AdamW, All-Reduce", text)
        self.assertIn("9 rows have not been run yet.", text)
        self.assertIn("Not answered yet", text)
        self.assertIn("| H = 1, floats | 2.209 | 1 kB | 2 kB |", text)
        study.write_report(self.lab(0), [page])
        self.assertEqual(page.read_text(), text)

    def test_draws_what_was_tuned(self):
        tuning.tuned(self.lab(1), "AdamW, All-Reduce")
        study.draw_cost(self.lab(0), self.out)
        texts = [text.text for text in ElementTree.parse(self.out / "learning_cost.svg").findall(".//{*}text")]
        self.assertIn("AdamW, All-Reduce", texts)
        self.assertNotIn("signs, K = 32", texts)

    def test_refuses_page_without_place(self):
        page = self.out / "page.md"
        page.write_text("nothing\n")
        with self.assertRaises(SystemExit):
            study.write_report(self.lab(0), [page])

    def test_repeats_run_without_suspected_worker(self):
        rows = questions.attackers(self.lab(1)).splitlines()
        self.assertIn("| H = 1, random signs | caps as they are | 2.209 | 30 | 2.209 |", rows)


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

    def test_leaves_out_zero_on_logarithmic_axis(self):
        drawn = ElementTree.fromstring(curves.chart("", "", [("a", 0, "", [(0, 5), (10, 4), (1000, 3)])], True))
        line = drawn.find(".//{*}polyline").get("points").split()
        self.assertEqual([point.split(",")[0] for point in line], [f"{curves.LEFT}.0", f"{curves.WIDTH - curves.RIGHT}.0"])

    def test_times_exchange_by_slower_direction(self):
        point = {"round": 0, "sent_bytes": 1000, "received_bytes": 4000}
        self.assertEqual(curves.seconds(point, up=8000, down=80000), 1)
        self.assertEqual(curves.seconds(point, up=80000, down=8000), 4)


class CostTest(unittest.TestCase):
    def test_draws_point_and_name_inside_picture(self):
        drawn = ElementTree.fromstring(cost.chart("", {"<cheap>": (0.1, 2), "dear": (28, 1.8)}))
        self.assertEqual(len(drawn.findall(".//{*}circle")), 2)
        cheap, dear = (next(text for text in drawn.findall(".//{*}text") if text.text == name) for name in ("<cheap>", "dear"))
        self.assertEqual((cheap.get("text-anchor"), dear.get("text-anchor")), ("start", "end"))


if __name__ == "__main__":
    unittest.main()
