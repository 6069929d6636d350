"""Alpha of data as it is found: laws of the estimates, their bias, and what can be sampled."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from style_overlap import cli_corpus
from style_overlap.corpus import natural, partial
from style_overlap.corpus.incidence import Incidence
from style_overlap.corpus.natural import contingency, estimate, expected_information
from style_overlap.entropy import measure
from style_overlap.errors import UsageError

labelled = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=2, max_size=120)


def columns(pairs) -> tuple[np.ndarray, np.ndarray]:
    content, style = (np.array(column) for column in zip(*pairs, strict=True))
    assume(len(np.unique(style)) > 1)
    return content, style


def draw_examples(rng, shared: float, contents: int, per_content: int, k: int = 3):
    """Contents that say nothing (a share of them) or all; returns labels and the true alpha."""
    says_nothing = np.arange(contents) < shared * contents
    content = rng.integers(0, contents, contents * per_content)
    own = np.arange(contents) % k
    drawn = rng.integers(0, k, len(content))
    return content, np.where(says_nothing[content], drawn, own[content]), shared


# Estimates


@given(labelled)
def test_without_correction_it_is_the_measure_of_eq_1(pairs):
    content, style = columns(pairs)
    found = estimate(content, style, correction="none", resamples=0)
    assert found.alpha == pytest.approx(measure(content, style), abs=1e-9)
    assert found.plug_in == pytest.approx(found.alpha, abs=1e-9)


@given(labelled)
def test_expected_information_is_that_of_scikit_learn(pairs):
    from sklearn.metrics.cluster import expected_mutual_information

    counts = contingency(*columns(pairs))
    ours = expected_information(counts)
    assert ours == pytest.approx(expected_mutual_information(counts, int(counts.sum())), abs=1e-9)


@given(labelled)
def test_adjusted_is_never_below_the_plug_in_and_all_are_in_0_to_1(pairs):
    content, style = columns(pairs)
    for correction in natural.CORRECTIONS:
        found = estimate(content, style, correction=correction, resamples=5)
        if found.alpha is not None:
            assert found.plug_in - 1e-9 <= found.alpha <= 1
            assert found.low is None or 0 <= found.low <= found.high <= 1


@given(labelled, st.randoms())
def test_names_and_order_of_examples_do_not_matter(pairs, rng):
    content, style = columns(pairs)
    one = estimate(content, style, resamples=0)
    order = list(range(len(pairs)))
    rng.shuffle(order)
    names = [f"topic {content[place]}" for place in order]
    other = estimate(names, [f"author {style[place]}" for place in order], resamples=0)
    assert (one.alpha is None) == (other.alpha is None)
    if one.alpha is not None:
        assert other.alpha == pytest.approx(one.alpha, abs=1e-9)


@pytest.mark.parametrize("shared", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("per_content", [3, 10])
def test_the_correction_takes_most_of_the_bias_away(shared, per_content):
    rng = np.random.default_rng(0)
    plug_in, adjusted = [], []
    for _ in range(30):
        content, style, true = draw_examples(rng, shared, 200, per_content)
        found = estimate(content, style, resamples=0)
        plug_in.append(found.plug_in)
        adjusted.append(found.alpha)
    bias = abs(np.mean(adjusted) - true)
    assert bias < 0.02
    if shared:
        assert true - np.mean(plug_in) > 3 * bias, "there was something to correct"


def test_miller_madow_lies_between_plug_in_and_adjusted_for_thin_data():
    content, style, _ = draw_examples(np.random.default_rng(0), 1.0, 300, 3)
    none, mm, adjusted = (
        estimate(content, style, correction=c, resamples=0).alpha
        for c in ("none", "miller-madow", "adjusted")
    )
    assert none < mm - 0.05 < adjusted - 0.1


def test_intervals_hold_what_they_promise_over_contents_that_are_drawn():
    rng = np.random.default_rng(0)
    hits = widths = 0
    for seed in range(60):
        content, style, _ = draw_examples(rng, 1.0, 100, 6, k=2)
        which = rng.random(100) < 0.5  # of a population half of whose contents say all
        style = np.where(which[content], content % 2, style)
        found = estimate(content, style, resamples=100, seed=seed)
        assert found.over == "contents"
        hits += found.low <= 0.5 <= found.high
        widths += found.high - found.low
    assert hits >= 51, "95 % promised, 85 % is beyond bad luck"
    assert 0.1 < widths / 60 < 0.35


def test_few_contents_are_taken_as_given_and_the_interval_is_about_the_estimate():
    content, style, _ = draw_examples(np.random.default_rng(0), 1.0, 8, 100)
    style = np.where(content < 4, content % 3, style)
    found = estimate(content, style)
    assert found.over == "examples"
    assert found.low < found.alpha < found.high
    assert found.high - found.low < 0.1
    again = estimate(content, style)
    assert (again.low, again.high) == (found.low, found.high)
    assert estimate(content, style, seed=1).low != found.low


def test_data_that_cannot_tell_say_so():
    found = estimate(range(40), ["A", "B"] * 20)
    assert (found.alpha, found.low) == (None, None)
    assert "every content has one example" in found.sentence()
    thin = estimate([n // 2 for n in range(80)], ["A", "A", "B", "A"] * 20)
    assert "only 2.0 examples a content" in thin.note


def test_a_parallel_sample_is_told_from_a_random_one():
    content = [*range(15)] * 3 + [*range(15, 60)]
    style = [s for s in "ABC" for _ in range(15)] * 2
    found = estimate(content, style)
    assert "content determines 50%" in (found.note or "")
    assert estimate(content, style, correction="none").alpha == pytest.approx(0.5)


def test_the_sentence_says_what_content_determines():
    content, style, _ = draw_examples(np.random.default_rng(0), 0.4, 1000, 50)
    found = estimate(content, style)
    assert found.sentence().startswith("Content alone determines 60% of the label's entropy (95% i")
    assert found.entropy == pytest.approx(np.log2(3), abs=0.01)


@pytest.mark.parametrize(
    ("content", "style", "options", "message"),
    [
        ([1, 2], ["A", "A"], {}, "fewer than two styles"),
        ([1, 2], ["A"], {}, "2 contents, but 1 styles"),
        ([], [], {}, "no examples"),
        ([1, 2], ["A", "B"], {"correction": "jackknife"}, "expected adjusted, miller-madow, none"),
    ],
)
def test_data_that_have_no_alpha(content, style, options, message):
    with pytest.raises(UsageError, match=message):
        estimate(content, style, **options)


# Sampling what is not parallel


alphas = st.integers(0, 20).map(lambda part: Decimal(part) / 20)
incidences = st.lists(
    st.tuples(st.integers(0, 25), st.sampled_from("ABCD")), min_size=1, max_size=120
)


@given(incidences, alphas, st.integers(2, 4))
def test_a_plan_can_be_drawn_and_no_larger_one_could(pairs, alpha, k):
    content, style = zip(*pairs, strict=True)
    assume(len(set(style)) >= k)
    incidence = Incidence(content, style)
    try:
        plan = partial.plan(incidence, k, alpha)
    except UsageError:
        assert not matches(incidence, k, 1, alpha)
        return
    drawn = partial.draw(incidence, plan)
    assert len(set(drawn.row.tolist())) == len(drawn.row) == k * plan.n
    assert np.bincount(drawn.style, minlength=k).tolist() == [plan.n] * k
    assert [style[row] for row in drawn.row] == [plan.styles[label] for label in drawn.style]
    chosen = np.array([content[row] for row in drawn.row])
    uses = {c: int((chosen == c).sum()) for c in set(chosen.tolist())}
    assert sorted(uses.values()) == [1] * (k * (plan.n - plan.n_shared)) + [k] * plan.n_shared
    assert {c for c, n in uses.items() if n == k and k > 1} == set(chosen[drawn.shared].tolist())
    assert plan.n_shared == plan.n * alpha // 1
    realised = measure(chosen, drawn.style)
    assert realised == pytest.approx(plan.n_shared / plan.n, abs=1e-9)
    assert not matches(incidence, k, plan.n + 1, alpha)


def matches(incidence: Incidence, k: int, n: int, alpha: Decimal) -> bool:
    """Whether n contents per style are possible, by a bipartite matching of single contents."""
    import scipy.sparse as sp

    has = incidence.rows(k) >= 0
    n_shared = int(n * alpha // 1)
    common = np.flatnonzero(has.all(axis=1))
    if len(common) < n_shared:
        return False
    # contents that have all styles are alike: which of them are shared makes no difference
    free = np.delete(has, common[:n_shared], axis=0)
    seats = np.repeat(free.T, n - n_shared, axis=0)
    if not seats.size:
        return n == n_shared
    found = sp.csgraph.maximum_bipartite_matching(sp.csr_matrix(seats), perm_type="column")
    return bool((found >= 0).all())


@given(incidences, alphas)
def test_more_styles_never_allow_more_contents(pairs, alpha):
    content, style = zip(*pairs, strict=True)
    assume(len(set(style)) >= 2)
    found = partial.plans(Incidence(content, style), alpha)
    sizes = [plan.n for plan in found]
    assert sizes == sorted(sizes, reverse=True)
    assert [plan.k for plan in found] == list(range(2, len(found) + 2))


def test_the_most_styles_with_enough_contents_are_chosen():
    pairs = [(c, s) for c in range(40) for s in "AB"] + [(c, "C") for c in range(30, 45)]
    incidence = Incidence(*zip(*pairs, strict=True))
    assert incidence.styles == ("A", "B", "C")
    assert partial.largest(incidence, "0").k == 3
    assert partial.largest(incidence, "1").styles == ("A", "B", "C")
    assert partial.largest(incidence, "1", fewest=11).styles == ("A", "B")
    assert partial.largest(incidence, "1", fewest=11).n == 40
    with pytest.raises(UsageError, match=r"at alpha=1\.0 A and B allow 40 contents each, 50 are n"):
        partial.largest(incidence, "1", fewest=50)


@pytest.mark.parametrize(
    ("pairs", "k", "alpha", "message"),
    [
        ([(1, "A"), (2, "B")], 2, "1", "no content has all of A, B: nothing can be shared"),
        ([(1, "A"), (1, "B")], 2, "0", "too few contents of their own for even one each"),
        ([(1, "A"), (2, "B")], 3, "0", "k is 3: expected 2 to 2"),
        ([(1, "A"), (2, "B")], 2, "1.5", "alpha is 1.5"),
        ([(1, "A"), (2, "A")], 2, "0", "two or more styles, found A"),
    ],
)
def test_what_cannot_be_sampled_says_why(pairs, k, alpha, message):
    with pytest.raises(UsageError, match=message):
        partial.plan(Incidence(*zip(*pairs, strict=True)), k, alpha)


# Command line


@pytest.fixture
def posts(tmp_path) -> Path:
    """Posts by topic and author; topics 0 to 19 have all three authors, the others one each."""
    path = tmp_path / "posts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", "author", "text"])
        for topic in range(60):
            names = ("Ann", "Bob", "Cyd")
            for author in names if topic < 20 else names[topic % 3 :][:1]:
                for number in range(4):
                    writer.writerow([f"t{topic}", author, f"{author} on {topic}, {number}"])
    return path


def run(*arguments: object):
    return CliRunner().invoke(cli_corpus.app, list(map(str, arguments)))


def test_measure_prints_the_figure_and_the_sentence(posts):
    command = ["measure", posts, "--content", "topic", "--style", "author"]
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "400 examples, 60 contents, 3 styles" in result.output
    assert "bootstrap over contents (adjusted; without correction 0." in result.output
    record = json.loads(run(*command, "--json").stdout)
    assert f"determines {1 - record['alpha']:.0%} of the label's entropy" in result.output
    assert 0.4 < record["low"] < record["alpha"] < record["high"] < 0.9
    none = json.loads(run(*command, "--json", "--correction", "none").stdout)
    assert none["alpha"] == pytest.approx(record["plug_in"])


def test_sample_writes_the_rows_it_chose(posts, tmp_path):
    command = ["sample", posts, "--content", "topic", "--style", "author", "--alpha", "0.5"]
    result = run(*command, "--output", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    record = json.loads(run(*command, "--json").stdout)
    chosen = record["chosen"]
    assert (chosen["k"], chosen["n"], chosen["n_shared"]) == (3, 30, 15)
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 90
    assert measure([r["topic"] for r in rows], [r["author"] for r in rows]) == pytest.approx(0.5)
    assert sum(row["shared"] == "1" for row in rows) == 45
    assert rows[0]["text"] == "Ann on 0, 0"
    two = json.loads(run(*command, "--json", "--k", 2, "--classes", "Cyd,Ann").stdout)
    assert two["chosen"]["styles"] == ["Cyd", "Ann"]


def test_measure_names_columns_that_are_not_there(posts):
    result = run("measure", posts, "--content", "topik", "--style", "author")
    assert isinstance(result.exception, UsageError)
    assert str(result.exception).startswith("posts.csv: no column 'topik' (did you mean 'topic'?)")


def test_rows_without_a_label_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("topic,author\nt1,Ann\nt2,\n,Bob\n")
    result = run("measure", tmp_path / "a.csv", "--content", "topic", "--style", "author")
    assert isinstance(result.exception, UsageError)
    for part in ("rows without a label (2)", "row 3, column 'author'", "row 4, column 'topic'"):
        assert part in str(result.exception)
    result = run("measure", "bible", "--content", "topic", "--style", "author")
    assert "bible is no table" in str(result.exception)
