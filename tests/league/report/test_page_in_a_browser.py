"""The page in headless Chromium: opened from disk, without an error, with plots, filters and downloads that work."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import write_run

from league.report.__main__ import main

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = (
    "def f(x):\n    return '</script><script>document.title=\"owned\"</script><img src=x onerror=alert(1)>{number}'"
)
FORMULA = "=HYPERLINK(1){number}"
"""What a spreadsheet would compute."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a browser, or skip and say what is needed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium in PATH (Debian's package chromium)")
    with playwright.sync_playwright() as tools:
        running = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    runs = [
        write_run(folder / "population", steps=4, members=2, program=HOSTILE, text=FORMULA),
        write_run(folder / "single", steps=3, members=1, program=FORMULA),
    ]
    out = folder / "report.html"
    assert main([*map(str, runs), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def page(browser: Any, report: Path) -> Iterator[Any]:
    """Return the page, drawn; at the end nothing may have been complained of or asked of the network."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme="dark")
    opened = context.new_page()
    faults: list[str] = []
    opened.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("dialog", lambda dialog: faults.append(dialog.message))
    opened.on(
        "request",
        lambda request: None if request.url.startswith(("file:", "blob:", "data:")) else faults.append(request.url),
    )
    opened.goto(report.as_uri())
    opened.wait_for_selector("html[data-drawn]")
    yield opened
    assert faults == []
    context.close()


def rows(page: Any) -> list[str]:
    found: list[str] = page.locator("#list > li > details > summary").all_inner_texts()
    return found


def test_every_plot_is_drawn_with_axes_and_told_in_words(page: Any) -> None:
    plots = page.locator(".plot")
    assert plots.count() == page.locator(".plot.js-plotly-plot").count() == 2 * 20
    assert page.locator(".plot .xtitle").count() == page.locator(".plot .ytitle").count()
    for place in range(plots.count()):
        assert len(plots.nth(place).get_attribute("aria-label")) > 20


def test_a_script_in_a_program_is_shown_and_not_run(page: Any) -> None:
    page.locator("#list > li summary").first.click()
    assert (
        '</script><script>document.title="owned"</script><img src=x'
        in page.locator("#list pre code").first.inner_text()
    )
    assert page.locator("#list script, #list img").count() == 0
    assert "owned" not in page.title()


def test_filters_narrow_the_list(page: Any) -> None:
    everything = int(page.locator("#count").inner_text().split()[0])
    page.select_option("[name=task]", "abduction")
    assert all(" abduction " in row for row in rows(page))
    page.select_option("[name=teacher]", "teacher_1")
    assert all("teacher_1" in row for row in rows(page))
    narrowed = int(page.locator("#count").inner_text().split()[0])
    assert 0 < narrowed < everything
    page.fill("[name=low]", "0.5")
    assert all(float(row.split("solve rate ")[1].split()[0]) >= 0.5 for row in rows(page))
    page.click("#filters [type=reset]")
    page.select_option("[name=valid]", "0")
    assert rows(page)
    assert all("invalid: error:NameError" in row for row in rows(page))
    page.fill("[name=text]", "no such words")
    assert rows(page) == []
    page.click("#filters [type=reset]")
    page.select_option("[name=run]", "1")
    assert int(page.locator("#count").inner_text().split()[0]) == 18
    page.select_option("[name=run]", "0")


def test_numbers_come_as_csv_in_which_no_text_is_a_formula(page: Any, tmp_path: Path) -> None:
    box = page.locator(".numbers[data-plot=solve-rate]").first
    box.locator("summary").click()
    assert box.locator("th").all_inner_texts()[:2] == ["step", "all"]
    with page.expect_download() as waiting:
        box.locator("button.csv").click()
    waiting.value.save_as(tmp_path / "one.csv")
    assert waiting.value.suggested_filename == "population-solve-rate.csv"
    lines = list(csv.reader((tmp_path / "one.csv").open(newline="")))
    assert [line[0] for line in lines] == ["step", "1", "2", "3", "4"]
    page.select_option("[name=run]", "1")
    with page.expect_download() as waiting:
        page.click("#problems-csv")
    page.select_option("[name=run]", "0")
    waiting.value.save_as(tmp_path / "two.csv")
    found = list(csv.DictReader((tmp_path / "two.csv").open(newline="")))
    assert len(found) == 18
    assert all(line["program"].startswith("'=HYPERLINK(1)") for line in found)


def test_keys_reach_a_plot_and_the_theme_changes(page: Any) -> None:
    first = page.locator(".plot").first
    first.focus()
    page.keyboard.press("ArrowRight")
    assert "step 1" in first.locator(".hovertext").first.text_content()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.click("#theme")
    assert page.locator("html").get_attribute("data-theme") == "light"


@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_is_wider_than_the_screen(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for _ in range(50):  # plots follow the window after a moment
        if (wide := page.evaluate("() => document.documentElement.scrollWidth")) <= width:
            break
        page.wait_for_timeout(100)
    assert wide <= width
