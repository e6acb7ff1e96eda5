"""The Grafana dashboard: one row of panels for each row of the table."""
import json

from source import fill, with_selector

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTHS = {"graph": 12, "stat": 6, "table": 24}
HEIGHTS = {"graph": 8, "stat": 4, "table": 8}
TYPES = {"graph": "timeseries", "stat": "stat", "table": "table"}


def expression(query):
    return with_selector(fill(query.expression, {"range": "$__rate_interval"}), 'instance=~"$instance"')


def target(panel, number, query):
    instant = panel.kind != "graph"
    return {"refId": chr(ord("A") + number), "datasource": DATASOURCE, "expr": expression(query),
            "legendFormat": query.legend, "instant": instant, "range": not instant,
            "format": "table" if panel.kind == "table" else "time_series"}


def graph_parts(panel):
    custom = {"lineWidth": 1, "fillOpacity": 0, "showPoints": "never",
              "scaleDistribution": {"type": "log", "log": 10} if panel.log else {"type": "linear"}}
    options = {"legend": {"displayMode": "table", "placement": "right", "showLegend": True, "calcs": ["lastNotNull"]},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    return {"unit": panel.unit, "custom": custom}, options, []


def stat_parts(panel):
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "none",
               "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": "auto"}
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


def overrides(panel):
    return [{"matcher": {"id": "byName", "options": query.legend},
             "properties": [{"id": "unit", "value": query.unit}]} for query in panel.queries if query.unit]


PARTS = {"graph": graph_parts, "stat": stat_parts, "table": table_parts}


def drawn(panel, number, place):
    defaults, options, transformations = PARTS[panel.kind](panel)
    entry = {"id": number, "type": TYPES[panel.kind], "title": panel.title, "description": panel.about,
             "datasource": DATASOURCE, "gridPos": place, "options": options,
             "fieldConfig": {"defaults": defaults, "overrides": overrides(panel)},
             "targets": [target(panel, index, query) for index, query in enumerate(panel.queries)]}
    if transformations:
        entry["transformations"] = transformations
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
    grid, entries = Grid(), []
    for row, members in source.rows:
        if grid.x:
            grid.next_line()
        entries.append({"id": len(entries) + 1, "type": "row", "title": row, "collapsed": False, "panels": [],
                        "gridPos": grid.place(24, 1)})
        for panel in members:
            place = grid.place(WIDTHS[panel.kind], HEIGHTS[panel.kind] + 4 * panel.tall)
            entries.append(drawn(panel, len(entries) + 1, place))
    return entries


def variables():
    return [{"name": "datasource", "type": "datasource", "label": "Data source", "query": "prometheus"},
            {"name": "instance", "type": "query", "label": "Aggregator", "datasource": DATASOURCE,
             "query": {"query": "label_values(distro_aggregator_round, instance)", "refId": "instance"},
             "includeAll": True, "allValue": ".*", "multi": True, "refresh": 2, "sort": 1,
             "current": {"text": "All", "value": "$__all"}}]


def dashboard(source):
    document = {"uid": "distro", "title": "DisTrO", "tags": ["distro"], "timezone": "browser", "editable": True,
                "schemaVersion": 39, "refresh": "15s", "time": {"from": "now-1h", "to": "now"},
                "graphTooltip": 1, "templating": {"list": variables()}, "annotations": {"list": []},
                "panels": panels(source)}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
