"""Records: strict JSON, whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from style_overlap.errors import UsageError
from style_overlap.results import digest, file_digest, read_json, versions, write_json, write_text


@pytest.mark.case(23)
def test_records_are_strict_json_whatever_numbers_they_hold(tmp_path):
    path = tmp_path / "record.json"
    write_json(
        path,
        {
            "nan": float("nan"),
            "inf": np.float32("inf"),
            "minus": -np.inf,
            "float": np.float32(0.5),
            "int": np.int64(3),
            "flag": np.bool_(True),
            "array": np.array([1.0, np.nan]),
            "path": Path("a/b"),
            "set": {"b", "a"},
        },
    )

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert json.loads(path.read_text(), parse_constant=refuse) == {
        "nan": None,
        "inf": None,
        "minus": None,
        "float": 0.5,
        "int": 3,
        "flag": True,
        "array": [1.0, None],
        "path": "a/b",
        "set": ["a", "b"],
    }


def test_equal_values_give_equal_bytes_and_digests(tmp_path):
    write_json(tmp_path / "1", {"a": 1, "b": 2})
    write_json(tmp_path / "2", {"b": 2, "a": 1})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1, "b": 3})


def test_a_value_that_json_has_no_place_for_writes_nothing(tmp_path):
    with pytest.raises(TypeError, match="cannot hold object"):
        write_json(tmp_path / "record.json", {"x": object()})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_record_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write_json(path, {"old": 1})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        write_json(path, {"new": 2})
    assert read_json(path) == {"old": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["record.json"]


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*file/record\.json"):
        write_text(tmp_path / "file" / "record.json", "x")


def test_records_can_be_read_by_the_team(tmp_path):
    previous = os.umask(0o022)
    try:
        write_json(tmp_path / "record.json", {})
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "record.json").stat().st_mode) == 0o644


@pytest.mark.parametrize(("content", "told"), [(None, "cannot read"), ("{", "not valid JSON")])
def test_a_missing_or_broken_record_is_a_clear_error(tmp_path, content, told):
    path = tmp_path / "record.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UsageError, match=told):
        read_json(path)


def test_file_digest_depends_on_every_byte(tmp_path):
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b"a" * 3_000_000)
    two.write_bytes(b"a" * 2_999_999 + b"b")
    assert file_digest(one) != file_digest(two)


def test_versions_name_what_figures_depend_on():
    assert {"python", "style-overlap", "lm-eval", "torch", "transformers"} <= set(versions())
