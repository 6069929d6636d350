"""Figures: what they show, and that they can be told apart."""

from __future__ import annotations

import matplotlib
import pytest

from report_records import (
    GRID,
    config,
    evaluation,
    failed,
    looks,
    probe,
    records_of,
    run,
    summary,
    sweep,
    texts,
    write_run,
)
from style_overlap.corpus.giveaway import CueScore, GiveawayReport
from style_overlap.errors import UsageError
from style_overlap.report import figures, heatmaps, lineplots
from style_overlap.report.advantage import Advantage
from style_overlap.report.corpus import giveaway_figure
from style_overlap.report.dynamics_plot import dynamics
from style_overlap.report.matrix import build
from style_overlap.report.records import read
from style_overlap.report.study import findings


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


def test_heat_maps_hold_every_number_and_say_why_one_is_missing(tmp_path):
    sweep(tmp_path, alphas=("0.0", "1.0"), seeds=(0,))
    write_run(tmp_path, failed(config("org/tiny", alpha="0.4"), "boom"))
    (study,) = findings(read([tmp_path])).studies
    drawn = texts(figures.svg(heatmaps.accuracy(study.title, study.matrix)))
    for cell in [(a, b) for a in ("0.0", "1.0") for b in GRID]:
        assert f"{100 * study.matrix.at(cell).mean:.1f}" in drawn
    assert "failed" in drawn
    assert "accuracy (%), from chance" in drawn
    advantage = study.advantage.pairs["0.0", "1.0"].mean
    found = texts(figures.svg(heatmaps.advantages(study.title, study.matrix, study.advantage)))
    assert f"{100 * advantage:+.1f}" in found
    assert {"tiny, k=2", "accuracy (%): KJV, ASV"} <= drawn
    assert {"tiny, k=2", "high-overlap advantage (points)"} <= found


def heat_map_of(pair: float):
    """The map of one pair, whose advantage is given in points."""
    made = {}
    for alpha, accuracy in (("0.0", 0.8), ("1.0", 0.8 + pair / 100)):
        made[alpha] = evaluation(config(alpha=alpha), columns=("0.0", "1.0"))
        for task in made[alpha]["tasks"].values():
            task["acc"] = accuracy
    (matrix,) = build(made).matrices
    return heatmaps.advantages("title", matrix, Advantage(matrix))


@pytest.mark.parametrize(("pair", "end"), [(-3.7, 10), (0.2, 10), (-15, 15)])
def test_the_colours_of_small_advantages_have_one_scale(pair, end):
    assert heat_map_of(pair).axes[0].collections[0].get_clim() == pytest.approx((-end, end))


@pytest.mark.parametrize(("pair", "told"), [(-3.7, True), (3.7, False)])
def test_what_a_dashed_frame_means_is_told_where_there_is_one(pair, told):
    drawn = texts(figures.svg(heat_map_of(pair)))
    assert ("points of accuracy; dashed: below 0" in drawn) is told


def test_a_title_is_broken_where_the_figure_is_narrow(tmp_path):
    sweep(tmp_path, "org/" + 9 * "a-long-name-", alphas=("0.0", "1.0"), seeds=(0,))
    (study,) = findings(read([tmp_path])).studies
    figure = heatmaps.advantages(study.title, study.matrix, study.advantage)
    figures.svg(figure)
    box = figure._suptitle.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def test_an_overlap_that_nobody_measured_has_no_line_and_no_entry_of_the_legend(tmp_path):
    sweep(tmp_path, alphas=("0.0", "0.4"), seeds=(0,))
    floor = config("baseline:tfidf", alpha="1.0")
    write_run(tmp_path, run(floor, evaluation=evaluation(floor)))
    write_run(tmp_path, failed(config("org/tiny", alpha="1.0"), "boom"))
    study = findings(read([tmp_path])).studies[0]
    figure = lineplots.reliance(study.title, study.matrix, study.floor)
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert told == [rf"$\alpha_\mathrm{{train}}$ = {alpha}" for alpha in ("0.0", "0.4")] + [
        "chance"
    ]


