"""The cache of built corpora: one builder, whole entries, clear errors."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from style_overlap.corpus import store
from style_overlap.corpus.columns import fingerprint
from style_overlap.errors import UsageError

# A corpus that is built slowly and says each time that it was built.
SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from style_overlap.corpus import store
from style_overlap.corpus.columns import fingerprint

root, mode = Path(sys.argv[1]), sys.argv[2]

def build(scratch):
    with open(root / "builds", "a") as file:
        file.write("built\\n")
    time.sleep(0.5)
    rows = [f"text {n}" for n in range(2000)]
    ids = [str(n) for n in range(2000)]
    return {"content_id": ids, "group": list(range(2000)), "A": rows, "B": rows}, {"none": 0}

if mode == "die":  # in the middle of writing
    store.write_json = lambda path, value: os.kill(os.getpid(), signal.SIGKILL)
recipe = store.Recipe("toy", ("A", "B"), (), {"version": 1}, build)
corpus = store.load(recipe, root)
print(corpus.fingerprint, len(corpus), corpus.texts("B")[-1], sum(corpus.groups))
"""


def columns(texts=("a", "b")):
    return {
        "content_id": [str(row) for row in range(len(texts))],
        "group": list(range(len(texts))),
        "A": list(texts),
        "B": list(texts),
    }


def toy(texts=("a", "b"), **settings) -> store.Recipe:
    return store.Recipe("toy", ("A", "B"), (), settings, lambda _: (columns(texts), {"none": 0}))


def no_build(*_):
    raise AssertionError("built again")


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def entries(root: Path) -> list[Path]:
    return sorted((root / "corpus").iterdir())


def start(root: Path, mode: str = "live") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(root), mode],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.case(19)
def test_eight_processes_start_cold_and_one_builds(tmp_path):
    processes = [start(tmp_path) for _ in range(8)]
    seen: set[str] = set()
    while any(process.poll() is None for process in processes):
        for entry in (tmp_path / "corpus").glob("toy-*"):  # what a stranger would take for an entry
            meta = json.loads((entry / "corpus.json").read_text())
            assert (entry / "table" / "state.json").exists()
            seen.add(meta["fingerprint"])
        time.sleep(0.02)
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, outputs
    assert len({out for out, _ in outputs}) == 1
    assert outputs[0][0].split()[1:] == ["2000", "text", "1999", str(sum(range(2000)))]
    assert (tmp_path / "builds").read_text() == "built\n"
    assert seen == {outputs[0][0].split()[0]}


@pytest.mark.case(19)
def test_a_killed_builder_leaves_nothing_that_confuses_the_next(tmp_path):
    killed = start(tmp_path, "die")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    left = [path.name for path in entries(tmp_path)]
    assert any(name.endswith(".tmp") for name in left), "the test killed it too early or too late"
    assert not any(name.startswith("toy") for name in left)
    out, err = start(tmp_path).communicate()
    assert out.split()[1] == "2000", err
    assert [path.name for path in entries(tmp_path) if path.name.endswith(".tmp")] == []


def test_a_warm_start_reads_the_arrow_file_and_takes_no_lock(tmp_path, monkeypatch):
    cold = store.load(toy(), tmp_path)
    monkeypatch.setattr("filelock.FileLock", no_build)
    warm = store.load(store.Recipe("toy", ("A", "B"), (), {}, no_build), tmp_path)
    assert warm.table.cache_files, "not memory-mapped"
    assert warm.table[:] == cold.table[:] == columns()
    assert (warm.fingerprint, warm.dropped) == (cold.fingerprint, {"none": 0})


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: (entry / "corpus.json").unlink(),
        lambda entry: (entry / "corpus.json").write_text("{"),
        lambda entry: (entry / "corpus.json").write_text("[]"),
        lambda entry: (entry / "table" / "state.json").write_text("{}"),
        lambda entry: shutil.rmtree(entry / "table"),
        lambda entry: os.truncate(next(entry.glob("table/*.arrow")), 100),
        lambda entry: flip_a_byte(next(entry.glob("table/*.arrow"))),
    ],
)
def test_a_damaged_entry_is_built_again(tmp_path, damage):
    first = store.load(toy(), tmp_path)
    entry = tmp_path / "corpus" / toy().folder
    damage(entry)
    again = store.load(toy(), tmp_path)
    assert again.table[:] == columns()
    assert again.fingerprint == first.fingerprint
    visible = [path for path in entries(tmp_path) if not path.name.startswith(".")]
    assert visible == [entry]


@pytest.mark.case(18)
def test_other_settings_are_another_entry_and_another_fingerprint(tmp_path):
    one, two = store.load(toy(size=1), tmp_path), store.load(toy(size=2), tmp_path)
    assert one.fingerprint != two.fingerprint
    assert toy(size=1).folder != toy(size=2).folder
    assert store.load(toy(size=1), tmp_path).fingerprint == one.fingerprint


@pytest.mark.case(18)
@pytest.mark.parametrize(
    "other",
    [
        {**columns(("ab", "c")), "content_id": ["0", "2"]},
        {**columns(("ab", "c")), "group": [0, 0]},
        columns(("a", "bc")),
        columns(("ab", "c", "")),
    ],
)
def test_the_fingerprint_sees_ids_groups_and_texts(other):
    assert fingerprint(other, {}) != fingerprint(columns(("ab", "c")), {})


def test_the_fingerprint_does_not_depend_on_the_folder(tmp_path):
    here, there = store.load(toy(), tmp_path / "a"), store.load(toy(), tmp_path / "b")
    assert here.fingerprint == there.fingerprint == fingerprint(columns(), {})


def test_a_cache_that_cannot_be_written_says_which_variable_to_set(tmp_path):
    (tmp_path / "file").write_text("")
    root = tmp_path / "file" / "cache"
    with pytest.raises(UsageError, match="STYLE_OVERLAP_CACHE") as error:
        store.load(store.Recipe("toy", ("A", "B"), (), {}, no_build), root)
    assert str(root) in str(error.value)


def test_a_full_disk_leaves_no_half_entry(tmp_path, monkeypatch):
    def full(path, value):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_json", full)
        with pytest.raises(UsageError, match=r"No space left on device.*STYLE_OVERLAP_CACHE"):
            store.load(toy(), tmp_path)
    assert [path.name for path in entries(tmp_path)] == [f".{toy().folder}.lock"]
    assert len(store.load(toy(), tmp_path)) == 2


def test_errors_of_the_build_are_passed_on_and_the_lock_is_free_again(tmp_path):
    def fails(_):
        raise UsageError("no such text")

    with pytest.raises(UsageError, match="no such text"):
        store.load(store.Recipe("toy", ("A", "B"), (), {}, fails), tmp_path)
    assert len(store.load(toy(), tmp_path)) == 2


def test_the_cache_folder_comes_from_the_argument_then_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("STYLE_OVERLAP_CACHE", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert store.cache_root(tmp_path) == tmp_path
    assert store.cache_root() == Path("/own")
    monkeypatch.setenv("STYLE_OVERLAP_CACHE", "")
    assert store.cache_root() == Path("/xdg/style_overlap")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert store.cache_root() == Path.home() / ".cache" / "style_overlap"


def test_progress_bars_are_as_they_were(tmp_path):
    import datasets

    before = datasets.are_progress_bars_disabled()
    store.load(toy(), tmp_path)
    assert datasets.are_progress_bars_disabled() == before
