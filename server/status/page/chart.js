// The loss curves as SVG, in the size that the page gives them. Redrawn as a whole; at most some 1000 points.
import {count, loss} from '/page/format.js';

const SPACE = 'http://www.w3.org/2000/svg';
const MARGIN = {left: 44, right: 10, top: 8, bottom: 20};

function element(name, attributes, text) {
  const node = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// Round values between low and high, about `wanted` of them, 20 at most: far from 0 a step may be too small to be added.
function ticks(low, high, wanted) {
  const raw = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? 10 * power;
  const values = [];
  const first = Math.ceil(low / step);
  for (let i = 0; i < 20 && (first + i) * step <= high + step * 1e-6; ++i) values.push((first + i) * step);
  return {values, step};
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

export class LossChart {
  constructor(svg, readout) {
    this.svg = svg;
    this.readout = readout;
    this.training = [];
    this.heldOut = [];
    new ResizeObserver(() => this.draw()).observe(svg);
    svg.addEventListener('pointermove', (event) => this.point(event.offsetX));
    svg.addEventListener('pointerleave', () => this.point(null));
  }

  show(training, heldOut) {
    this.training = training;
    this.heldOut = heldOut;
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth, height = this.svg.clientHeight;
    this.svg.replaceChildren();
    const all = [...this.training, ...this.heldOut];
    if (!width || !all.length) {
      this.svg.append(element('text', {x: 8, y: 24}, 'No round is committed since this process started.'));
      return;
    }
    const [firstRound, lastRound] = extent(all.map((point) => point[0]));
    const [lowest, highest] = extent(all.map((point) => point[1]));
    const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
    this.x = (round) => MARGIN.left + (right - MARGIN.left) * (round - firstRound) / (lastRound - firstRound);
    this.y = (value) => bottom - (bottom - MARGIN.top) * (value - lowest) / (highest - lowest);
    this.axes(firstRound, lastRound, lowest, highest, right, bottom);
    this.curve(this.training, 'training');
    this.curve(this.heldOut, 'held-out');
    if (this.heldOut.length <= 60) {
      for (const [round, value] of this.heldOut)
        this.svg.append(element('circle', {class: 'dot', cx: this.x(round), cy: this.y(value), r: 2.6}));
    }
    this.cursor = element('line', {class: 'cursor', y1: MARGIN.top, y2: bottom, visibility: 'hidden'});
    this.svg.append(this.cursor);
  }

  axes(firstRound, lastRound, lowest, highest, right, bottom) {
    const losses = ticks(lowest, highest, 4);
    const decimals = Math.max(0, Math.min(4, -Math.floor(Math.log10(losses.step))));
    for (const value of losses.values) {
      const y = this.y(value);
      this.svg.append(element('line', {class: 'grid', x1: MARGIN.left, x2: right, y1: y, y2: y}));
      this.svg.append(element('text', {x: MARGIN.left - 6, y: y + 4, 'text-anchor': 'end'}, value.toFixed(decimals)));
    }
    for (const round of ticks(firstRound, lastRound, 6).values) {
      if (!Number.isInteger(round)) continue;
      this.svg.append(element('text', {x: this.x(round), y: bottom + 15, 'text-anchor': 'middle'}, count(round)));
    }
  }

  curve(points, name) {
    const path = points.map(([round, value], i) => `${i ? 'L' : 'M'}${this.x(round).toFixed(1)} ${this.y(value).toFixed(1)}`);
    this.svg.append(element('path', {class: name, d: path.join('')}));
  }

  // Shows the values at the pointer; null: none.
  point(at) {
    if (!this.cursor || !this.training.length || at === null) {
      this.readout.textContent = '';
      this.cursor?.setAttribute('visibility', 'hidden');
      return;
    }
    const nearest = (points) => points.reduce((best, point) =>
      Math.abs(this.x(point[0]) - at) < Math.abs(this.x(best[0]) - at) ? point : best);
    const [round, value] = nearest(this.training);
    this.cursor.setAttribute('x1', this.x(round));
    this.cursor.setAttribute('x2', this.x(round));
    this.cursor.setAttribute('visibility', 'visible');
    const heldOut = this.heldOut.length ? `, held-out ${loss(nearest(this.heldOut)[1])}` : '';
    this.readout.textContent = `round ${count(round)}: training ${loss(value)}${heldOut}`;
  }
}
