"""The page in a real browser: sorting, filtering, details, keyboard, and no request to anywhere."""

from __future__ import annotations

import os
import shutil
from itertools import pairwise

import pytest

from leaderboard_records import GRID, evaluation, many, save
from style_overlap.leaderboard import site
from style_overlap.leaderboard.curves import chart

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
SCRIPT = "<script>window.hacked = 1</script>"


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; without one these tests are skipped, but never in CI (.ci/run)."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    if CHROMIUM is None:
        if os.environ.get("STYLE_OVERLAP_BROWSER_TESTS") == "required":
            pytest.fail("no chromium: .ci/run should have installed it")
        pytest.skip("no chromium here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A page with everything on it."""
    folder = tmp_path_factory.mktemp("board")
    runs = many(folder / "runs")
    save(runs / "evil", evaluation(SCRIPT))
    return site.write([runs], folder / "site"), (folder / "site" / "index.html").as_uri()


@pytest.fixture
def page(browser, board):
    """The page, opened from its file; at the end nothing may have gone wrong or out."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    faults, requests = [], []
    opened.on("console", lambda message: faults.append(message.text))
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url.partition("#")[0]))
    opened.goto(board[1])
    yield opened
    assert faults == []
    assert set(requests) == {board[1]}
    context.close()


def wait(page, condition):
    """Wait for a condition; not by frames, which a busy machine may not draw for seconds."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never came true: {condition}")


def column(page, number):
    """Sort values of a column, in the order of the rows that are shown."""
    return page.evaluate(
        """number => [...document.querySelectorAll('#board tbody tr')]
            .filter(row => row.checkVisibility()).map(row => row.cells[number - 1].dataset.v)""",
        number,
    )


def number_of(page, title):
    titles = page.locator("#board thead th").evaluate_all("all => all.map(x => x.dataset.title)")
    return titles.index(title) + 1


def head(page, title):
    return page.locator(f'#board thead th[data-title="{title}"]')


def test_every_column_sorts_both_ways_and_missing_figures_stay_last(page):
    for title in ("Style accuracy", "encoder", "HOA"):
        place = number_of(page, title)
        for _ in range(2):
            head(page, title).get_by_role("button").click()
            order = head(page, title).get_attribute("aria-sort")
            got = column(page, place)
            known = [value for value in got if value != ""]
            assert got[len(known) :] == [""] * (len(got) - len(known))
            key = str.lower if title == "encoder" else float
            if title != "encoder":
                wanted = sorted(known, key=key, reverse=order == "descending")
                assert [float(v) for v in known] == [float(v) for v in wanted]
            else:
                first, last = (
                    (known[0], known[-1]) if order == "ascending" else (known[-1], known[0])
                )
                assert key(first) <= key(last)
        assert page.locator("#board thead th[aria-sort]").count() == 1
        assert title in page.locator("#status").inner_text()


def test_the_first_click_puts_the_better_end_first(page):
    head(page, "Style accuracy").get_by_role("button").click()
    assert head(page, "Style accuracy").get_attribute("aria-sort") == "descending"
    head(page, "Content reliance").get_by_role("button").click()
    assert head(page, "Content reliance").get_attribute("aria-sort") == "ascending"


def test_rows_are_filtered_by_k_and_corpus_and_come_back(page, board):
    rows = len(board[0]["rows"])
    assert len(column(page, 1)) == rows
    page.get_by_label("Styles (k)").select_option("3")
    assert set(column(page, number_of(page, "k"))) == {"3"}
    assert f"1 of {rows} rows" in page.locator("#status").inner_text()
    page.get_by_role("button", name="Show all").click()
    wait(page, f"document.querySelectorAll('#board tbody tr:not([hidden])').length == {rows}")
    page.get_by_label("Corpus").select_option("a" * 64)
    assert len(column(page, 1)) == 1
    page.get_by_label("Styles (k)").select_option("3")
    assert column(page, 1) == []


def test_details_open_by_keyboard_show_matrix_and_curves_and_lead_back(page, board):
    row = next(row for row in board[0]["rows"] if row["looks"])
    section = page.locator(f"#row-{row['id']}")
    assert not section.is_visible()
    page.locator(f"#to-{row['id']}").focus()
    page.keyboard.press("Enter")
    assert section.is_visible()
    wait(page, f"document.activeElement.id == 'head-{row['id']}'")
    assert section.locator("table.matrix tbody td").count() == 36
    assert section.locator("svg[role=img]").count() == 3
    for i in range(3):
        assert "%" in section.locator("svg").nth(i).get_attribute("aria-label")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait(page, f"document.activeElement.id == 'to-{row['id']}'")
    assert not section.is_visible()


