"""Draws cost against result of the methods: held-out loss against the bits that a worker sends, and sends and receives, for each parameter
and step; a dot a run, and the frontier: the runs that no other beats in both.
"""
from xml.sax.saxutils import escape

from curves import BOTTOM, HEIGHT, LEFT, LEGEND_ROW, TOP, Axis, grid, head, loss_title

PANEL = 470  # width of one of the two
GAP = 14


def frontier(points):
    """The (cost, loss) points with a lower loss than every cheaper one, sorted by cost."""
    best, kept = float("inf"), []
    for cost, loss in sorted(points):
        if loss < best:
            best = loss
            kept.append((cost, loss))
    return kept


def panel(left, title, groups, y):
    """`groups`: [[(cost, loss)]], which get colours in order."""
    right = left + PANEL - GAP
    every = [point for points in groups for point in points]
    x = Axis([cost for cost, _ in every], left + LEFT, right, log=True)
    parts = grid(x, y, title)
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
    parts = [*head(title, width, height), loss_title(),
             "<style>.dot{fill:none;stroke-width:2}.frontier{fill:none;stroke-width:2;stroke-dasharray:5 4}</style>"]
    parts += panel(0, "bits sent, a parameter and step", [[(up, loss) for up, _, loss in runs] for runs in groups.values()], y)
    parts += panel(PANEL, "bits sent and received, a parameter and step", [[(both, loss) for _, both, loss in runs] for runs in groups.values()], y)
    for i, name in enumerate(groups):
        left, at = LEFT + i * 170, HEIGHT + 12
        parts.append(f'<circle class="dot c{i}" cx="{left}" cy="{at - 4}" r="4"/><text x="{left + 10}" y="{at}">{escape(name)}</text>')
    return "\n".join(parts) + "\n</svg>\n"
