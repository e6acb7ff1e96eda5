"""Reads the tables of rules, alerts and panels, and fills in their constants."""
import pathlib
import re

import yaml

HERE = pathlib.Path(__file__).parent
RUNBOOKS = HERE.parents[1] / "docs" / "runbooks"
KEY = "namespace, run, instance"  # the labels that identify a run: every join and every sum keeps them
METRIC = re.compile(r"(?<![\w:])((?:[a-z_]+:)?distro_[a-z0-9_:]+|process_[a-z_]+|grpc_server_[a-z_]+|ALERTS|up(?=\{))(\{[^}]*\})?")
# Series that have the label `worker`, so that the dashboard's variable can choose among them.
OF_A_WORKER = re.compile(r"instance_worker|distro_worker_|distro_aggregator_worker_(state|included|agreement)")
KINDS = ("graph", "stat", "table")
UNITS = ("short", "s", "bytes", "Bps", "percentunit", "ops")
COLORS = ("green", "yellow", "orange", "red", "blue")
KNOWN = {"title", "kind", "unit", "queries", "by", "about", "gpu", "log", "tall", "names", "thresholds", "mappings", "colors",
         "runbooks", "most"}


def fill(expression, values):
    """The expression on one line, with $names of `values` filled in; a name that is not in `values` is an error."""
    filled = re.sub(r"\$([A-Za-z_]+)", lambda match: str(values[match[1]]), expression)
    return " ".join(filled.split())


def fill_words(text, values):
    """Text for people, with $names of `values` filled in; Prometheus fills in $labels and $value."""
    return re.sub(r"\$([A-Za-z_]+)", lambda match: str(values.get(match[1], match[0])), text)


def with_selector(expression, selector, of_a_worker=""):
    """The expression with more label matchers at each metric; `of_a_worker` for metrics with a label `worker`."""
    def add(match):
        more = of_a_worker if OF_A_WORKER.match(match[1]) else ""
        return match[1] + "{" + ",".join(filter(None, [(match[2] or "{}")[1:-1], selector, more])) + "}"
    return METRIC.sub(add, expression)


def metrics(expression):
    """Names of metrics and recorded series that an expression reads."""
    return {match[1] for match in METRIC.finditer(expression)} - {"ALERTS", "up"}


class Query:
    def __init__(self, expression, legend, unit=None):
        self.expression, self.legend, self.unit = " ".join(expression.split()), legend, unit


class Panel:
    """A panel as in panels.yaml; missing keys have defaults."""

    def __init__(self, row, entry, values):
        assert not set(entry) - KNOWN, f"{entry['title']}: {set(entry) - KNOWN} is not known"
        self.row, self.title, self.about = row, entry["title"], entry["about"]
        self.kind, self.unit, self.by = entry.get("kind", "graph"), entry.get("unit", "short"), entry.get("by", [])
        self.gpu, self.log, self.tall = entry.get("gpu", False), entry.get("log", False), entry.get("tall", False)
        self.names, self.most = entry.get("names", False), entry.get("most")
        self.thresholds = [[at if at == "base" else number(at, values), color] for at, color in entry.get("thresholds", {}).items()]
        self.mappings, self.colors = entry.get("mappings", {}), entry.get("colors", {})
        self.runbooks = entry.get("runbooks", [])
        self.queries = [Query(fill(query[0], {**values, "range": "$range"}), *query[1:]) for query in entry["queries"]]
        self._check()
        if self.kind == "table":
            for query in self.queries:
                query.expression = f"max by ({', '.join(self.by)}) ({query.expression})"

    def _check(self):
        assert self.kind in KINDS and self.unit in UNITS and self.about, self.title
        assert bool(self.by) == (self.kind == "table"), f"{self.title}: `by` belongs to tables"
        assert not self.names or self.kind == "stat", f"{self.title}: `names` belongs to stats"
        used = [color for _, color in self.thresholds] + list(self.colors.values())
        assert set(used) <= set(COLORS), f"{self.title}: {used}"
        missing = [name for name in self.runbooks if not (RUNBOOKS / f"{name}.md").exists()]
        assert not missing, f"{self.title}: no runbook {missing}"

    @property
    def states(self):
        """Shows the label `state`; the value is 1."""
        return "state" in self.by


def number(text, values):
    return float(fill(str(text), values))


class Source:
    def __init__(self, overrides=()):
        rules = yaml.safe_load((HERE / "rules.yaml").read_text())
        self.constants = {**rules["constants"], **dict(overrides)}
        assert set(self.constants) == set(rules["constants"]), f"known are {sorted(rules['constants'])}"
        values = {**self.constants, "key": KEY}
        self.recording = rules["recording"]
        self.alerts = yaml.safe_load((HERE / "alerts.yaml").read_text())["alerts"]
        for rule in [*self.recording, *self.alerts]:
            rule["expr"] = fill(rule["expr"], values)
        for rule in self.alerts:
            rule.update({name: fill_words(rule[name], self.constants) for name in ("summary", "description")})
        rows = yaml.safe_load((HERE / "panels.yaml").read_text())["rows"]
        # Panels show thresholds as numbers, even if a rule has the name of a chart value.
        shown = {**rules["constants"], "key": KEY, **{name: value for name, value in self.constants.items() if "${" not in str(value)}}
        self.rows = [(row["row"], [Panel(row["row"], entry, shown) for entry in row["panels"]]) for row in rows]

    def panels(self):
        return [panel for _, panels in self.rows for panel in panels]

    @classmethod
    def with_names(cls):
        """Constants are written as ${name}, for the chart to fill in."""
        names = yaml.safe_load((HERE / "rules.yaml").read_text())["constants"]
        return cls({name: f"${{{name}}}" for name in names}.items())
