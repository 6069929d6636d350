"""Records to rows: what shares a row, what is missing, who ranks where."""

from __future__ import annotations

import copy
import csv
import json

import pytest

from leaderboard_records import (
    GRID,
    acc_of,
    checkpoint,
    evaluation,
    harness,
    many,
    retrieval,
    save,
    summary,
)
from style_overlap.errors import UsageError
from style_overlap.leaderboard import board as boards
from style_overlap.leaderboard import site, tables
from style_overlap.leaderboard.entries import assemble
from style_overlap.leaderboard.ranks import ranks
from style_overlap.leaderboard.sources import gather
from style_overlap.results import write_json


def make(*paths):
    return boards.board(assemble(gather(paths)))


def row_of(board, encoder, k=2):
    (row,) = [r for r in board["rows"] if (r["encoder"], r["setting"]["k"]) == (encoder, k)]
    return row


def value(row, name):
    return row["figures"][name]["value"]


def both(encoder="org/enc", **changes):
    return [evaluation(encoder, alpha, **changes) for alpha in GRID]


def test_a_row_holds_the_figures_of_both_trainings(tmp_path):
    (row,) = make(save(tmp_path, *both()))["rows"]
    assert value(row, "acc_0_0") == pytest.approx(acc_of("0", "0"))
    assert value(row, "acc_0_1") == pytest.approx(acc_of("0", "1"))
    assert value(row, "acc_1_1") == pytest.approx(acc_of("1", "1"))
    assert value(row, "reliance") == pytest.approx(0.3)
    assert value(row, "hoa") == pytest.approx(acc_of("1", "0") - acc_of("0", "1"))
    for name in ("acc_0_0", "acc_0_1", "acc_1_1", "reliance", "hoa"):
        figure = row["figures"][name]
        assert figure["low"] < figure["value"] < figure["high"]


def test_a_missing_cell_is_blank_says_which_and_is_in_no_mean(tmp_path):
    (row,) = make(save(tmp_path, evaluation(alpha="0.0")))["rows"]
    assert value(row, "acc_1_1") is None
    assert row["figures"]["acc_1_1"]["note"] == "no score at alpha_train 1.0, alpha_eval 1.0"
    assert value(row, "hoa") is None
    assert row["rank"] is None
    assert value(row, "reliance") == pytest.approx(0.3)


def test_a_difference_is_taken_within_the_seeds_that_have_both_cells(tmp_path):
    whole = evaluation(seed=0)
    half = evaluation(seed=1, accuracies={"0.0": 0.5})
    (row,) = make(save(tmp_path, whole, half))["rows"]
    assert row["figures"]["reliance"]["seeds"] == ["0"]
    assert value(row, "reliance") == pytest.approx(0.3)
    assert row["figures"]["acc_0_0"]["seeds"] == ["0", "1"]


def test_hoa_needs_every_cell_of_a_seed(tmp_path):
    low = evaluation(alpha="0.0", grid=("0.0", "0.4", "1.0"))
    mid = evaluation(alpha="0.4", grid=("0.0", "0.4"))
    high = evaluation(alpha="1.0", grid=("0.0", "0.4", "1.0"))
    (row,) = make(save(tmp_path, low, mid, high))["rows"]
    assert value(row, "hoa") is None
    assert row["figures"]["hoa"]["note"] == "no score at alpha_train 0.4, alpha_eval 1.0"


@pytest.mark.parametrize(
    "changes",
    [
        {"corpus": "a" * 64},
        {"k": 3},
        {"recipe": {"learning_rate": 1e-3}},
        {"encoder": "org/other"},
        {"contents_used": 100},
        {"sampling": 2},
    ],
)
def test_other_corpora_recipes_samplers_and_encoders_never_share_a_row(tmp_path, changes):
    changes = dict(changes)
    used, sampling = changes.pop("contents_used", None), changes.pop("sampling", 1)
    other = evaluation(alpha="1.0", **changes)
    other["checkpoint"]["config"]["contents"] = used
    other["config"]["sampling"] = sampling
    board = make(save(tmp_path, evaluation(alpha="0.0"), other))
    assert len(board["rows"]) == 2
    assert all(value(row, "hoa") is None for row in board["rows"])


def test_one_corpus_by_two_paths_is_one_row(tmp_path):
    low, high = both()
    high["checkpoint"]["config"]["corpus"] = "elsewhere/bible"
    assert len(make(save(tmp_path, low, high))["rows"]) == 1


def test_two_encoders_of_one_name_are_two_rows_and_an_untold_one_joins_neither(tmp_path):
    for number, base in enumerate(("base a", "base b", None)):
        record = evaluation(alpha=GRID[number % 2], seed=number)
        write_json(tmp_path / str(number) / "evaluations" / "k2-0.json", record)
        told = checkpoint(record, base_model_fingerprint=base)
        write_json(tmp_path / str(number) / "style_overlap.json", told)
    board = make(tmp_path)
    assert sorted(str(row["base_model_fingerprint"]) for row in board["rows"]) == [
        "None",
        "base a",
        "base b",
    ]


