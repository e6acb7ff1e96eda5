"""Would an operator with 40 workers find the one with the bad uplink? The console pages on made-up series (crowd.py), in
Chromium: it is named at the top, first in the tables, and the only line in red."""
import pathlib
import re
import shutil
import tempfile

import pytest

import crowd
import prometheus_server
from console_browser import browser, keep, opened, panels

NAME = f"worker-{crowd.STRAGGLER}"


@pytest.fixture(scope="module")
def prometheus():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="distro-"))
    try:
        prometheus_server.generate(folder)
        shutil.rmtree(folder / "rules")  # their series are among those made up
        crowd.write_blocks(folder)
        server = prometheus_server.Prometheus(folder, {})
        yield server
        server.close()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def chromium():
    with browser() as one:
        yield one


def url(prometheus, page):
    return f"{prometheus.url}/consoles/{page}.html?range={crowd.SECONDS}"


def red_lines(page, title):
    """Names of the lines in red, of a panel."""
    section = page.locator("section", has=page.get_by_role("heading", name=title, exact=True))
    return section.locator("path.alarm title").all_text_contents(), section.locator("path.crowd").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_shows_bad_uplink(prometheus, chromium, scheme):
    page = opened(chromium, url(prometheus, "distro-bandwidth"), color_scheme=scheme,
                  viewport={"width": 1280, "height": 1130})
    told = page.text_content("#straggler")
    assert told.startswith(f"Holds the round up: {NAME} (upload takes 6."), told
    assert re.search(r": 25\d kB/s, the median has 1\.2\d MB/s\)$", told), told
    for panel in ("Slowest workers by stage", "Links"):
        section = page.locator("section", has=page.get_by_role("heading", name=panel, exact=True))
        assert section.locator("tr").nth(1).text_content().startswith(NAME), panel
        assert section.locator("tr.alarm").count() == 1, panel
    assert red_lines(page, "Goodput during transfers") == ([f"{NAME} up", f"{NAME} down"], 2 * (crowd.WORKERS - 1))
    assert red_lines(page, "Mean upload duration") == ([NAME], crowd.WORKERS - 1)
    assert [title for title, filled in panels(page).items() if not filled] == []
    if scheme == "light":
        keep(page, "console_bandwidth")


def test_names_it_on_other_pages(prometheus, chromium):
    for page in ("distro", "distro-membership"):
        assert NAME in opened(chromium, url(prometheus, page)).text_content("#straggler"), page


def test_phone_shows_one_column(prometheus, chromium):
    page = opened(chromium, url(prometheus, "distro-bandwidth"), viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    widths = page.eval_on_selector_all("section", "all => all.map(one => one.getBoundingClientRect().width)")
    assert min(widths) > 300


def test_offers_runs(prometheus, chromium):
    page = opened(chromium, url(prometheus, "distro-bandwidth"))
    page.wait_for_function("document.querySelectorAll('#run option').length > 1")
    assert page.locator("#run option").all_text_contents() == ["all", "made-up / crowd"]
    with page.expect_navigation():
        page.select_option("#run", "made-up / crowd")
    assert "namespace=made-up" in page.url and "run=crowd" in page.url
    page.wait_for_function("document.body.dataset.shown === 'yes'")
    assert all(panels(page).values())
    other = opened(chromium, url(prometheus, "distro-bandwidth") + "&run=another")
    assert not any(filled for title, filled in panels(other).items() if title not in ("Update size", "Result size"))  # those have the report's line


def test_values_have_colors_and_words(prometheus, chromium):
    page = opened(chromium, url(prometheus, "distro"))
    shown = dict(page.eval_on_selector_all("section.stat", "all => all.map(one => [one.querySelector('h2').textContent, "
                                           "Array.from(one.querySelectorAll('.value')).map(v => [v.textContent, v.className])])"))
    assert shown["Spare workers"] == [["16", "value green"]]
    assert shown["Firing alerts"] == [["none", "value green"]]
    assert shown["Run state"] == [["training", "value green"]]


def test_panel_leads_to_its_runbook(prometheus, chromium):
    page = opened(chromium, url(prometheus, "distro-bandwidth"))
    section = page.locator("section", has=page.get_by_role("heading", name="Mean upload duration", exact=True))
    section.get_by_role("link", name="DistroUplinkSaturated").click()
    page.wait_for_selector("#DistroUplinkSaturated:target")
    assert "uplink" in page.text_content("#DistroUplinkSaturated")


def test_trouble_is_told(prometheus, chromium):
    page = chromium.new_page()
    page.route("**/api/v1/**", lambda route: route.fulfill(status=200, json={"status": "error", "error": "it is <b>broken</b>"}))
    page.goto(url(prometheus, "distro-bandwidth"))
    page.wait_for_selector("#trouble:not([hidden])")
    assert page.text_content("#trouble") == "Prometheus does not answer: it is <b>broken</b>"
