"""Task names and overlap values."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from style_overlap.errors import UsageError
from style_overlap.names import ALPHAS, KS, alpha_text, as_alpha, task_name


@given(st.integers(2, 40), st.integers(0, 10_000).map(lambda parts: Decimal(parts) / 10_000))
def test_a_name_gives_back_its_k_and_alpha(k, alpha):
    found = re.fullmatch(r"style_overlap_k(\d+)_a(\d+\.\d+)", task_name(k, alpha))
    assert (int(found[1]), Decimal(found[2])) == (k, alpha)


def test_the_grid_has_24_names():
    names = {task_name(k, alpha) for k in KS for alpha in ALPHAS}
    assert len(names) == 24
    assert {"style_overlap_k2_a0.0", "style_overlap_k3_a0.4", "style_overlap_k5_a1.0"} <= names


@pytest.mark.case(22)
def test_an_overlap_has_one_spelling():
    assert {alpha_text(value) for value in ("0.4", "0.40", 0.4, Decimal("0.400"))} == {"0.4"}
    assert [alpha_text(value) for value in (0, 1, "0.35", "-0", 1e-5)] == [
        "0.0",
        "1.0",
        "0.35",
        "0.0",
        "0.00001",
    ]


def test_a_binary_float_is_taken_as_it_is_written():
    assert as_alpha(0.29) == Decimal("0.29")


@pytest.mark.case(28)
@pytest.mark.parametrize("value", [-0.1, 1.01, float("nan"), "inf", "", "half", None])
def test_what_is_no_overlap_is_refused_with_an_example(value):
    with pytest.raises(UsageError, match=r"expected a number from 0 to 1, for example 0\.4"):
        as_alpha(value)