def test_where_one_file_tells_the_weights_the_others_are_of_the_same(tmp_path):
    low, high = both()
    save(tmp_path, low, high)
    write_json(tmp_path / "run0" / "style_overlap.json", checkpoint(low))
    (row,) = make(tmp_path)["rows"]
    assert row["base_model_fingerprint"] == "base"


@pytest.mark.case(11)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: r["config"].update(limit=10), "limited to 10 documents"),
        (lambda r: r["checkpoint"].update(degenerate="predicts one class"), "degenerate: predicts"),
        (lambda r: r["config"].update(data_seed=5), "test texts may have been training texts"),
        (lambda r: r["checkpoint"]["data"].update(corpus_fingerprint="x"), "another corpus"),
        (lambda r: r["config"].update(k=3), "trained on 2 styles, scored on 3"),
        (lambda r: r["checkpoint"].update(name="runs/x/checkpoint-30"), "the middle of a training"),
    ],
)
def test_runs_that_do_not_count_are_excluded_and_listed(tmp_path, change, told):
    bad = evaluation("org/bad")
    change(bad)
    board = make(save(tmp_path, evaluation(), bad))
    assert [row["encoder"] for row in board["rows"]] == ["org/enc"]
    (one,) = board["left_out"]
    assert told in one["reason"]
    assert "run1" in one["source"]


def test_two_files_that_disagree_on_a_cell_leave_it_blank_and_are_named(tmp_path):
    low, high = both()
    forged = evaluation(accuracies={"0.0": 0.99, "1.0": acc_of("0", "1")})
    board = make(save(tmp_path, low, high, forged))
    (row,) = board["rows"]
    assert value(row, "acc_0_0") is None
    assert value(row, "acc_0_1") == pytest.approx(acc_of("0", "1"))
    assert "disagree on alpha_train=0.0, alpha_eval=0.0" in row["notes"][0]
    assert ["run0" in one["source"] or "run2" in one["source"] for one in board["left_out"]] == [
        True,
        True,
    ]


@pytest.mark.case(22)
def test_the_same_figures_twice_count_once(tmp_path):
    low, high = both()
    (row,) = make(save(tmp_path, low, high, copy.deepcopy(low)))["rows"]
    (cell,) = [c for c in row["cells"] if (c["alpha_train"], c["alpha_eval"]) == ("0.0", "0.0")]
    assert cell["n"] == 1


def test_scores_on_different_test_sets_under_one_name_are_not_compared(tmp_path):
    low, high = both()
    high["tasks"]["style_overlap_k2_a1.0"]["data_fingerprint"] = "another sampler's"
    (row,) = make(save(tmp_path, low, high))["rows"]
    assert value(row, "acc_1_1") is None
    assert "different test sets" in row["notes"][0]


def test_an_accuracy_that_is_not_the_mean_of_its_credits_is_refused(tmp_path):
    bad = evaluation("org/bad")
    bad["tasks"]["style_overlap_k2_a0.0"]["acc"] = 0.999
    board = make(save(tmp_path, evaluation(), bad))
    assert "is not the mean of its credits" in board["left_out"][0]["reason"]


def test_retrieval_comes_from_evaluations_and_probes_but_never_from_two_ways(tmp_path):
    def body(mean, **changes):
        return {"content_retrieval_k2": retrieval(summary(mean), summary(0.9, "unseen"), **changes)}

    records = [evaluation(seed=seed, retrieval=body(0.5 + seed / 10)) for seed in (0, 1)]
    records.append(evaluation(seed=2, retrieval=body(0.1, dtype="bfloat16")))
    (row,) = make(save(tmp_path, *records))["rows"]
    figure = row["figures"]["retrieval_seen_0"]
    assert (figure["value"], figure["seeds"]) == (pytest.approx(0.55), ["0", "1"])
    assert "N = 288" in figure["note"]
    assert "2 ways" in row["notes"][0]
    assert value(row, "retrieval_seen_1") is None


def test_a_limited_gallery_is_not_retrieval(tmp_path):
    found = {"t": retrieval(summary(0.9), limit=10)}
    (row,) = make(save(tmp_path, evaluation(retrieval=found)))["rows"]
    assert value(row, "retrieval_seen_0") is None


def test_a_results_file_of_the_harness_joins_by_the_weights_not_by_its_name(tmp_path):
    low, high = both()
    write_json(tmp_path / "somewhere" / "style_overlap.json", checkpoint(low))
    write_json(tmp_path / "results_misleading_a1.0.json", harness(low))
    save(tmp_path / "runs", high)
    (row,) = make(tmp_path)["rows"]
    assert value(row, "acc_0_0") == pytest.approx(acc_of("0", "0"))
    assert "standard error" in row["figures"]["acc_0_0"]["note"]
    assert row["figures"]["acc_1_1"]["note"] is None


