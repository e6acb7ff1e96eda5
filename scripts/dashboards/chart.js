// Lines over time as SVG. draw(series, options): series are {name, points: [[seconds, value]], style, color}, style is
// "own" (with a colour), "crowd" (grey) or "alarm"; options are {from, to, step, unit, log, mirrored, width, height}. Mirrored:
// what is above zero and what is below have half of the height each, on scales of their own.
var COLORS = ["#3b78c3", "#d9822b", "#2a9d6f", "#8e5bb5", "#b08900", "#0f9bb0", "#b5527d", "#6d7f2f"];

function formatted(value, unit) {
  if (value === null || isNaN(value)) return "–";
  var size = Math.abs(value), steps, i;
  if (unit === "percentunit") return digits(value * 100) + " %";
  if (unit === "s") {
    if (size >= 172800) return digits(value / 86400) + " d";
    if (size >= 7200) return digits(value / 3600) + " h";
    if (size >= 120) return digits(value / 60) + " min";
    return size > 0 && size < 1 ? digits(value * 1000) + " ms" : digits(value) + " s";
  }
  steps = unit === "bytes" || unit === "Bps" ? [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]] : [[1e9, " G"], [1e6, " M"], [1e4, " k"]];
  var tail = unit === "bytes" ? "B" : unit === "Bps" ? "B/s" : unit === "ops" ? "/s" : "";
  for (i = 0; i < steps.length; i++) {
    if (size >= steps[i][0]) return digits(value / (steps[i][0] === 1e4 ? 1e3 : steps[i][0])) + steps[i][1] + tail;
  }
  return digits(value) + (tail === "/s" ? "" : tail ? " " : "") + tail;
}

function digits(value) {
  var size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100 || value === Math.round(value)) return String(Math.round(value));
  if (size >= 1) return String(Number(value.toFixed(size >= 10 ? 1 : 2)));
  return String(Number(value.toPrecision(2)));
}

function ticks(low, high, log) {
  var found = [], step, value;
  if (log) {
    for (value = Math.ceil(low); value <= high; value++) found.push(value);
    if (found.length > 1) return found;
  }
  step = Math.pow(10, Math.floor(Math.log10((high - low) / 3)));
  while ((high - low) / step > 5) step *= (high - low) / step > 12 ? 5 : 2;
  for (value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : value);
  return found;
}

function element(name, attributes, text) {
  var node = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.keys(attributes).forEach(function (key) { node.setAttribute(key, attributes[key]); });
  if (text !== undefined) node.textContent = text;
  return node;
}

function bounds(series, log) {
  var low = Infinity, high = -Infinity;
  series.forEach(function (line) {
    line.points.forEach(function (point) {
      var value = log ? (point[1] > 0 ? Math.log10(point[1]) : NaN) : point[1];
      if (isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
    });
  });
  if (low > high) return null;
  if (!log) { low = Math.min(low, 0); high = Math.max(high, 0); }
  if (log) { low = Math.floor(low); high = Math.ceil(high); }
  if (low === high) { high = low + 1; }
  return log ? [low, high] : [low < 0 ? low * 1.05 : low, high > 0 ? high * 1.05 : high];
}

function clock(seconds) {
  var time = new Date(seconds * 1000);
  return ("0" + time.getHours()).slice(-2) + ":" + ("0" + time.getMinutes()).slice(-2) + ":" + ("0" + time.getSeconds()).slice(-2);
}

function draw(series, options) {
  var left = 64, bottom = 18, width = options.width, height = options.height, range = bounds(series, options.log);
  var svg = element("svg", {viewBox: "0 0 " + width + " " + height, role: "img"});
  if (!range) return null;
  var halves = options.mirrored && range[0] < 0 && range[1] > 0, top = 4, inner = height - bottom - 4, marks;
  function x(time) { return left + (time - options.from) / (options.to - options.from) * (width - left - 4); }
  function y(value) {
    if (halves) return top + inner / 2 * (value > 0 ? 1 - value / range[1] : 1 + value / range[0]);
    return top + (range[1] - value) / (range[1] - range[0]) * inner;
  }
  marks = halves ? ticks(range[0], 0).concat(ticks(0, range[1]).slice(1)) : ticks(range[0], range[1], options.log);
  marks.forEach(function (value) {
    svg.appendChild(element("line", {x1: left, x2: width - 4, y1: y(value), y2: y(value), "class": value === 0 && !options.log ? "zero" : "grid"}));
    var shown = options.log ? Math.pow(10, value) : options.mirrored ? Math.abs(value) : value;
    svg.appendChild(element("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, formatted(shown, options.unit)));
  });
  [0, 0.5, 1].forEach(function (part) {
    var time = options.from + part * (options.to - options.from);
    svg.appendChild(element("text", {x: x(time), y: height - 4, "text-anchor": ["start", "middle", "end"][part * 2]}, clock(time)));
  });
  series.slice().sort(function (a, b) { return (a.style === "alarm") - (b.style === "alarm"); }).forEach(function (line) {
    var path = "", gap = true, last = 0;
    line.points.forEach(function (point) {
      var value = options.log ? Math.log10(point[1]) : point[1];
      if (!isFinite(value)) { gap = true; return; }
      if (point[0] - last > 5 * options.step) gap = true;
      path += (gap ? "M" : "L") + x(point[0]).toFixed(1) + " " + y(value).toFixed(1);
      if (gap) path += "h0.1";
      gap = false;
      last = point[0];
    });
    var attributes = {d: path, "class": line.style};
    if (line.style === "own") attributes.style = "stroke: " + line.color;
    var drawn = element("path", attributes);
    drawn.appendChild(element("title", {}, line.name));
    svg.appendChild(drawn);
  });
  return svg;
}
