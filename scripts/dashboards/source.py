"""Reads the tables of rules, alerts and panels, and fills in their constants."""
import pathlib
import re

import yaml

HERE = pathlib.Path(__file__).parent
METRIC = re.compile(r"(?<![\w:])((?:[a-z_]+:)?distro_[a-z0-9_:]+|process_[a-z_]+|grpc_server_[a-z_]+)(\{[^}]*\})?")
KINDS = ("graph", "stat", "table")
UNITS = ("short", "s", "bytes", "Bps", "percentunit", "ops")


def fill(expression, values):
    """The expression on one line, with $names of `values` filled in."""
    filled = re.sub(r"\$([a-z_]+)", lambda match: str(values[match[1]]), expression)
    return " ".join(filled.split())


def with_selector(expression, selector):
    """The expression with one more label matcher at each metric."""
    def add(match):
        inside = (match[2] or "{}")[1:-1]
        return match[1] + "{" + ",".join(filter(None, [inside, selector])) + "}"
    return METRIC.sub(add, expression)


def metrics(expression):
    """Names of metrics and recorded series that an expression reads."""
    return {match[1] for match in METRIC.finditer(expression)}


class Query:
    def __init__(self, expression, legend, unit=None):
        self.expression, self.legend, self.unit = " ".join(expression.split()), legend, unit


class Panel:
    """A panel as panels.yaml describes it; what is left out has its default."""

    def __init__(self, row, entry):
        known = {"title", "kind", "unit", "queries", "by", "about", "gpu", "log", "tall"}
        assert not set(entry) - known, f"{entry['title']}: {set(entry) - known} is not known"
        self.row, self.title, self.about = row, entry["title"], entry.get("about", "")
        self.kind, self.unit, self.by = entry.get("kind", "graph"), entry.get("unit", "short"), entry.get("by", [])
        self.gpu, self.log, self.tall = entry.get("gpu", False), entry.get("log", False), entry.get("tall", False)
        self.queries = [Query(*query) for query in entry["queries"]]
        assert self.kind in KINDS and self.unit in UNITS, self.title
        assert bool(self.by) == (self.kind == "table"), f"{self.title}: `by` belongs to tables"
        self.states = "state" in self.by  # what is shown is the label; the value is 1
        if self.kind == "table":
            for query in self.queries:
                query.expression = f"max by ({', '.join(self.by)}) ({query.expression})"


class Source:
    def __init__(self, overrides=()):
        rules = yaml.safe_load((HERE / "rules.yaml").read_text())
        self.constants = {**rules["constants"], **dict(overrides)}
        assert set(self.constants) == set(rules["constants"]), f"known are {sorted(rules['constants'])}"
        self.recording = rules["recording"]
        self.alerts = yaml.safe_load((HERE / "alerts.yaml").read_text())["alerts"]
        for rule in [*self.recording, *self.alerts]:
            rule["expr"] = fill(rule["expr"], self.constants)
        rows = yaml.safe_load((HERE / "panels.yaml").read_text())["rows"]
        self.rows = [(row["row"], [Panel(row["row"], entry) for entry in row["panels"]]) for row in rows]

    def panels(self):
        return [panel for _, panels in self.rows for panel in panels]
