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
    def test_a_setting_of_deltas_is_no_field_of_other_methods(self):
        run = tuning.deltas(5, 32, beta=0.8)
        self.assertEqual((run.value("beta"), run.beta), (0.8, None))
        changed = run.having(beta=0.9, lr=1e-3, rho=0.25)
        self.assertEqual(dict(changed.deltas), {"beta": 0.9, "k": 32, "rho": 0.25, "window": 5})
        self.assertEqual(changed.having(rho=None, beta=0.8, lr=4e-3), run)
        self.assertEqual(lab.Run(method="signs").having(beta=0.9).beta, 0.9)

    def test_what_is_left_to_the_program_is_not_in_its_configuration(self):
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

    def test_every_method_is_tuned_and_has_a_row(self):
        rows = questions.methods(self.lab(2)).splitlines()[2:]
        self.assertEqual([row.split(" | ")[0].lstrip("| ") for row in rows], list(tuning.METHODS))
        self.assertNotIn(tuning.NOT_RUN, "".join(rows))

    def test_a_climb_that_was_not_finished_says_so(self):
        first = tuning.METHODS[METHOD][0]
        self.lab(1).losses([first, first.having(lr=8e-3)])
        best, tried = tuning.tuned(self.lab(0), METHOD)
        self.assertEqual((best.lr, tried), (8e-3, "2 so far"))

    def test_a_lab_without_jobs_runs_nothing(self):
        with self.assertRaises(lab.NotRun):
            tuning.tuned(self.lab(0), METHOD)
        self.assertEqual(self.lab(0).count(), 0)

    def test_what_was_run_is_read_back_on_any_machine(self):
        tuning.tuned(self.lab(1), METHOD)
        self.assertEqual(tuning.tuned(self.lab(0), METHOD), tuning.tuned(self.lab(1), METHOD))
        self.text.write_text("another text")
        self.assertEqual(self.lab(0).known([tuning.METHODS[METHOD][0]]), {}, "another text is another run")

    def test_a_run_that_is_known_is_not_run_again(self):
        one = self.lab(1)
        one.losses([tuning.deltas(1, 32)] * 2)
        self.lab(1).losses([tuning.deltas(1, 32)])
        self.assertEqual(len((self.out / "results/deltas.jsonl").read_text().splitlines()), 1)

    def test_every_question_has_a_table_of_what_is_known(self):
        for name, question in questions.QUESTIONS.items():
            try:
                self.assertTrue(question(self.lab(0)).startswith("| "), name)
            except lab.NotRun:
                pass

    def test_the_page_has_what_is_known_and_says_what_is_not(self):
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

    def test_what_was_tuned_is_drawn(self):
        tuning.tuned(self.lab(1), "AdamW, All-Reduce")
        study.draw_cost(self.lab(0), self.out)
        texts = [text.text for text in ElementTree.parse(self.out / "learning_cost.svg").findall(".//{*}text")]
        self.assertIn("AdamW, All-Reduce", texts)
        self.assertNotIn("signs, K = 32", texts)

    def test_a_page_without_a_place_for_a_table_is_refused(self):
        page = self.out / "page.md"
        page.write_text("nothing\n")
        with self.assertRaises(SystemExit):
            study.write_report(self.lab(0), [page])

    def test_a_hostile_worker_that_was_suspected_is_left_out_in_a_further_run(self):
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

    def test_a_logarithmic_axis_leaves_out_what_begins_at_nothing(self):
        drawn = ElementTree.fromstring(curves.chart("", "", [("a", 0, "", [(0, 5), (10, 4), (1000, 3)])], True))
        line = drawn.find(".//{*}polyline").get("points").split()
        self.assertEqual([point.split(",")[0] for point in line], [f"{curves.LEFT}.0", f"{curves.WIDTH - curves.RIGHT}.0"])

    def test_an_exchange_takes_as_long_as_the_slower_direction(self):
        point = {"round": 0, "sent_bytes": 1000, "received_bytes": 4000}
        self.assertEqual(curves.seconds(point, up=8000, down=80000), 1)
        self.assertEqual(curves.seconds(point, up=80000, down=8000), 4)


class CostTest(unittest.TestCase):
    def test_a_method_is_a_point_with_its_name_inside_the_picture(self):
        drawn = ElementTree.fromstring(cost.chart("", {"<cheap>": (0.1, 2), "dear": (28, 1.8)}))
        self.assertEqual(len(drawn.findall(".//{*}circle")), 2)
        cheap, dear = (next(text for text in drawn.findall(".//{*}text") if text.text == name) for name in ("<cheap>", "dear"))
        self.assertEqual((cheap.get("text-anchor"), dear.get("text-anchor")), ("start", "end"))


if __name__ == "__main__":
    unittest.main()
