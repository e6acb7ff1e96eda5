"""Draws cost against result: of some methods, the held-out loss against the bits that a worker sends for each parameter and step."""
from xml.sax.saxutils import escape

from curves import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, grid, head, loss_title


def chart(title, methods):
    """SVG of {name: (bits sent, loss)}, at most ten: a point and its name each."""
    x = Axis([bits for bits, _ in methods.values()], LEFT, WIDTH - RIGHT, log=True)
    y = Axis([loss for _, loss in methods.values()], HEIGHT - BOTTOM, TOP, log=False)
    parts = [*head(title, WIDTH, HEIGHT), *grid(x, y, "bits sent, a parameter and step"), loss_title()]
    for i, (name, (bits, loss)) in enumerate(methods.items()):
        across, down = x.pixel(bits), y.pixel(loss)
        after = across < (LEFT + WIDTH) / 2  # the name stands where there is more room
        parts.append(f'<circle class="c{i % 5}" fill="none" stroke-width="3" cx="{across}" cy="{down}" r="4"/>'
                     f'<text x="{across + (10 if after else -10)}" y="{down + 4}" text-anchor="{"start" if after else "end"}">{escape(name)}</text>')
    return "\n".join(parts) + "\n</svg>\n"
