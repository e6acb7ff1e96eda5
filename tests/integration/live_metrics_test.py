"""What the processes of a live run serve: the metrics that docs/metrics.md describes, no others; time that adds up; counters
that only a new process of a worker sets back."""
import pathlib
import re
import signal
import time
import urllib.request

import processes
from processes import ProcessTest, until

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "metrics.md"
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
ELSEWHERE = "Only where there is a source"  # the section whose metrics a machine like this one may lack
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)+)\})? (\S+)')


def described():
    """{name: (type, labels, text)} of the page, and the names that may be absent."""
    rows, optional, section = {}, set(), ""
    for line in PAGE.read_text().splitlines():
        section = line.lstrip("# ") if line.startswith("#") else section
        row = re.match(r"\| `([a-z_]+)` \| (counter|gauge|histogram)(.*?) \| (.*)", line)
        if row:
            rows[row[1]] = (row[2], set(re.findall(r"`(\w+)`", row[3])), row[4])
            if section == ELSEWHERE or "absent with" in row[4].lower():
                optional.add(row[1])
    return rows, optional


def served(http, path):
    """{name: (type, labels, help)}, [(series, labels, value)] of a page; every line is understood, no series comes twice."""
    with urllib.request.urlopen(f"http://{http}{path}", timeout=20) as answer:
        assert answer.headers["Content-Type"] == TEXT_FORMAT, answer.headers["Content-Type"]
        lines = answer.read().decode().splitlines()
    families, samples, seen = {}, [], set()
    for line in lines:
        if line.startswith("# HELP "):
            name, text = line[7:].split(" ", 1)
            families[name] = [None, set(), text]
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            families[name][0] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            labels = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            assert (match[1], match[2]) not in seen, line
            seen.add((match[1], match[2]))
            name = match[1] if match[1] in families else re.sub("_(bucket|sum|count)$", "", match[1])
            families[name][1] |= labels.keys() - {"le"}
            samples.append((match[1], labels, float(match[3])))
    return families, samples


def value(samples, name, **labels):
    found = [number for series, has, number in samples if series == name and labels.items() <= has.items()]
    return sum(found) if found else None


class MetricsTest(ProcessTest):
    def start(self, **run):
        space = self.workspace
        self.aggregator = space.create_run(rounds=100000, **run)
        self.workers = {name: space.start_worker(name, self.aggregator.grpc) for name in ("a", "b")}
        self.aggregator.await_round(5)
        for name, worker in self.workers.items():
            until(lambda: (self.of_worker("distro_worker_round", name) or 0) >= 3, f"{name} reported round 3")

    def of_worker(self, series, name, **labels):
        return value(served(self.aggregator.http(), "/metrics/workers")[1], series, worker=name, **labels)

    def compare(self, families, prefixes, more=frozenset(), less=frozenset()):
        rows, optional = described()
        optional |= less
        own = {name: row for name, row in rows.items() if name.startswith(prefixes)}
        self.assertEqual(own.keys() - families.keys() - optional, set(), "described, not served")
        self.assertEqual(families.keys() - own.keys(), set(), "served, not described")
        for name, (kind, labels, text) in families.items():
            self.assertEqual(kind, own[name][0], name)
            self.assertEqual(labels - own[name][1], more, name)
            self.assertTrue(own[name][2].startswith(text), f"{name}: {text}")

    def test_matches_page_and_code(self):
        self.start(start_workers=2, evaluation_interval_rounds=2)
        until(lambda: self.aggregator.metric("distro_aggregator_eval_loss"), "an evaluation")
        families, samples = served(self.aggregator.http(), "/metrics")
        self.compare(families, ("distro_aggregator_", "grpc_server_", "process_"))
        # A rate needs as many bytes as some rounds have.
        for direction in ("upload", "download"):
            until(lambda: self.of_worker("distro_worker_link_capacity_bytes_per_second", "a", direction=direction), direction)
        own, _ = served(self.workers["a"].http(), "/metrics")
        self.compare(own, ("distro_worker_", "process_"))
        until(lambda: (self.of_worker("distro_worker_upload_duration_seconds_count", "b") or 0) > 0, "uploads of b")
        workers, shown = served(self.aggregator.http(), "/metrics/workers")
        self.compare(workers, ("distro_worker_",), {"worker"}, less={"distro_worker_failed_writes"})  # of its own disk
        self.assertEqual({labels["worker"] for _, labels, _ in shown}, {"a", "b"})
        for series, labels, number in samples + shown:
            self.assertTrue(number >= 0 or series.endswith("agreement_score"), (series, labels, number))
        self.assertLess(abs(time.time() - self.of_worker("distro_worker_last_report_timestamp_seconds", "a")), 60)

    def test_sums_phases_to_wall_time(self):
        self.start(start_workers=2)

        def read_once(worker):
            before = time.monotonic()
            _, samples = served(worker.http(), "/metrics")
            return before, time.monotonic(), value(samples, "distro_worker_phase_seconds_total")

        def read(worker):
            """The newest part of a wait has no phase yet: of the readings of a second, the one that lacks least."""
            readings, end = [read_once(worker)], time.monotonic() + 1
            while time.monotonic() < end:
                time.sleep(0.01)
                readings.append(read_once(worker))
            return max(readings, key=lambda reading: reading[2] - reading[1])

        first = {name: read(worker) for name, worker in self.workers.items()}
        until(lambda: time.monotonic() - first["b"][1] > 6, "six seconds of training")
        for name, worker in self.workers.items():
            began, ended, then = first[name]
            begins, ends, now = read(worker)
            self.assertGreater(now - then, 0.99 * (begins - ended), name)
            self.assertLess(now - then, 1.01 * (ends - began), name)

    def test_counters_go_back_with_a_new_process_of_the_worker_only(self):
        self.start()
        space, series = self.workspace, "distro_worker_tokens_total"
        until(lambda: (self.of_worker(series, "a") or 0) > 2000, "2000 tokens of a")
        reported = self.of_worker(series, "a")
        self.aggregator.kill()
        self.aggregator = space.start_aggregator(listen=self.aggregator.grpc)
        again = until(lambda: self.of_worker(series, "a"), "a reports to the new aggregator")
        self.assertGreaterEqual(again, reported)
        self.workers["a"].kill()
        self.assertGreaterEqual(self.of_worker(series, "a"), again)  # stays, for ten minutes
        space.start_worker("a", self.aggregator.grpc, log_name="a2")
        until(lambda: self.of_worker(series, "a") < again, "the counter of the new process")

    def test_drops_worker_that_leaves(self):
        self.start()
        self.workers["b"].signal(signal.SIGTERM)
        self.assertEqual(self.workers["b"].exit_code(), 143)
        self.assertIsNone(self.of_worker("distro_worker_round", "b"))
        self.assertIsNotNone(self.of_worker("distro_worker_round", "a"))

    def test_health_and_readiness_are_plain_text(self):
        self.start()
        for path, words in (("/healthz", "ok"), ("/readyz?verbose", "[+] disk")):
            with urllib.request.urlopen(f"http://{self.aggregator.http()}{path}", timeout=20) as answer:
                self.assertEqual(answer.headers["Content-Type"], "text/plain; charset=utf-8")
                self.assertIn(words, answer.read().decode())


if __name__ == "__main__":
    processes.main()
