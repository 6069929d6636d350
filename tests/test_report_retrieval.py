"""Content retrieval and its trend, from probes and evaluations."""

from __future__ import annotations

import pytest

from report_records import (
    config,
    evaluation,
    failed,
    looks,
    probe,
    records_of,
    retrieval,
    run,
    summary,
    sweep,
    texts,
    write_run,
)
from style_overlap.report import commands, figures, probe_table, retrieval_table, tables
from style_overlap.report.dynamics_plot import dynamics
from style_overlap.report.records import read
from style_overlap.report.study import findings


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
    assert abs(curve.trend_within_seeds().rho) < 0.4
    assert curve.trend_within_seeds().p_fall > 0.2
    rows = {row[0]: row[-1] for row in retrieval_table.retrieval(study, [curve], 0).rows}
    assert float(rows["p of a fall"]) < float(rows["p of a fall, within seeds"])


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
    assert "not trained by style-overlap" in next(iter(found.left_out.values()))


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


@pytest.mark.case(11)
def test_a_degenerate_fine_tuning_is_in_no_curve_and_in_no_trajectory(tmp_path):
    told = "predicts one class only"
    good, bad = config(), config(seed=1)
    found = {"content_retrieval": retrieval(bad)}
    by_harness = evaluation(bad, degenerate=told, retrieval=found)
    by_probe = probe(bad)
    by_probe["checkpoint"]["degenerate"] = told
    seen = run(bad, dynamics=looks(bad), evaluation=None)
    seen["training"]["degenerate"] = told
    records_of(tmp_path, by_harness, by_probe, probe(good))
    write_run(tmp_path, seen)
    write_run(tmp_path, run(good, dynamics=looks(good), evaluation=None))
    (study,) = findings(read([tmp_path])).studies
    assert {seed for curve in study.curves for seed in curve.seeds} == {0}
    assert [looked.seeds for looked in study.trajectories] == [[0]]


def test_a_half_finished_sweep_marks_what_its_retrieval_is_of(tmp_path):
    sweep(tmp_path, alphas=("0.0", "0.2", "0.4"), seeds=(0, 1))
    write_run(tmp_path, run(config("org/tiny", alpha="0.6")))
    write_run(tmp_path, failed(config("org/tiny", alpha="0.8"), "boom"))
    (study,) = findings(read([tmp_path])).studies
    table = retrieval_table.retrieval(study, list(study.curves), 0)
    rows = {row[0]: row[1:] for row in table.rows}
    assert not any("n=" in cell for cell in rows["0.4"])
    assert all(cell.endswith(" (n=1)") for cell in rows["0.6"])
    assert rows["0.8"] == ("–", "failed", "failed", "failed", "failed")
    assert (
        "Some fine-tunings have no figure: ρ and p are of 4 of the 5 overlaps, "
        "7 of the 10 fine-tunings." in table.notes
    )
    assert "Projectors were fitted on the training share of 1200 contents." in table.notes


def test_a_whole_sweep_says_nothing_of_what_is_missing(tmp_path):
    sweep(tmp_path, seeds=(0, 1))
    (study,) = findings(read([tmp_path])).studies
    table = retrieval_table.retrieval(study, list(study.curves), 0)
    assert not any("no figure" in note for note in table.notes)
    assert not any("n=" in cell for row in table.rows for cell in row)


def test_a_name_that_looks_like_markup_is_shown_as_it_is(capsys):
    record = probe(config(), rows=[], notes=["[/see] this"])
    record["checkpoint"]["name"] = "runs/[/old]/[red]x"
    probe_table.show([record])
    printed = capsys.readouterr().out
    assert "runs/[/old]/[red]x" in printed
    assert "Note: [/see] this." in printed
