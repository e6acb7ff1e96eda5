"""The written rules, dashboard and console pages: current, accepted by Prometheus' and Grafana's own readers, and about metrics
that exist."""
import html
import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

SOURCE = pathlib.Path(os.environ.get("DISTRO_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
CHART = SOURCE / "helm" / "distro-monitoring"
sys.path.insert(0, str(SOURCE / "scripts" / "dashboards"))

from source import Source, metrics  # noqa: E402

VARIABLES = {"$__rate_interval": "1m", "$namespace": ".*", "$run": ".*", "$worker": ".*"}
HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


def generate(*arguments):
    return subprocess.run([sys.executable, SOURCE / "scripts" / "generate_dashboards", *arguments], capture_output=True, text=True)


DASHBOARDS = ("distro", "distro-runbooks")


def grafana(name="distro"):
    return json.loads((CHART / "dashboards" / f"{name}.json").read_text())


def flat(panels):
    """Rows, and the panels of both open and collapsed ones."""
    return [one for panel in panels for one in [panel, *panel.get("panels", [])]]


def grafana_panels():
    return [panel for panel in flat(grafana()["panels"]) if panel["type"] != "row"]


def grafana_expressions():
    return [target["expr"] for panel in grafana_panels() for target in panel["targets"]]


def console_table(path):
    return json.loads(re.search(r"^var TABLE = (.*?);\n</script>", path.read_text(), re.DOTALL | re.MULTILINE)[1])


def pages_of_rows():
    return [path for path in (CHART / "consoles").glob("*.html") if path.name != "distro-runbooks.html"]


def console_expressions():
    return [query["expr"] for path in pages_of_rows() for panel in console_table(path)["panels"]
            for query in panel["queries"]]


def dropped(given, kept, path=""):
    """What a typed model did not keep of a document."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [x for k, v in given.items() for x in (dropped(v, kept[k], f"{path}.{k}") if k in kept else [f"{path}.{k}"])]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [x for i, (a, b) in enumerate(zip(given, kept)) for x in dropped(a, b, f"{path}[{i}]")]
    return [] if given == kept else [f"{path}: {given!r} became {kept!r}"]


def lost(document):
    register_default_plugins()
    return dropped(document, json.loads(JSONEncoder().encode(Dashboard.from_json(document))))


def test_names_outdated_sum(tmp_path):
    """That those in git are current: conftest.py."""
    lines = (CHART / "generated.sha256").read_text().splitlines(keepends=True)
    recorded = tmp_path / "generated.sha256"
    recorded.write_text("".join(["0" + line if line.endswith("rules/distro-alerts.yml\n") else line for line in lines] + ["0  rules/old.yml\n"]))
    done = generate("--check", "--out", tmp_path)
    assert done.returncode == 1
    assert re.findall(r"another sum of (\S+):", done.stdout) == ["rules/distro-alerts.yml", "rules/old.yml"]
    assert generate("--out", tmp_path).returncode == 0
    assert recorded.read_text() == "".join(lines)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")) == [line.split()[1] for line in lines]


def check_rules(*paths):
    return subprocess.run(["promtool", "check", "rules", *paths], capture_output=True, text=True)


def test_prometheus_reads_the_rules(tmp_path):
    done = check_rules(CHART / "rules/distro-recording.yml", CHART / "rules/distro-alerts.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    bad = tmp_path / "bad.yml"
    bad.write_text((CHART / "rules/distro-alerts.yml").read_text().replace("or on (", "ore on ("))
    assert check_rules(bad).returncode == 1


@pytest.mark.parametrize("expressions", [grafana_expressions, console_expressions])
def test_queries_are_promql(tmp_path, expressions):
    texts = [expression for expression in expressions()]
    for name, value in VARIABLES.items():
        texts = [text.replace(name, value) for text in texts]
    rules = [{"record": f"q:{number}", "expr": text} for number, text in enumerate(texts)]
    (tmp_path / "q.yml").write_text(yaml.safe_dump({"groups": [{"name": "q", "rules": rules}]}))
    assert len(texts) > 80
    done = check_rules(tmp_path / "q.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafana_keeps_every_field(name):
    assert lost(grafana(name)) == []
    assert grafana(name)["uid"] == name


def test_dashboard_has_rows_and_panels_of_table():
    document = grafana()
    assert {panel["type"] for panel in flat(document["panels"])} == {"row", "timeseries", "stat", "table"}
    rows = [panel for panel in document["panels"] if panel["type"] == "row"]
    assert [panel["title"] for panel in rows] == [row for row, _ in Source().rows]
    assert [panel["title"] for panel in grafana_panels()] == [panel.title for panel in Source().panels()]
    assert len({panel["id"] for panel in flat(document["panels"])}) == len(flat(document["panels"]))


def test_only_overview_is_open():
    document = grafana()
    rows = [panel for panel in document["panels"] if panel["type"] == "row"]
    assert [panel["collapsed"] for panel in rows] == [False] + [True] * (len(rows) - 1)
    assert len([panel for panel in document["panels"] if panel["type"] != "row"]) == 8
    assert all(panel["panels"] for panel in rows[1:])


def test_panels_have_description_and_unit():
    for panel in grafana_panels():
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
    shown = [panel["fieldConfig"]["defaults"] for panel in grafana_panels()]
    assert sum("thresholds" in one for one in shown) > 10 and sum("mappings" in one for one in shown) >= 4


def test_variables_are_namespace_run_and_worker():
    variables = {one["name"]: one for one in grafana()["templating"]["list"]}
    assert list(variables) == ["datasource", "namespace", "run", "worker"]
    assert variables["run"]["includeAll"] is False, "several runs in one graph cannot be told apart"
    for expression in grafana_expressions():
        named = set(re.findall(r"\$(\w+)", expression)) - {"__rate_interval"}
        assert named in ({"namespace", "run"}, {"namespace", "run", "worker"}, set()), expression
        assert ("$worker" in expression) == bool(re.search("distro_worker_|instance_worker|aggregator_worker_state", expression.replace("instance:distro_worker", ""))), expression


def test_runbook_link_leads_to_its_panel():
    pages = {panel["id"]: panel["title"] for panel in grafana("distro-runbooks")["panels"]}
    alerts = {rule["alert"] for rule in Source().alerts}
    assert set(pages.values()) == alerts | {"All alerts"}
    linked = [link for panel in grafana_panels() for link in panel.get("links", [])]
    for link in linked:
        number = re.fullmatch(r"/d/distro-runbooks\?viewPanel=(\d+)", link["url"])[1]
        assert link["title"] == "Runbook: " + pages[int(number)].replace("All alerts", "README")
    assert {link["title"].removeprefix("Runbook: ") for link in linked} == alerts - {"DistroAggregatorDown"} | {"README"}


def test_finds_misspelt_field():
    document = grafana()
    graph = next(panel for panel in flat(document["panels"]) if panel["type"] == "timeseries")
    graph["options"]["legend"]["displayMod"] = graph["options"]["legend"].pop("displayMode")
    graph["targets"][0]["exprr"] = "up"
    assert len(lost(document)) == 2, lost(document)


def drawn_together():
    """Panels that are seen at the same time: with all rows closed, and with one of them open."""
    document = grafana()
    yield document["panels"]
    for row in document["panels"]:
        if row.get("panels"):
            yield [row, *row["panels"]]


@pytest.mark.parametrize("panels", list(drawn_together()), ids=lambda panels: panels[0]["title"])
def test_panels_do_not_overlap(panels):
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


class Resources(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("src", "href") and value != "data:,"]


@pytest.mark.parametrize("path", sorted((CHART / "consoles").iterdir()), ids=lambda path: path.name)
def test_console_page_needs_nothing_from_outside(path):
    reader = Resources()
    reader.feed(re.sub("<script>.*?</script>", "", path.read_text(), flags=re.DOTALL))
    assert all(link.startswith("#") or link == "distro.html" for link in reader.found)
    words = re.sub("<pre>.*?</pre>", "", path.read_text(), flags=re.DOTALL)  # runbooks name addresses, as text
    assert set(re.findall(r"https?://[^\"\s]+", words)) <= {"http://www.w3.org/2000/svg"}


def test_runbook_is_text_only():
    """No braces of Prometheus' templates, no tags."""
    text = (CHART / "consoles" / "distro-runbooks.html").read_text()
    assert "{{" not in text and "<script" not in text
    for path in sorted((SOURCE / "docs/runbooks").glob("*.md")):
        assert html.escape(path.read_text()) in text, path.name


def documented():
    page = (SOURCE / "docs" / "metrics.md").read_text()
    return set(re.findall(r"^\| `([a-z0-9_]+)`", page, re.MULTILINE))


def test_metrics_are_documented():
    source = Source()
    recorded = {rule["record"] for rule in source.recording}
    texts = [rule["expr"] for rule in [*source.recording, *source.alerts]]
    texts += [query.expression for panel in source.panels() for query in panel.queries]
    read = set().union(*map(metrics, texts)) - recorded
    known = documented()
    assert sorted(name for name in read if name not in known and HISTOGRAM.sub("", name) not in known) == []


def test_recording_rules_are_used():
    source = Source()
    texts = [rule["expr"] for rule in [*source.recording, *source.alerts]]
    texts += [query.expression for panel in source.panels() for query in panel.queries]
    used = set().union(*map(metrics, texts))
    assert sorted(rule["record"] for rule in source.recording if rule["record"] not in used) == []
