"""The page in a real browser, headless Chromium: at three widths, light and dark, without an error or a request."""

import os
import shutil

import pytest

from .pages import make_cifar, make_compare, make_demo, make_killed, make_search

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = {"phone": 360, "tablet": 820, "desk": 1280}
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]


OUTSIDE = """() => [...document.querySelectorAll("svg text")].filter((one) => {
  const [own, all] = [one, one.ownerSVGElement].map((node) => node.getBoundingClientRect());
  return own.left < all.left - 3 || own.right > all.right + 3 || own.top < all.top - 3 || own.bottom > all.bottom + 3;
}).map((one) => one.textContent)"""
LETTERS = """() => [...document.querySelectorAll("svg text")].map(
  (one) => parseFloat(getComputedStyle(one).fontSize) * one.ownerSVGElement.getScreenCTM().a)"""


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium, and the page is opened in it")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright, and the page is opened")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=QUIET)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of a comparison, of one that was killed, of a search, of the demo, and of images in CIFAR's format."""
    from autoweight.report.page import write_report

    folder = tmp_path_factory.mktemp("runs")
    whole = make_compare(folder / "compare", "uniform,auto", seeds=1)
    killed = make_killed(whole, folder / "killed")
    write_report([killed])
    return {
        "compare": whole,
        "killed": killed,
        "search": make_search(folder / "search"),
        "demo": make_demo(folder / "demo"),
        "cifar": make_cifar(folder / "data", folder / "cifar"),
    }


@pytest.mark.parametrize("name", ["compare", "killed", "search", "demo", "cifar"])
def test_a_page_opens_at_every_width(browser, pages, name):
    for width_name, width in WIDTHS.items():
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark")
        said, asked = [], []
        page.on("console", lambda message, said=said: said.append(message.text))
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto((pages[name] / "report.html").as_uri())
        assert said == []
        assert [url for url in asked if not url.startswith(("data:", "file:"))] == []
        assert len([url for url in asked if url.startswith("file:")]) == 1
        assert page.evaluate("document.documentElement.scrollWidth") == width  # nothing sticks out
        assert page.locator("h2").count() == 8
        assert page.evaluate(OUTSIDE) == []
        assert min(page.evaluate(LETTERS)) >= 11  # also on a phone, where charts are narrow
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{folder}/{name}-{width_name}.png", full_page=True)
        page.close()