def with_controls(tmp_path, base, untrained):
    """Retrieval with controls at 100 % on unseen versions, and at these shares on seen ones."""
    levels = {"base": base, "untrained": untrained, "bag of words": 1.0}
    rows = [summary(0.9, "last/cls", chosen) for chosen in ("seen", "unseen")]
    for source, level in levels.items():
        features = "tf-idf" if source == "bag of words" else "last/cls"
        rows += [summary(level, features, "seen", source), summary(1.0, features, "unseen", source)]
    (study,) = findings(records_of(tmp_path, probe(config(), summary=rows))).studies
    return lineplots.retrieval(study.curves, study.matrix)


@pytest.mark.parametrize(
    ("base", "untrained", "told"),
    [
        (1.0, 0.999, ["before fine-tuning, untrained, bag of words: seen, unseen"]),
        (0.9, 0.7, ["before fine-tuning: seen",
                    "before fine-tuning, untrained, bag of words: unseen",
                    "untrained: seen", "bag of words: seen"]),
    ],
)  # fmt: skip
def test_controls_that_lie_on_each_other_are_one_line(tmp_path, base, untrained, told):
    axes = with_controls(tmp_path, base, untrained).axes[0]
    assert [label for label in axes.get_legend_handles_labels()[1] if ": " in label] == told


def test_the_legend_fits_into_the_figure(tmp_path):
    figure = with_controls(tmp_path, 1.0, 0.7)
    figures.svg(figure)
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def styles_of(lines):
    return {
        (line.get_color(), line.get_marker(), str(line._unscaled_dash_pattern)) for line in lines
    }


def test_ten_sets_of_versions_are_told_apart(tmp_path):
    rows = [summary(0.5, "h", f"A, {number}") for number in range(10)]
    (study,) = findings(records_of(tmp_path, probe(config(), summary=rows))).studies
    figure = lineplots.retrieval(study.curves, study.matrix)
    lines = [line for line in figure.axes[0].get_lines() if line.get_label().startswith("A, ")]
    assert len(lines) == len(styles_of(lines)) == 10


def test_training_dynamics_of_many_sets_and_accuracies_are_drawn(tmp_path):
    line = looks(config())[3]
    line["retrieval"] = [summary(0.5, "h", f"A, {number}") for number in range(7)]
    line["accuracy"] = {f"at {number}": 0.5 for number in range(9)}
    write_run(tmp_path, run(config(), dynamics=[line]))
    (found,) = findings(read([tmp_path])).studies[0].trajectories
    top1, accuracy, _ = dynamics(found).axes
    assert len(styles_of(top1.get_lines())) == 7 + 1  # and chance
    assert len(styles_of(accuracy.get_lines())) == 9


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


def test_a_picture_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    sweep(tmp_path, alphas=("0.0", "1.0"), seeds=(0,))
    (study,) = findings(read([tmp_path])).studies

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        figures.save(
            heatmaps.accuracy(study.title, study.matrix), tmp_path / "figure", "<svg></svg>"
        )
    assert not list(tmp_path.glob("figure*"))


def audit():
    score = {
        state: CueScore(accuracy, 0.01) for state, accuracy in (("raw", 0.9), ("cleaned", 0.6))
    }
    floor = {row: {"0.0": 0.9, "1.0": 0.6} for row in ("0.0", "1.0")}
    return GiveawayReport(
        "bible", "x", ("KJV", "ASV"), 100, 0.5, "cleaned", {"typography": score}, floor, 50, ()
    )


def test_the_picture_of_an_audit_looks_like_all_others_whatever_the_users_settings():
    with matplotlib.rc_context({"axes.facecolor": "red"}):
        figure = giveaway_figure(audit())
    assert figure.axes[1].get_facecolor() == (1, 1, 1, 1)
    assert {"bible: KJV, ASV", "90.0", "60.0", "chance"} <= texts(figures.svg(figure))
