"""The Grafana dashboards: one with a row of panels for each row of the table, and one with the runbooks, so that links
work wherever Grafana runs."""
import json
import re

from source import RUNBOOKS, fill, with_selector

UID, RUNBOOKS_UID = "distro", "distro-runbooks"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTHS = {"graph": 12, "stat": 6, "table": 24}
OVERVIEW_WIDTHS = {"graph": 12, "stat": 4, "table": 12}
HEIGHTS = {"graph": 8, "stat": 4, "table": 8}
TYPES = {"graph": "timeseries", "stat": "stat", "table": "table"}


def expression(query):
    return with_selector(fill(query.expression, {"range": "$__rate_interval"}), 'namespace=~"$namespace",run=~"$run"', 'worker=~"$worker"')


def target(panel, number, query):
    instant = panel.kind != "graph"
    return {"refId": chr(ord("A") + number), "datasource": DATASOURCE, "expr": expression(query),
            "legendFormat": query.legend, "instant": instant, "range": not instant,
            "format": "table" if panel.kind == "table" else "time_series"}


def graph_parts(panel):
    custom = {"lineWidth": 1, "fillOpacity": 0, "showPoints": "never",
              "scaleDistribution": {"type": "log", "log": 10} if panel.log else {"type": "linear"},
              "thresholdsStyle": {"mode": "dashed" if panel.thresholds else "off"}}
    options = {"legend": {"displayMode": "table", "placement": "right", "showLegend": True, "calcs": ["lastNotNull"]},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return {"unit": panel.unit, "custom": custom}, options, []


def stat_parts(panel):
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
               "colorMode": "background" if panel.thresholds or panel.colors else "none",
               "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": "name" if panel.names else "auto"}
    return {"unit": panel.unit}, options, []


def column(number, count):
    return f"Value #{chr(ord('A') + number)}" if count > 1 else "Value"


def table_parts(panel):
    count = len(panel.queries)
    names = {column(number, count): query.legend for number, query in enumerate(panel.queries)}
    hidden, first = {"Time": True}, {"displayName": panel.queries[0].legend, "desc": True}
    if panel.states:
        hidden, first = {**hidden, **dict.fromkeys(names, True)}, {"displayName": panel.by[0], "desc": False}
    transformations = [{"id": "merge", "options": {}},
                       {"id": "organize", "options": {"excludeByName": hidden, "renameByName": names, "indexByName": {}}}]
    options = {"showHeader": True, "cellHeight": "sm", "sortBy": [first]}
    return {"unit": panel.unit}, options, transformations


def shown_values(panel):
    """The options common to all kinds of panel: thresholds, value mappings, and the end of the scale."""
    defaults = {}
    if panel.thresholds:
        steps = [{"value": None if at == "base" else at, "color": color} for at, color in panel.thresholds]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    if panel.mappings:
        options = {str(value): {"text": text, "index": index} for index, (value, text) in enumerate(panel.mappings.items())}
        defaults["mappings"] = [{"type": "value", "options": options}]
    if panel.most is not None:
        defaults["max"] = panel.most
    return defaults


def overrides(panel):
    def override(name, property_, value):
        return {"matcher": {"id": "byName", "options": name}, "properties": [{"id": property_, "value": value}]}
    units = [override(query.legend, "unit", query.unit) for query in panel.queries if query.unit]
    return units + [override(name, "color", {"mode": "fixed", "fixedColor": color}) for name, color in panel.colors.items()]


PARTS = {"graph": graph_parts, "stat": stat_parts, "table": table_parts}


def drawn(panel, number, place):
    defaults, options, transformations = PARTS[panel.kind](panel)
    entry = {"id": number, "type": TYPES[panel.kind], "title": panel.title, "description": panel.about,
             "datasource": DATASOURCE, "gridPos": place, "options": options,
             "fieldConfig": {"defaults": {**defaults, **shown_values(panel)}, "overrides": overrides(panel)},
             "targets": [target(panel, index, query) for index, query in enumerate(panel.queries)]}
    if transformations:
        entry["transformations"] = transformations
    if panel.runbooks:
        entry["links"] = [{"title": f"Runbook: {name}", "url": runbook_link(name), "targetBlank": True} for name in panel.runbooks]
    return entry


