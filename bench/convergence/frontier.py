"""Draws what a method costs and what it learns: held-out loss against the bits that a worker sends, and sends and receives, for each parameter
and step; a dot a run, and the frontier: the runs that no other beats in both.
"""
from xml.sax.saxutils import escape

from curves import HEIGHT, LEFT, BOTTOM, TOP, Axis, label, style

PANEL = 470  # width of one of the two
GAP, LEGEND_ROW = 14, 22


def frontier(points):
    """Those of (cost, loss) of lower loss than every cheaper one, by cost."""
    best, kept = float("inf"), []
    for cost, loss in sorted(points):
        if loss < best:
            best = loss
            kept.append((cost, loss))
    return kept


def panel(left, title, groups, y):
    """`groups`: [[(cost, loss)]], coloured in their order."""
    right = left + PANEL - GAP
    every = [point for points in groups for point in points]
    x = Axis([cost for cost, _ in every], left + LEFT, right, log=True)
    parts = [f'<text x="{(left + LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(title)}</text>']
    for tick in x.ticks:
        at = x.pixel(tick)
        parts.append(f'<path class="grid" d="M{at} {TOP}V{HEIGHT - BOTTOM}"/>'
                     f'<text x="{at}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label(tick)}</text>')
    for tick in y.ticks:
        at = y.pixel(tick)
        parts.append(f'<path class="grid" d="M{left + LEFT} {at}H{right}"/><text x="{left + LEFT - 8}" y="{at + 4}" text-anchor="end">{tick:g}</text>')
    line = " ".join(f"{x.pixel(cost)},{y.pixel(loss)}" for cost, loss in frontier(every))
    parts.append(f'<polyline class="frontier grid" points="{line}"/>')
    for i, points in enumerate(groups):
        parts += [f'<circle class="dot c{i}" cx="{x.pixel(cost)}" cy="{y.pixel(loss)}" r="4"/>' for cost, loss in points]
    return parts


def chart(title, groups, worst):
    """SVG of {name: [(bits sent, bits sent and received, loss)]}, at most five; runs whose loss is above `worst` are left out."""
    groups = {name: [run for run in runs if run[2] <= worst] for name, runs in groups.items()}
    groups = {name: runs for name, runs in groups.items() if runs}
    y = Axis([loss for runs in groups.values() for *_, loss in runs], HEIGHT - BOTTOM, TOP, log=False)
    width, height = 2 * PANEL, HEIGHT + LEGEND_ROW + 8
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">', style(),
             "<style>.dot{fill:none;stroke-width:2}.frontier{fill:none;stroke-width:2;stroke-dasharray:5 4}</style>",
             f'<rect class="paper" width="{width}" height="{height}"/>', f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>']
    parts += panel(0, "bits sent, a parameter and step", [[(up, loss) for up, _, loss in runs] for runs in groups.values()], y)
    parts += panel(PANEL, "bits sent and received, a parameter and step", [[(both, loss) for _, both, loss in runs] for runs in groups.values()], y)
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle">held-out loss, nats a byte</text>')
    for i, name in enumerate(groups):
        left, at = LEFT + i * 170, HEIGHT + 12
        parts.append(f'<circle class="dot c{i}" cx="{left}" cy="{at - 4}" r="4"/><text x="{left + 10}" y="{at}">{escape(name)}</text>')
    return "\n".join(parts) + "\n</svg>\n"
