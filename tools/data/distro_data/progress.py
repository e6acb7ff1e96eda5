"""Shows the progress of long work on standard error: on a terminal one live line, otherwise a line from time to time."""

import sys
import time

from .streams import say

LIVE_SECONDS = 0.5
PLAIN_SECONDS = 30


class Progress:
    def __init__(self, what, total_bytes, done_bytes=0, stream=None, clock=time.monotonic):
        self.what = what
        self.total = max(1, total_bytes)
        self.begun_at_bytes = done_bytes  # done by an earlier process, not counted in the rate
        self.stream = stream or sys.stderr
        self.clock = clock
        self.live = self.stream.isatty()
        self.begun = self.said = clock()

    def update(self, done_bytes, tokens=None):
        now = self.clock()
        if now - self.said >= (LIVE_SECONDS if self.live else PLAIN_SECONDS):
            self.said = now
            self._say(self.line(done_bytes, tokens, now - self.begun))

    def line(self, done_bytes, tokens, seconds):
        rate = (done_bytes - self.begun_at_bytes) / max(seconds, 1e-9)
        words = [f"{self.what} {100 * done_bytes / self.total:.1f}%", f"{size(done_bytes)} of {size(self.total)}", f"{size(rate)}/s"]
        if tokens is not None:
            words.append(f"{tokens / 1e6:.1f} M tokens")
        if rate > 0:
            left = int((self.total - done_bytes) / rate)
            words.append(f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left")
        return "  ".join(words)

    def end(self):
        if self.live:
            say("\r\x1b[K", self.stream)

    def _say(self, line):
        say(f"\r\x1b[K{line}" if self.live else f"{line}\n", self.stream)


def size(number):
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.1f} {unit}" if unit != "B" else f"{number:.0f} B"
        number /= 1000
    return f"{number:.1f} TB"