class Grid:
    """Gives panels their places, from left to right and top to bottom on 24 columns."""

    def __init__(self):
        self.x = self.y = self.line = 0

    def place(self, width, height):
        if self.x + width > 24:
            self.next_line()
        place = {"x": self.x, "y": self.y, "w": width, "h": height}
        self.x, self.line = self.x + width, max(self.line, height)
        return place

    def next_line(self):
        self.x, self.y, self.line = 0, self.y + self.line, 0


def panels(source):
    """The first row is open. The panels of the others are inside their collapsed rows."""
    grid, entries, ids = Grid(), [], iter(range(1, 1000))
    for index, (row, members) in enumerate(source.rows):
        if grid.x:
            grid.next_line()
        overview, header = index == 0, {"id": next(ids), "type": "row", "title": row, "gridPos": grid.place(24, 1)}
        widths, inside = OVERVIEW_WIDTHS if overview else WIDTHS, []
        below = grid if overview else Grid()
        if not overview:
            below.y = header["gridPos"]["y"] + 1
        for panel in members:
            inside.append(drawn(panel, next(ids), below.place(widths[panel.kind], HEIGHTS[panel.kind] + 4 * panel.tall)))
        entries.append({**header, "collapsed": not overview, "panels": [] if overview else inside})
        entries += inside if overview else []
    return entries


def choice(name, label, of, **more):
    """A variable whose options are the values of a label."""
    return {"name": name, "type": "query", "label": label, "datasource": DATASOURCE, "query": {"query": of, "refId": name},
            "refresh": 2, "sort": 1, **more}


def variables():
    everything = {"includeAll": True, "allValue": ".*", "multi": True, "current": {"text": "All", "value": "$__all"}}
    of_run = 'namespace=~"$namespace",run=~"$run"'
    return [{"name": "datasource", "type": "datasource", "label": "Data source", "query": "prometheus"},
            choice("namespace", "Namespace", "label_values(distro_aggregator_round, namespace)", **everything),
            choice("run", "Run", 'label_values(distro_aggregator_round{namespace=~"$namespace"}, run)', includeAll=False, multi=False),
            choice("worker", "Worker", f"label_values(distro_worker_build_info{{{of_run}}}, worker)", **everything)]


def document(uid, title, entries, **more):
    whole = {"uid": uid, "title": title, "tags": ["distro"], "timezone": "browser", "editable": True, "schemaVersion": 39,
             "graphTooltip": 1, "annotations": {"list": []}, **more, "panels": entries}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def dashboard(source):
    links = [{"title": "Runbooks", "type": "link", "url": f"/d/{RUNBOOKS_UID}", "targetBlank": True, "icon": "doc"}]
    return document(UID, "DisTrO", panels(source), refresh="15s", time={"from": "now-1h", "to": "now"},
                    templating={"list": variables()}, links=links)


def runbook_names():
    """The runbooks; README, which lists them, is first."""
    return sorted((path.stem for path in RUNBOOKS.glob("*.md")), key=lambda name: (name != "README", name))


def runbook_link(name):
    return f"/d/{RUNBOOKS_UID}?viewPanel={runbook_names().index(name) + 1}"


def runbook_text(name):
    """The page as Grafana's Markdown: links to other runbooks stay within the dashboard, others are the path of their page."""
    def link(match):
        text, page = match[1], match[2].split("#")[0].removesuffix(".md")
        return f"[{text}]({runbook_link(page)})" if page in runbook_names() else f"{text} (`docs/{match[2].removeprefix('../')}`)"
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", link, (RUNBOOKS / f"{name}.md").read_text())


def runbooks():
    entries = [{"id": number, "type": "text", "title": "All alerts" if name == "README" else name,
                "gridPos": {"x": 0, "y": 20 * (number - 1), "w": 24, "h": 20},
                "options": {"mode": "markdown", "content": runbook_text(name)}} for number, name in enumerate(runbook_names(), 1)]
    return document(RUNBOOKS_UID, "DisTrO runbooks", entries, time={"from": "now-1h", "to": "now"}, templating={"list": []})
