"""Pages in Debian's Chromium that must stay free of errors: on the console, in scripts, in answers, and of requests to other hosts."""
import contextlib
import os
import pathlib
import time
import urllib.parse

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
LIMIT_SECONDS = 60  # for anything that is waited for
SCREENSHOTS = os.environ.get("DISTRO_SCREENSHOTS")  # a folder; docs/images renews those of the docs


@contextlib.contextmanager
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield chromium
        finally:
            chromium.close()


class Watched:
    """A page of one host and its errors."""

    def __init__(self, chromium, url, routes=(), **options):
        """`routes`: (pattern, handler) that answer in the host's place. Returns when the page is loaded."""
        self.page = chromium.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page.set_default_timeout(1000 * LIMIT_SECONDS)
        self.errors, self.host = [], urllib.parse.urlsplit(url).netloc
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("response", lambda answer: self.errors.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
        self.page.on("request", self._judge)
        for pattern, handler in routes:
            self.page.route(pattern, handler)
        self.page.goto(url)

    def _judge(self, request):
        if urllib.parse.urlsplit(request.url).netloc != self.host:
            self.errors.append(f"asks another host: {request.url}")

    def until(self, condition, argument=None):
        """Waits for a JavaScript expression, or a function of `argument`, to hold. Not wait_for_function: the page's policy forbids
        the evaluation of strings that it needs."""
        end = time.monotonic() + LIMIT_SECONDS
        while not self.page.evaluate(condition, argument):
            assert time.monotonic() < end, f"not within {LIMIT_SECONDS} s: {condition}"
            self.page.wait_for_timeout(50)

    def texts(self, selector):
        return self.page.eval_on_selector_all(selector, "all => all.map(one => one.textContent)")

    def keep(self, name, **options):
        """A picture for the docs, when they are to be renewed."""
        if SCREENSHOTS:
            self.page.screenshot(path=pathlib.Path(SCREENSHOTS) / f"{name}.png", **options)

    def close(self):
        """Expects no errors."""
        self.page.close()
        assert self.errors == []
