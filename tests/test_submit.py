"""Submissions: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import json
import stat
import zipfile

import pytest
from typer import Typer
from typer.testing import CliRunner

from leaderboard_records import GRID, checkpoint, evaluation, many, retrieval, save, summary
from style_overlap import cli_leaderboard
from style_overlap.errors import UsageError
from style_overlap.leaderboard import archive, site, strict, submission
from style_overlap.leaderboard.sources import gather
from style_overlap.results import dumps, write_json

FILE = stat.S_IFREG | 0o644


def run_record(record, **changes):
    """A cell of a sweep."""
    return {"schema": 1, "kind": "run", "cell": "c", "config": record["checkpoint"]["config"],
            "status": "done", "error": None, "training": checkpoint(record),
            "evaluation": record, "dynamics": [], "versions": {}, **changes}  # fmt: skip


@pytest.fixture
def runs(tmp_path):
    folder = save(tmp_path / "runs", *[evaluation(alpha=alpha) for alpha in GRID])
    write_json(folder / "cell" / "run.json", run_record(evaluation("org/swept")))
    write_json(folder / "run0" / "style_overlap.json", checkpoint(evaluation()))
    (folder / "run0" / "model.safetensors").write_bytes(b"weights")
    look = {"step": 0, "epoch": 0.0, "loss": None, "accuracy": {"matched": 0.5},
            "retrieval": [summary(0.5)]}  # fmt: skip
    (folder / "run0" / "dynamics.jsonl").write_text(json.dumps(look) + "\n")
    probe = {"schema": 1, "kind": "probe", "checkpoint": evaluation()["checkpoint"],
             "model": {}, "config": {}, **retrieval(summary(0.4))}  # fmt: skip
    write_json(folder / "run0" / "probes" / "k2-1.json", probe)
    return folder


def packed(tmp_path, runs):
    submission.pack([runs], tmp_path / "s.zip")
    return tmp_path / "s.zip"


def rewritten(path, change):
    """The archive with its files changed, and hashes that fit if ``change`` says so."""
    files = archive.unpack(path)
    files = change(files) or files
    path.write_bytes(archive.pack(files))
    return path


def test_a_submission_holds_every_record_and_no_weights(tmp_path, runs):
    names = zipfile.ZipFile(packed(tmp_path, runs)).namelist()
    kinds = sorted({name.split("/")[0] for name in names})
    assert kinds == ["evaluations", "manifest.json", "probes", "runs", "trained"]
    assert not [name for name in names if "safetensors" in name]
    assert len([name for name in names if name.startswith("evaluations")]) == 2
    assert [name for name in names if name.endswith("dynamics.jsonl")]


def test_a_leaderboard_is_the_same_from_runs_and_from_their_submission(tmp_path, runs):
    direct = site.write([runs], tmp_path / "a")
    through = site.write([packed(tmp_path, runs)], tmp_path / "b")
    for board in (direct, through):
        for row in board["rows"]:
            row.pop("sources")
    assert through["rows"] == direct["rows"]
    assert through["left_out"] == direct["left_out"] == []
    assert [bool(row["looks"]) for row in through["rows"]] == [True, False]


def test_the_same_records_give_the_same_bytes_wherever_they_lie(tmp_path, runs):
    one = packed(tmp_path, runs).read_bytes()
    runs.rename(tmp_path / "elsewhere")
    assert packed(tmp_path, tmp_path / "elsewhere").read_bytes() == one


def test_a_bad_record_is_left_out_and_named(tmp_path, runs):
    bad = evaluation("org/bad")
    bad["checkpoint"]["config"]["model"] = "x" * 999
    write_json(runs / "bad" / "evaluations" / "k2-0.json", bad)
    told = submission.pack([runs], tmp_path / "s.zip")
    (source,) = told.left_out
    assert source.endswith("bad/evaluations/k2-0.json")
    assert "model" in told.left_out[source]
    submission.read(tmp_path / "s.zip")


def test_nothing_to_submit_is_told_and_writes_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="nothing to submit"):
        submission.pack([tmp_path / "empty"], tmp_path / "s.zip")
    assert not (tmp_path / "s.zip").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda f: f.pop(next(n for n in f if n.startswith("runs"))) and None, "manifest only"),
        (lambda f: f.update({"evaluations/000000000000.json": b"{}"}), "archive only"),
        (
            lambda f: f.update({next(n for n in f if n.startswith("eval")): b"{}"}),
            "hash is another",
        ),
        (lambda f: f.pop("manifest.json") and None, "no manifest.json"),
        (lambda f: f.update({"manifest.json": b'{"schema": 2}'}), "schema version 2"),
        (lambda f: f.update({"manifest.json": b"nonsense"}), "not valid JSON"),
    ],
)
def test_a_submission_that_was_changed_is_refused(tmp_path, runs, change, told):
    path = rewritten(packed(tmp_path, runs), change)
    with pytest.raises(strict.Refused, match=told):
        submission.read(path)


def with_manifest(files):
    """A submission of these files whose hashes fit."""
    import hashlib

    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    manifest = {"schema": 1, "kind": "submission", "files": hashes}
    return archive.pack({"manifest.json": dumps(manifest).encode(), **files})


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("evaluations/000000000000.json", b'{"schema": 1, "kind": "evaluation"}', "required"),
        ("evaluations/000000000000.json", b'{"schema": 1, "kind": "run"}', "kind evaluation"),
        ("evaluations/000000000000.json", b'{"a": NaN}', "NaN"),
        ("runs/000000000000/run.json", b"[" * 100_000, "nested too deeply"),
        ("evaluations/x.json", b"{}", "manifest|submission"),
        ("trained/000000000000/dynamics.jsonl", b'{"step": -1}\n', "look"),
    ],
)
def test_a_record_that_does_not_fit_is_refused_even_with_fitting_hashes(tmp_path, name, data, told):
    path = tmp_path / "s.zip"
    path.write_bytes(with_manifest({name: data}))
    with pytest.raises(strict.Refused, match=told):
        submission.read(path)


def raw_zip(path, *entries):
    """A zip by hand: (name, data, mode)."""
    with zipfile.ZipFile(path, "w") as file:
        for name, data, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            file.writestr(info, data)
    return path


@pytest.mark.parametrize(
    "name",
    ["../evil.json", "a/../../evil.json", "/etc/evil.json", "C:\\evil.json", "..\\evil.json",
     "a//b.json", "./a.json", "a/./b", "..", "a\nb.json", "x" * 300, "ä.json", "dir/"],
)  # fmt: skip
def test_names_that_leave_the_archive_are_refused_and_nothing_is_written(tmp_path, name):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    path = raw_zip(inside / "s.zip", (name, b"x", FILE))
    with pytest.raises(strict.Refused, match="plain relative names"):
        archive.unpack(path)
    found = gather([path])
    assert list(found.left_out) == [str(path)]
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["s.zip"]


def test_links_twins_and_bombs_are_refused(tmp_path, monkeypatch):
    link = raw_zip(tmp_path / "1.zip", ("a.json", b"/etc/passwd", stat.S_IFLNK | 0o777))
    with pytest.raises(strict.Refused, match="not a plain file"):
        archive.unpack(link)
    with pytest.warns(UserWarning, match="Duplicate"):
        twins = raw_zip(tmp_path / "2.zip", ("a.json", b"1", FILE), ("a.json", b"2", FILE))
    with pytest.raises(strict.Refused, match="twice"):
        archive.unpack(twins)
    monkeypatch.setattr(archive, "MAX_BYTES", 10_000)
    bomb = tmp_path / "3.zip"
    bomb.write_bytes(archive.pack({"a.json": b"0" * 10**6}))
    assert bomb.stat().st_size < 5_000
    with pytest.raises(strict.Refused, match="too large"):
        archive.unpack(bomb)


def test_a_header_that_lies_about_the_size_does_not_help(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_BYTES", 1000)
    data = bytearray(archive.pack({"a.json": b"0" * 100_000}))
    for place in (data.find(b"PK\x01\x02") + 24, data.find(b"PK\x03\x04") + 22):
        data[place : place + 4] = (5).to_bytes(4, "little")
    path = tmp_path / "s.zip"
    path.write_bytes(bytes(data))
    with pytest.raises(strict.Refused):
        archive.unpack(path)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"hello" * 100])
def test_what_is_no_zip_is_refused(tmp_path, data):
    path = tmp_path / "s.zip"
    path.write_bytes(data)
    with pytest.raises(strict.Refused, match="no sound zip"):
        archive.unpack(path)


def test_a_damaged_zip_is_refused_wherever_a_byte_is_changed(tmp_path, runs):
    path = packed(tmp_path, runs)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 150)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            files = submission.read(path)
        except strict.Refused:
            continue
        path.write_bytes(whole)
        assert files == submission.read(path)  # a byte that means nothing, a date say


def test_other_files_of_a_zip_in_a_folder_are_named(tmp_path, runs):
    (runs / "other.zip").write_bytes(b"no zip")
    found = gather([runs])
    assert list(found.left_out) == [str(runs / "other.zip")]
    assert len(found.records.evaluations) == 3


def test_the_schema_fits_what_the_tools_write_and_is_itself_valid(tmp_path):
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(strict.schema())
    runs = many(tmp_path / "runs")
    assert submission.pack([runs], tmp_path / "s.zip").left_out == {}


def test_the_command_packs_checks_and_refuses(tmp_path, runs):
    app = Typer(pretty_exceptions_enable=False)
    app.command()(cli_leaderboard.submit)
    path = str(tmp_path / "s.zip")
    done = CliRunner().invoke(app, [str(runs), "--output", path])
    assert done.exit_code == 0, done.output
    assert "records" in done.output
    assert CliRunner().invoke(app, ["--check", path]).exit_code == 0
    (tmp_path / "s.zip").write_bytes(b"x")
    refused = CliRunner().invoke(app, ["--check", path])
    assert isinstance(refused.exception, UsageError)
    assert isinstance(CliRunner().invoke(app, []).exception, UsageError)
