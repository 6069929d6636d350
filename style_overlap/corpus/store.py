"""The cache of built corpora: Arrow folders that appear whole or not at all.

One folder per recipe, named by a digest of everything that went into it, so that a changed
source, setting or rule never meets old texts. The builder holds a lock and works in a temporary
sibling folder, which one rename turns into the entry; others wait and read that one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from style_overlap.corpus.columns import Columns, data_set, fingerprint
from style_overlap.corpus.parallel import ParallelCorpus
from style_overlap.errors import UsageError
from style_overlap.results import digest, file_digest, read_json, write_json

FORMAT = 1
"""Layout of a cache entry: raised when an older entry could be misread."""

RULES = 1
"""Version of cleaning, alignment, chunking and grouping, part of every recipe's settings: raised
with each change to them, so that no cache serves the texts of older rules."""

_META = "corpus.json"
_TABLE = "table"


@dataclass(frozen=True)
class Recipe:
    """What it takes to build one corpus.

    Attributes:
        name: of the corpus; begins the name of its cache folder.
        styles: classes in label order; None where only the texts tell: the order of the columns.
        reserved: styles that no classifier is trained on.
        settings: all choices that the result depends on, as JSON has it; part of the cache key and
            of the fingerprint.
        build: the work itself, given an empty folder that is removed afterwards: returns the
            table's columns, and what was dropped and why. Columns may be an Arrow table in the
            folder, so that they need not fit in memory.
        sources: digests of the files that are read, where the settings do not hold them: part of
            the cache key and not of the fingerprint, which is of texts and not of file formats.
    """

    name: str
    styles: tuple[str, ...] | None
    reserved: tuple[str, ...]
    settings: Mapping[str, Any]
    build: Callable[[Path], tuple[Columns, dict[str, Any]]]
    sources: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Name of the cache entry."""
        key: dict[str, Any] = {"format": FORMAT, "settings": self.settings}
        if self.sources:
            key["sources"] = self.sources
        return f"{self.name}-{digest(key)[:20]}"


def cache_root(cache_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder of all cache entries: the argument, else what the environment says."""
    root = cache_dir or os.environ.get("STYLE_OVERLAP_CACHE")
    if not root:
        root = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "style_overlap"
    return Path(root).expanduser()


def load(recipe: Recipe, root: Path) -> ParallelCorpus:
    """Read the recipe's corpus from the cache, and build it first where it is not there.

    Args:
        recipe: the corpus.
        root: folder of all cache entries, see ``cache_root``.

    Raises:
        UsageError: the entry is missing and the folder cannot be written to, or the recipe's own
            errors.
    """
    entry = root / "corpus" / recipe.folder
    corpus = _read(recipe, entry)
    if corpus is None:
        with _locked(entry, root):
            corpus = _read(recipe, entry)  # another process may have built it while we waited
            if corpus is None:
                with _scratch(recipe, entry, root) as scratch:
                    columns, dropped = recipe.build(scratch)
                    with _named(root):
                        _write(recipe, entry, columns, dropped)
                corpus = _read(recipe, entry)
    if corpus is None:
        raise UsageError(f"the cache entry {entry} cannot be read back: is the disk in order?")
    return corpus


def _read(recipe: Recipe, entry: Path) -> ParallelCorpus | None:
    """The corpus in a cache entry, or None where there is none or it is damaged."""
    if not entry.exists():
        return None
    import datasets

    try:
        meta = read_json(entry / _META)
        if meta["settings"] != recipe.settings or meta["sha256"] != _table_digest(entry):
            return None
        table = datasets.Dataset.load_from_disk(str(entry / _TABLE), keep_in_memory=False)
        others = {"content_id", "group", *recipe.reserved}
        styles = tuple(name for name in table.column_names if name not in others)
        return ParallelCorpus(
            name=recipe.name,
            styles=recipe.styles or styles,
            reserved=recipe.reserved,
            table=table,
            fingerprint=meta["fingerprint"],
            settings=meta["settings"],
            dropped=meta["dropped"],
        )
    except (OSError, ValueError, KeyError, TypeError):  # UsageError is a ValueError
        return None


def _write(recipe: Recipe, entry: Path, columns: Columns, dropped: Mapping[str, Any]) -> None:
    """Make the entry. The caller holds its lock."""
    temporary = entry.parent / f".{recipe.folder}.{os.getpid()}.tmp"
    try:
        temporary.mkdir()
        with _no_progress_bars():
            data_set(columns).save_to_disk(str(temporary / _TABLE))
        meta = {
            "fingerprint": fingerprint(columns, recipe.settings),
            "settings": recipe.settings,
            "dropped": dropped,
            "sha256": _table_digest(temporary),
        }
        write_json(temporary / _META, meta)
        if entry.exists():  # damaged
            os.rename(entry, entry.parent / f".{recipe.folder}.damaged-{os.getpid()}.tmp")
        os.rename(temporary, entry)
    finally:
        for leftover in (temporary, *entry.parent.glob(f".{recipe.folder}.damaged-*.tmp")):
            shutil.rmtree(leftover, ignore_errors=True)


@contextlib.contextmanager
def _scratch(recipe: Recipe, entry: Path, root: Path) -> Iterator[Path]:
    """A folder to build in, beside the entry. The caller holds its lock."""
    # Holding the lock, we know that these are left from a builder that was killed.
    for stale in entry.parent.glob(f".{recipe.folder}.*.tmp"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = entry.parent / f".{recipe.folder}.{os.getpid()}.scratch.tmp"
    with _named(root):
        folder.mkdir()
    try:
        yield folder
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        with _named(root):
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _table_digest(entry: Path) -> str:
    return file_digest(*sorted((entry / _TABLE).iterdir()))


@contextlib.contextmanager
def _locked(entry: Path, root: Path) -> Iterator[None]:
    """Hold the entry's lock; a process that dies lets go of it."""
    import filelock

    lock = filelock.FileLock(entry.parent / f".{entry.name}.lock")
    with _named(root):
        entry.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _named(root: Path) -> Iterator[None]:
    """Say which folder cannot be written to, and what to do about it."""
    try:
        yield
    except (OSError, NotImplementedError) as error:  # the latter: no locks on this file system
        raise UsageError(
            f"cannot write the cache folder {root}: {getattr(error, 'strerror', None) or error}; "
            "set STYLE_OVERLAP_CACHE to a folder that can be written to"
        ) from error


@contextlib.contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Without datasets' own progress bars, which say nothing about our work."""
    import datasets

    disabled = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not disabled:
            datasets.enable_progress_bars()
