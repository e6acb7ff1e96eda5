"""Opens console pages in Debian's Chromium and waits until they are drawn."""
import contextlib
import pathlib
import os

from playwright.sync_api import sync_playwright

DRAWN = "document.body.dataset.shown === 'yes'"
SCREENSHOTS = os.environ.get("DISTRO_SCREENSHOTS")  # a folder; docs/images to renew those of the docs


@contextlib.contextmanager
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield chromium
        chromium.close()


def opened(chromium, url, **options):
    """A page whose panels are drawn; nothing may fail on the way."""
    page, errors = chromium.new_page(**{"viewport": {"width": 1280, "height": 900}, **options}), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("response", lambda answer: errors.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
    page.goto(url)
    page.wait_for_function(DRAWN, timeout=60000)
    assert errors == [], url
    return page


def panels(page):
    """{title: whether it shows data} of a page."""
    return dict(page.eval_on_selector_all("section", "all => all.map(one => [one.querySelector('h2').textContent, one.dataset.filled === 'yes'])"))


def keep(page, name, **options):
    if SCREENSHOTS:
        page.screenshot(path=pathlib.Path(SCREENSHOTS) / f"{name}.png", **options)