def test_values_lines_and_tables_answer(browser, pages):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((pages["compare"] / "report.html").as_uri())
    chart = page.locator("svg[data-chart]").first
    chart.hover()
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert "uniform" in tip.inner_text()
    page.mouse.move(2, 2)
    assert not tip.is_visible()
    chart.focus()
    for key in ["ArrowRight"] * 4 + ["ArrowLeft"]:  # to the end, and one back
        page.keyboard.press(key)
    assert tip.inner_text().startswith("stage 3")
    page.keyboard.press("Escape")
    assert not tip.is_visible()

    figure = page.locator("figure").filter(has=page.locator("[data-toggle]")).first
    line = figure.locator("[data-series='0']")
    figure.locator("[data-toggle='0']").click()
    assert not line.is_visible()
    figure.locator("[data-toggle='0']").click()
    assert line.is_visible()

    table = page.locator("table.sortable").first
    table.locator("th button").nth(1).click()
    shown = [float(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    table.locator("th button").nth(1).click()
    assert [float(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()] == sorted(shown)
    page.close()


def test_the_weights_of_another_method_can_be_chosen_and_printed(browser, pages):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((pages["demo"] / "report.html").as_uri())
    shown = "[...document.querySelectorAll('.of-method')].filter((one) => !one.hidden).map((one) => one.dataset.method)"
    assert page.evaluate(shown) == ["law"]
    page.get_by_role("radio", name="focal").check()
    assert page.evaluate(shown) == ["focal"]
    assert page.get_by_text("Spread of the weights, focal").is_visible()
    page.emulate_media(media="print")
    assert page.get_by_text("Spread of the weights, focal").is_visible()
    assert not page.locator(".pick").is_visible()
    page.close()


def test_on_a_phone_gains_stand_in_sight_and_what_was_told_is_folded(browser, pages):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((pages["demo"] / "report.html").as_uri())
    table = page.locator("table.methods")
    for heading in ("over uniform", "recovered"):
        box = table.locator("th", has_text=heading).bounding_box()
        assert box["x"] + box["width"] <= 390
    row = table.locator("tbody tr", has_text="oracle")
    assert not row.locator("td.told").is_visible()
    folded = row.locator("details").bounding_box()["height"]
    assert page.locator(".hint").first.is_visible()  # the seconds lie beyond the edge
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator(".hint").first.wait_for(state="hidden")
    page.set_viewport_size({"width": 390, "height": 800})
    page.locator(".hint").first.wait_for(state="visible")
    row.locator("summary").click()
    assert row.locator("details").inner_text().endswith("Which labels are wrong.")
    assert row.locator("details").bounding_box()["height"] > folded
    page.close()


def test_a_tap_shows_values_and_so_do_keys_on_maps(browser, pages):
    page = browser.new_page(viewport={"width": 360, "height": 800}, has_touch=True)
    page.goto((pages["cifar"] / "report.html").as_uri())
    tip = page.locator("#tip")
    page.locator("svg[data-chart]").first.tap()
    assert tip.inner_text().startswith("stage")
    assert page.locator("svg .cursor").count() == 1
    cells = page.locator("svg[data-cells]").first
    cells.tap()
    assert tip.inner_text().startswith("given ")
    assert page.locator("svg .cursor").count() == 0
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    said = set()
    for key in ("ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
        said.add(tip.inner_text())
    assert len(said) == 4  # back where it began
    page.close()


def test_pictures_are_shown(browser, pages):
    page = browser.new_page()
    page.goto((pages["cifar"] / "report.html").as_uri())
    shown = page.evaluate(
        "[...document.querySelectorAll('.picture')].map((one) => getComputedStyle(one).backgroundImage)"
    )
    assert len(shown) > 20
    assert all(image.startswith('url("data:image/png') for image in shown)
    page.close()


def test_names_that_begin_with_a_figure_are_sorted_as_words(browser, pages):
    page = browser.new_page()
    page.goto((pages["compare"] / "report.html").as_uri())
    cell = (
        "([text]) => typeof value({ cells: [Object.assign(document.createElement('td'), { textContent: text })] }, 0)"
    )
    kinds = {"3d": "string", "1,234": "number", "12.5 %": "number", "-0.5": "number", "": "string"}
    assert {text: page.evaluate(cell, [text]) for text in kinds} == kinds
    page.close()


def test_text_stands_out_from_its_ground(browser, pages):
    """WCAG AA: a contrast of 4.5 for all text, in light and in dark."""
    measure = """() => {
      const luminance = (text) => {
        const [r, g, b] = text.match(/[\\d.]+/g).map((x) => x / 255)
          .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = (node) => {
        for (let one = node; one; one = one.parentElement) {
          const colour = getComputedStyle(one).backgroundColor;
          if (!colour.endsWith(", 0)")) return colour;
        }
        return "rgb(255, 255, 255)";
      };
      return [...document.querySelectorAll("p, h1, h2, h3, h4, td, th, figcaption, dt, dd, svg text")].map((node) => {
        const style = getComputedStyle(node);
        const colours = [node.tagName === "text" ? style.fill : style.color, ground(node)].map(luminance);
        return (Math.max(...colours) + 0.05) / (Math.min(...colours) + 0.05);
      });
    }"""
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto((pages["compare"] / "report.html").as_uri())
        contrasts = page.evaluate(measure)
        assert len(contrasts) > 100
        assert min(contrasts) >= 4.5
        page.close()