def test_a_row_can_be_linked_to_and_the_back_button_works(page, board):
    row = board[0]["rows"][0]
    page.goto(f"{board[1]}#row-{row['id']}")
    assert page.locator(f"#row-{row['id']}").is_visible()
    page.go_back()
    assert not page.locator(f"#row-{row['id']}").is_visible()


def test_the_whole_table_is_reached_by_tab_alone(page):
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.textContent.trim()"))
    for wanted in ("Skip to the table", "Show all", "Style accuracy", "baseline:tfidf"):
        assert wanted in reached


def test_a_script_in_a_name_is_shown_and_not_run(page):
    assert page.get_by_role("link", name=SCRIPT).count() == 1
    assert page.evaluate("window.hacked") is None


def test_even_a_script_that_got_into_the_page_would_not_run(browser, board, tmp_path):
    """The second lock: the page's policy, if escaping ever failed."""
    folder = tmp_path / "site"
    shutil.copytree(board[1].removeprefix("file://").removesuffix("/index.html"), folder)
    html = (folder / "index.html").read_text()
    (folder / "index.html").write_text(html.replace("<main>", f"<main>{SCRIPT}<img src=x>"))
    context = browser.new_context()
    opened = context.new_page()
    opened.goto((folder / "index.html").as_uri())
    assert opened.evaluate("window.hacked") is None
    assert opened.locator("#status").inner_text() != ""  # its own script does run
    context.close()


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (360, "dark"), (1280, "light")])
def test_it_fits_a_phone_and_has_contrast_in_light_and_dark(browser, board, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    opened = context.new_page()
    row = next(row for row in board[0]["rows"] if row["looks"])
    for place in ("", f"#row-{row['id']}"):
        opened.goto(board[1] + place)
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
    for selector in ("body", "td small", ".missing", "a", ".warn", "svg text", "table.matrix .h5"):
        assert opened.evaluate(CONTRAST, selector) >= 4.5, (selector, scheme)
    context.close()


def test_without_scripts_the_table_and_the_details_can_be_read(browser, board):
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    row = board[0]["rows"][0]
    opened.goto(f"{board[1]}#row-{row['id']}")
    assert opened.locator("#board tbody tr").count() == len(board[0]["rows"])
    assert opened.locator(f"#row-{row['id']}").is_visible()
    assert not opened.locator("#filters").is_visible()
    context.close()


def test_the_reader_of_the_screen_is_told_names_roles_and_what_is_missing(page):
    for region in page.get_by_role("region").all():
        assert region.get_attribute("aria-label") or region.get_attribute("aria-labelledby")
    assert page.get_by_role("table", name="Encoders, one row each").count() == 1
    cells = page.locator("#board tbody .unseen")
    assert "no score at alpha_train 1.0, alpha_eval 1.0" in " ".join(cells.all_text_contents())
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(x => +x.tagName[1])")
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


# WCAG's contrast of the text with the first opaque ground behind it.
CONTRAST = """selector => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const lum = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const element = document.querySelector(selector);
  if (!element) return 99;
  const style = getComputedStyle(element);
  const ink = parse(element instanceof SVGElement ? style.fill : style.color);
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    layers.push(c.length < 4 ? [...c, 1] : c);
  }
  let ground = [255, 255, 255];
  for (const [r, g, b, a] of layers.reverse())
    ground = ground.map((v, i) => [r, g, b][i] * a + v * (1 - a));
  const [x, y] = [lum(ink), lum(ground)].sort((a, b) => b - a);
  return (x + 0.05) / (y + 0.05);
}"""


def test_labels_of_lines_do_not_cover_each_other():
    lines = {f"train {i}": [(0, 50.0), (1, 60.0 + i / 10)] for i in range(6)}
    made = chart("t", "x", "y", lines)
    heights = sorted(line.label_y for line in made.lines)
    assert all(b - a >= 13 for a, b in pairwise(heights))
    assert max(heights) <= made.bottom + 4


def test_a_chart_without_a_point_is_none_and_one_point_is_drawn():
    assert chart("t", "x", "y", {"a": []}) is None
    made = chart("t", "x", "y", {"a": [(0.4, 50.0)], "b": []})
    assert [line.label for line in made.lines] == ["a"]
    assert made.described == "t. y by x. a: 50.0 at 0.4."


def test_a_page_of_one_half_finished_row_can_be_made(tmp_path):
    made = site.write([save(tmp_path / "runs", evaluation(alpha=GRID[0]))], tmp_path / "site")
    assert len(made["rows"]) == 1
    assert "not ranked" in (tmp_path / "site" / "index.html").read_text()