def test_a_results_file_that_tells_its_training_needs_no_other(tmp_path):
    low = evaluation()
    write_json(tmp_path / "results_1.json", harness(low, training=low["checkpoint"]))
    (row,) = make(tmp_path / "results_1.json")["rows"]
    assert value(row, "reliance") == pytest.approx(0.3)
    assert row["figures"]["reliance"]["low"] < 0.3 < row["figures"]["reliance"]["high"]


def test_our_model_tells_the_harness_how_it_was_trained_but_only_of_its_own_weights(tmp_path):
    from style_overlap.lm import StyleEncoderLM
    from style_overlap.model_folders import model_fingerprint
    from tiny_models import make_checkpoint

    folder = make_checkpoint(tmp_path / "x", labels=("KJV", "ASV"))
    for weights, told in ((model_fingerprint(folder), "org/enc"), ("others", None)):
        record = {**checkpoint(evaluation()), "model_fingerprint": weights}
        write_json(folder / "style_overlap.json", record)
        training = StyleEncoderLM(pretrained=str(folder)).get_model_info()["training"]
        assert (training and training["config"]["model"]) == told


def test_a_model_of_unknown_training_is_listed_and_in_no_row(tmp_path):
    write_json(tmp_path / "results_1.json", harness(evaluation("org/strange")))
    board = make(save(tmp_path, evaluation()))
    assert [row["encoder"] for row in board["rows"]] == ["org/enc"]
    (one,) = board["unknown"]
    assert one["name"] == "somewhere/else"
    assert one["acc"] == {"0.0": pytest.approx(0.95), "1.0": pytest.approx(0.65)}
    assert "alpha_train is not known" in one["why"]


def test_a_limited_results_file_is_left_out(tmp_path):
    limited = harness(evaluation("org/x"))
    limited["n-samples"]["style_overlap_k2_a0.0"]["effective"] = 10
    write_json(tmp_path / "results_1.json", limited)
    board = make(save(tmp_path, evaluation()))
    assert "limited to 10" in board["left_out"][0]["reason"]


def test_the_rank_is_one_more_than_the_number_that_are_better_beyond_noise():
    assert ranks([(0.9, 0.95), (0.85, 0.91), (0.8, 0.89), None, (0.1, 0.2)]) == [1, 1, 2, None, 4]


def test_encoders_that_overlap_the_best_share_its_rank_and_settings_are_ranked_apart(tmp_path):
    records = [*both("org/best", lift=0.02), *both("org/close"), *both("org/far", lift=-0.3),
               *both("org/far", lift=-0.3, k=3)]  # fmt: skip
    board = make(save(tmp_path, *records))
    found = {(row["encoder"], row["setting"]["k"]): row["rank"] for row in board["rows"]}
    assert found == {("org/best", 2): 1, ("org/close", 2): 1, ("org/far", 2): 3, ("org/far", 3): 1}
    assert [row["encoder"] for row in board["rows"]][:3] == ["org/best", "org/close", "org/far"]


def test_content_reliance_does_not_rank_an_encoder_at_chance_first(tmp_path):
    chance = [evaluation("org/chance", a, accuracies={"0.0": 0.5, "1.0": 0.5}) for a in GRID]
    board = make(save(tmp_path, *both(), *chance))
    assert row_of(board, "org/chance")["rank"] == 2
    assert value(row_of(board, "org/chance"), "reliance") == 0


def test_nothing_to_rank_says_why(tmp_path):
    limited = evaluation()
    limited["config"]["limit"] = 3
    with pytest.raises(UsageError, match="limited to 3 documents"):
        make(save(tmp_path, limited))
    with pytest.raises(UsageError, match="nowhere does not exist"):
        make(tmp_path / "nowhere")


def test_the_same_files_give_the_same_bytes(tmp_path):
    runs = many(tmp_path / "runs")
    for name in ("one", "two"):
        site.write([runs], tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["index.html", "leaderboard.csv", "leaderboard.json", "leaderboard.md"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_leaderboard_json_is_strict_fits_its_schema_and_reads_back(tmp_path):
    site.write([many(tmp_path / "runs")], tmp_path / "site")
    path = tmp_path / "site" / "leaderboard.json"
    board = boards.read(path)
    assert json.loads(path.read_text(), parse_constant=pytest.fail) == board
    assert path.stat().st_size < 40_000 * len(board["rows"])


def test_csv_has_numbers_and_blanks(tmp_path):
    board = make(save(tmp_path, *both(), evaluation("org/half")))
    told = {line["encoder"]: line for line in csv.DictReader(tables.as_csv(board).splitlines())}
    assert float(told["org/enc"]["acc_0_0"]) == pytest.approx(0.95)
    assert told["org/half"]["acc_1_1"] == ""
    assert told["org/half"]["rank"] == ""


def test_markdown_has_a_table_a_setting(tmp_path):
    text = tables.as_markdown(make(save(tmp_path, *both(), *both(k=3))))
    assert text.count("| rank | encoder |") == 2
    assert "85.0 [" in text
