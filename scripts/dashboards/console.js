// Asks the Prometheus that serves this page, draws TABLE.panels, and again every 15 s. Workers that delay the round
// (TABLE.stragglers) are red on every panel; with many workers the others are grey.
var RANGES = {"1 min": 60, "5 min": 300, "15 min": 900, "30 min": 1800, "1 h": 3600, "6 h": 21600, "1 d": 86400, "7 d": 604800};
var CROWD = 8;
var parameters = new URLSearchParams(location.search);
var alarmed = {};

function ask(path, values) {
  var body = new URLSearchParams(values);
  return fetch("../api/v1/" + path + "?" + body).then(function (answer) { return answer.json(); }).then(function (answer) {
    if (answer.status !== "success") throw new Error(answer.error);
    return answer.data;
  });
}

function node(name, className, text) {
  var made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function filled(expression) {
  return ["namespace", "run"].reduce(function (text, name) { return text.split("$" + name).join(parameters.get(name) || ".*"); }, expression);
}

function instant(expression) {
  return ask("query", {query: filled(expression)}).then(function (data) { return data.result; });
}

// A legend has text and label names in turn.
function named(legend, labels) {
  return legend.map(function (part, i) { return i % 2 ? labels[part] || "" : part; }).join("");
}

function byWorker(panel) {
  return panel.queries.some(function (query) { return query.legend.indexOf("worker") % 2 === 1; });
}

function window_() {
  var length = Number(parameters.get("range")) || 3600, to = Date.now() / 1000;
  return {from: to - length, to: to, step: Math.max(1, Math.round(length / 240))};
}

function lines(panel, answers) {
  var found = [];
  answers.forEach(function (result, i) {
    result.forEach(function (one) {
      found.push({name: named(panel.queries[i].legend, one.metric), worker: one.metric.worker, query: i,
                  points: one.values.map(function (pair) { return [pair[0], Number(pair[1])]; })});
    });
  });
  var crowded = byWorker(panel) && found.length > CROWD * panel.queries.length, colors = {};
  found.forEach(function (line) {
    var key = line.worker || line.name;
    if (!(key in colors)) colors[key] = COLORS[Object.keys(colors).length % COLORS.length];
    line.color = colors[key];
    line.style = line.worker && alarmed[line.worker] ? "alarm" : crowded && line.worker ? "crowd" : "own";
  });
  return found;
}

function legendOf(series, unit) {
  var legend = node("div", "legend"), others = 0;
  series.forEach(function (line) {
    if (line.style === "crowd") { others++; return; }
    var entry = node("span", line.style), mark = node("i"), last = line.points[line.points.length - 1];
    if (line.style === "own") mark.style.background = line.color;
    entry.appendChild(mark);
    entry.appendChild(document.createTextNode(line.name + " " + formatted(Math.abs(last[1]), unit)));
    legend.appendChild(entry);
  });
  if (others) {
    var rest = node("span", "crowd");
    rest.appendChild(node("i"));
    rest.appendChild(document.createTextNode(others + " other lines"));
    legend.appendChild(rest);
  }
  return legend;
}

function graph(panel, box) {
  var times = window_();
  return Promise.all(panel.queries.map(function (query) {
    return ask("query_range", {query: filled(query.expr), start: times.from, end: times.to, step: times.step}).then(function (data) { return data.result; });
  })).then(function (answers) {
    var series = lines(panel, answers);
    var mirrored = panel.queries.some(function (query) { return query.expr[0] === "-"; });
    var svg = draw(series, {from: times.from, to: times.to, step: times.step, unit: panel.unit, log: panel.log, mirrored: mirrored,
                            width: panel.tall ? 1000 : 560, height: panel.tall ? 260 : 170});
    return svg ? [svg, legendOf(series, panel.unit)] : [];
  });
}

// The color of the last threshold that the value has reached.
function colorOf(panel, value) {
  return panel.thresholds.reduce(function (color, step) { return step[0] === "base" || value >= step[0] ? step[1] : color; }, "");
}

function statValue(panel, query, one) {
  var value = Number(one.value[1]), name = named(query.legend, one.metric);
  if (panel.names) return node("div", "value " + (panel.colors[name] || ""), name);
  return node("div", "value " + colorOf(panel, value), panel.mappings[value] || formatted(value, panel.unit));
}

function stat(panel) {
  return Promise.all(panel.queries.map(function (query) { return instant(query.expr); })).then(function (answers) {
    var found = [];
    answers.forEach(function (result, i) {
      result.forEach(function (one) { found.push(statValue(panel, panel.queries[i], one)); });
    });
    return found;
  });
}

// One line for each value of `by`, one column a query; the largest of the first column first.
function rowsOf(panel, answers) {
  var rows = {};
  answers.forEach(function (result, i) {
    result.forEach(function (one) {
      var key = JSON.stringify(panel.by.map(function (label) { return one.metric[label] || ""; }));
      if (!rows[key]) rows[key] = {labels: one.metric, values: []};
      rows[key].values[i] = Number(one.value[1]);
    });
  });
  return Object.keys(rows).sort().map(function (key) { return rows[key]; }).sort(function (a, b) { return (b.values[0] || 0) - (a.values[0] || 0); });
}

function table(panel) {
  return Promise.all(panel.queries.map(function (query) { return instant(query.expr); })).then(function (answers) {
    var made = node("table"), head = node("tr"), shown = panel.queries.map(function (query, i) { return i; });
    var rows = rowsOf(panel, answers);
    if (panel.states) shown = [];
    panel.by.forEach(function (label) { head.appendChild(node("th", "name", label)); });
    shown.forEach(function (i) { head.appendChild(node("th", "", panel.queries[i].legend.join(""))); });
    made.appendChild(head);
    rows.forEach(function (row) {
      var stage = alarmed[row.labels.worker];
      var line = node("tr", stage && stage === (row.labels.stage || stage) ? "alarm" : "");
      panel.by.forEach(function (label) { line.appendChild(node("td", "name", row.labels[label] || "")); });
      shown.forEach(function (i) {
        var value = row.values[i];
        line.appendChild(node("td", "", formatted(value === undefined ? null : value, panel.queries[i].unit)));
      });
      made.appendChild(line);
    });
    return rows.length ? [made] : [];
  });
}

// A run, in words: "prod / demo"; a Prometheus that gives its targets no namespace has "demo".
function ofRun(labels) {
  return [labels.namespace, labels.run].filter(Boolean).join(" / ");
}

// "upload takes 6.7 s a round more than at the median worker: 250 kB/s, the median has 1.2 MB/s"
function reason(one, seconds, rates) {
  var stage = one.metric.stage, text = stage + " takes " + formatted(seconds, "s") + " a round more than at the median worker";
  var own = rates.filter(function (rate) { return rate.metric.direction === stage && ofRun(rate.metric) === ofRun(one.metric); });
  var sorted = own.map(function (rate) { return Number(rate.value[1]); }).sort(function (a, b) { return a - b; });
  own = own.filter(function (rate) { return rate.metric.worker === one.metric.worker; });
  if (!own.length) return text;
  return text + ": " + formatted(Number(own[0].value[1]), "Bps") + ", the median has " + formatted(sorted[Math.floor(sorted.length / 2)], "Bps");
}

function stragglers() {
  return Promise.all([instant(TABLE.stragglers.share), instant(TABLE.stragglers.seconds), instant(TABLE.stragglers.rates)]).then(function (answers) {
    var box = document.getElementById("straggler"), found = answers[0];
    alarmed = {};
    found.forEach(function (one) { alarmed[one.metric.worker] = one.metric.stage; });
    box.hidden = false;
    box.className = found.length ? "found" : "";
    box.textContent = found.length ? "Holds the round up: " : "No worker holds the round up.";
    found.forEach(function (one, i) {
      var seconds = answers[1].filter(function (other) {
        return ["worker", "stage"].every(function (label) { return other.metric[label] === one.metric[label]; }) && ofRun(other.metric) === ofRun(one.metric);
      });
      if (i) box.appendChild(node("br"));
      box.appendChild(node("b", "", one.metric.worker));
      box.appendChild(document.createTextNode(" (" + reason(one, seconds.length ? Number(seconds[0].value[1]) : null, answers[2]) + ")"));
    });
  });
}

function show(panel, box) {
  return {graph: graph, stat: stat, table: table}[panel.kind](panel, box).then(function (parts) {
    var body = box.querySelector(".body");
    body.replaceChildren.apply(body, parts.length ? parts : [node("div", "empty", "no data")]);
    box.dataset.filled = parts.length ? "yes" : "no";
  });
}

function refresh(boxes) {
  var trouble = document.getElementById("trouble");
  return stragglers().then(function () {
    return Promise.all(TABLE.panels.map(function (panel, i) { return show(panel, boxes[i]); }));
  }).then(function () {
    trouble.hidden = true;
    document.body.dataset.shown = "yes";
  }, function (error) {
    trouble.hidden = false;
    trouble.textContent = "Prometheus does not answer: " + error.message;
  });
}

function go(values) {
  Object.keys(values).forEach(function (name) { parameters.set(name, values[name]); });
  location.search = parameters.toString();
}

function choice(id, name, options, chosen) {
  var select = document.getElementById(id);
  options.forEach(function (option) {
    var entry = node("option", "", option[0]);
    entry.value = option[1];
    entry.selected = String(option[1]) === String(chosen);
    select.appendChild(entry);
  });
  select.onchange = function () { var values = {}; values[name] = select.value; go(values); };
}

function described(panel) {
  var about = node("p", "about", panel.about);
  panel.runbooks.forEach(function (place) {
    var link = node("a", "", place.split("#")[1] === "README" ? "runbooks" : place.split("#")[1]);
    link.href = place;
    about.appendChild(document.createTextNode(" "));
    about.appendChild(link);
  });
  return about;
}

function chooseRun(series) {
  var select = document.getElementById("run"), chosen = ofRun({namespace: parameters.get("namespace"), run: parameters.get("run")});
  var runs = {"all": {namespace: "", run: ""}};
  series.forEach(function (labels) { runs[ofRun(labels) || "without a name"] = {namespace: labels.namespace || "", run: labels.run || ""}; });
  Object.keys(runs).forEach(function (name) {
    var entry = node("option", "", name);
    entry.selected = name === chosen;
    select.appendChild(entry);
  });
  select.onchange = function () { go(runs[select.value]); };
}

function begin() {
  TABLE.rows.forEach(function (row) {
    var link = node("a", row.row === TABLE.row ? "here" : "", row.row);
    link.href = row.page + location.search;
    document.getElementById("rows").appendChild(link);
  });
  choice("range", "range", Object.keys(RANGES).map(function (name) { return [name, RANGES[name]]; }), parameters.get("range") || 3600);
  ask("series", {"match[]": "distro_aggregator_round", start: window_().from, end: window_().to}).then(chooseRun);
  var boxes = TABLE.panels.map(function (panel) {
    var box = node("section", panel.kind + (panel.tall ? " tall" : "") + (panel.kind === "table" && panel.queries.length > 1 ? " wide" : ""));
    box.appendChild(node("h2", "", panel.title));
    box.appendChild(described(panel));
    box.appendChild(node("div", "body"));
    document.getElementById("panels").appendChild(box);
    return box;
  });
  refresh(boxes);
  setInterval(function () { refresh(boxes); }, 15000);
}

begin();
