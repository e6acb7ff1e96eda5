#!/usr/bin/env python3
"""Draws learning curves from the CSV files of `convergence`: held-out loss against tokens, bytes on the wire, and time on slow links.

    bench/convergence/curves.py --out docs/images AdamW=build/study/a.csv "DisTrO"=build/study/b.csv

Writes learning_tokens.svg, learning_bytes.svg and learning_time.svg. They carry colours for light and dark pages.
"""
import argparse
import math
import pathlib
from xml.sax.saxutils import escape

from lab import read_curve

WIDTH, HEIGHT = 760, 420  # without the legend below
LEFT, RIGHT, TOP, BOTTOM = 64, 28, 44, 52
LEGEND_ROW = 22
# Distinguishable with every type of colour vision, on white and on black.
LIGHT = ("#0072b2", "#d55e00", "#00805c", "#a34c83", "#7a6000")
DARK = ("#56b4e9", "#ff8a4c", "#3fd0a4", "#e79ac6", "#e6c84c")
STEPS_PER_SECOND = 100  # compute rate of a worker with 0.3 M parameters and 256 tokens, on one core
SLOW, FAST = (10e6, 100e6), (1e9, 1e9)  # bits a second up, down


def seconds(point, up, down):
    """Seconds to compute and then exchange this many rounds; up and down, in bits per second, overlap."""
    return point["round"] / STEPS_PER_SECOND + max(8 * point["sent_bytes"] / up, 8 * point["received_bytes"] / down)


def linear_ticks(low, high):
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def decades(low, high):
    return [10.0 ** i for i in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


class Axis:
    """Maps values to pixels from `start` to `end`; the range covers ticks and values."""

    def __init__(self, values, start, end, log):
        low, high = min(values), max(values)
        if low == high:
            high = low * 2 or 1.0
        self.log = log
        self.ticks = decades(low, high) if log else linear_ticks(low, high)
        self.low, self.high = (self.ticks[0], self.ticks[-1]) if log else (min(low, self.ticks[0]), max(high, self.ticks[-1]))
        self.start, self.end = start, end

    def pixel(self, value):
        scale = math.log10 if self.log else float
        share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))
        return round(self.start + share * (self.end - self.start), 1)


def label(value):
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g} {name}"
    return f"{value:g}"


def style():
    def colours(palette, ink, paper, line):
        rules = [f".paper{{fill:{paper}}}", f"text{{fill:{ink}}}", f".grid{{stroke:{line}}}"]
        return "".join(rules + [f".c{i}{{stroke:{colour}}}" for i, colour in enumerate(palette)])
    return ("<style>text{font:13px sans-serif}.title{font-size:15px;font-weight:600}.curve{fill:none;stroke-width:2}"
            + colours(LIGHT, "#1f2328", "#ffffff", "#d8dee4")
            + "@media(prefers-color-scheme:dark){" + colours(DARK, "#e6edf3", "#0d1117", "#30363d") + "}</style>")


def head(title, width, height):
    """The opening of an SVG file."""
    return [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">', style(),
            f'<rect class="paper" width="{width}" height="{height}"/>', f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>']


def grid(x, y, x_title):
    """Lines and labels of two axes."""
    parts = []
    for tick in x.ticks:
        at = x.pixel(tick)
        parts.append(f'<path class="grid" d="M{at} {TOP}V{HEIGHT - BOTTOM}"/>'
                     f'<text x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label(tick)}</text>')
    for tick in y.ticks:
        at = y.pixel(tick)
        parts.append(f'<path class="grid" d="M{x.start} {at}H{x.end}"/><text x="{x.start - 8}" y="{at + 4}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<text x="{(x.start + x.end) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_title)}</text>')
    return parts


def loss_title():
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle">held-out loss, nats a byte</text>'


def chart(title, x_title, series, log):
    """SVG of `series`: (name or "" for none in the legend, colour's index, dash, [(x, loss)]). With `log`, points at x = 0 are left out."""
    series = [(name, colour, dash, [(x, y) for x, y in points if x > 0 or not log]) for name, colour, dash, points in series]
    x = Axis([point[0] for *_, points in series for point in points], LEFT, WIDTH - RIGHT, log)
    y = Axis([point[1] for *_, points in series for point in points], HEIGHT - BOTTOM, TOP, False)
    named = [(name, colour) for name, colour, *_ in series if name]
    height = HEIGHT + LEGEND_ROW * -(-len(named) // 3) + 8
    parts = [*head(title, WIDTH, height), *grid(x, y, x_title), loss_title()]
    for _, colour, dash, points in series:
        line = " ".join(f"{x.pixel(a)},{y.pixel(b)}" for a, b in points)
        parts.append(f'<polyline class="curve c{colour}"' + (f' stroke-dasharray="{dash}"' if dash else "") + f' points="{line}"/>')
    for i, (name, colour) in enumerate(named):
        left, at = LEFT + i % 3 * 230, HEIGHT + 12 + LEGEND_ROW * (i // 3)
        parts.append(f'<path class="curve c{colour}" d="M{left} {at - 4}h26"/><text x="{left + 34}" y="{at}">{escape(name)}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def draw(curves, folder):
    """The three charts of `curves`, {name: rows}, at most five."""
    folder.mkdir(parents=True, exist_ok=True)
    named = list(enumerate(curves.items()))
    by_tokens = [(name, i, "", [(p["tokens"], p["held_out_loss"]) for p in points]) for i, (name, points) in named]
    by_bytes = [(name, i, "", [(p["sent_bytes"] + p["received_bytes"], p["held_out_loss"]) for p in points]) for i, (name, points) in named]
    by_time = [(shown, i, dash, [(seconds(p, *link), p["held_out_loss"]) for p in points])
               for i, (name, points) in named for shown, link, dash in ((name, SLOW, ""), ("", FAST, "6 4"))]
    (folder / "learning_tokens.svg").write_text(chart("Loss against tokens", "tokens of all workers", by_tokens, False))
    (folder / "learning_bytes.svg").write_text(chart("Loss against bytes", "bytes sent and received by a worker", by_bytes, True))
    (folder / "learning_time.svg").write_text(chart("Loss against time at 10 Mbps up, 100 Mbps down (lines) and 1 Gbps (dashes)", "seconds of computing and exchanging", by_time, True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the images")
    parser.add_argument("curves", nargs="+", metavar="NAME=CSV")
    options = parser.parse_args()
    draw({name: read_curve(path) for name, path in (curve.split("=", 1) for curve in options.curves)}, options.out)


if __name__ == "__main__":
    main()
