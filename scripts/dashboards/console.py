"""Console pages for Prometheus: one for each row of the table, and a library of shared templates. They load nothing from other hosts.

Their names begin with `distro`, so that they can lie beside other pages. Prometheus runs them through Go's templates, in
which two opening braces begin an action: those of console.html and console.lib alone.
"""
import html
import json
import re

from source import HERE, KEY, RUNBOOKS, fill, with_selector

EXCESS = "instance_worker_stage:distro_worker_excess_seconds:per_round5m"
# Not the time between rounds, which is too long for minutes after a start or a pause.
ROUND = "(rate(distro_aggregator_round_duration_seconds_sum[$range]) / (rate(distro_aggregator_round_duration_seconds_count[$range]) > 0))"
STRAGGLERS = {  # workers that delay a round by more than a tenth of it
    "share": f"topk(3, {EXCESS} / on ({KEY}) group_left () {ROUND} > 0.1)",
    "seconds": EXCESS,
    "rates": "instance_worker_direction:distro_worker_goodput_bytes:rate5m"}
RUNBOOK_PAGE = "distro-runbooks.html"


def page_name(row):
    return "distro.html" if row == "Overview" else f"distro-{row.lower()}.html"


def expression(text):
    return with_selector(fill(text, {"range": "5m"}), 'namespace=~"$namespace",run=~"$run"')


def legend(text):
    """Text and label names in turn: "{{worker}} up" is ["", "worker", " up"]."""
    return re.split(r"\{\{(\w+)\}\}", text)


def described(panel):
    queries = [{"expr": expression(query.expression), "legend": legend(query.legend), "unit": query.unit or panel.unit}
               for query in panel.queries]
    return {"title": panel.title, "about": panel.about, "kind": panel.kind, "unit": panel.unit, "by": panel.by, "states": panel.states,
            "log": panel.log, "tall": panel.tall, "queries": queries, "names": panel.names, "thresholds": panel.thresholds,
            "mappings": {str(value): text for value, text in panel.mappings.items()}, "colors": panel.colors,
            "runbooks": [f"{RUNBOOK_PAGE}#{name}" for name in panel.runbooks]}


def page(source, row, members):
    links = [{"row": name, "page": page_name(name)} for name, _ in source.rows]
    table = {"row": row, "rows": links, "stragglers": {name: expression(text) for name, text in STRAGGLERS.items()},
             "panels": [described(panel) for panel in members]}
    return filled("console.html", TITLE=f"DisTrO: {row}", TABLE=json.dumps(table, indent=1).replace("</", "<\\/"))


def filled(template, **parts):
    """A template with its %NAME%s."""
    text = (HERE / template).read_text()
    for name, part in parts.items():
        assert "{{" not in part, f"{name}: two braces begin an action of the template"
        text = text.replace(f"%{name}%", part)
    return text


def library():
    """The templates of all pages: Prometheus's console library."""
    return filled("console.lib", STYLE=(HERE / "console.css").read_text(), CHART=(HERE / "chart.js").read_text(),
                  SCRIPT=(HERE / "console.js").read_text())


def runbooks():
    """All runbooks on one page; `#NAME` is the one of an alert. Prometheus serves it while an aggregator is down."""
    names = sorted((path.stem for path in RUNBOOKS.glob("*.md")), key=lambda name: (name != "README", name))
    parts = [f'<section id="{name}"><pre>{html.escape((RUNBOOKS / f"{name}.md").read_text())}</pre></section>' for name in names]
    links = [f'<a href="#{name}">{name}</a>' for name in names if name != "README"]
    return filled("console_runbooks.html", STYLE=(HERE / "console.css").read_text(), LINKS="\n".join(links), RUNBOOKS="\n".join(parts))


def pages(source):
    rows = {page_name(row): page(source, row, members) for row, members in source.rows}
    return {"distro.lib": library(), RUNBOOK_PAGE: runbooks(), **rows}
