"""Observations -> entries: which figures share a row, and what becomes of those that disagree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from style_overlap.leaderboard import harness_results, own_records
from style_overlap.leaderboard.observations import (
    Observation,
    Record,
    Score,
    Setting,
    Training,
    Unknown,
    training_of,
)
from style_overlap.leaderboard.sources import Found
from style_overlap.names import as_alpha
from style_overlap.results import digest

Cell = tuple[str, str]
"""(alpha_train, alpha_eval)."""

_EQUAL = 1e-9  # two accuracies of one run, read from two files


@dataclass(eq=False)
class Entry:
    """All that was seen of one encoder in one setting with one recipe.

    Attributes:
        id: hash of the identity.
        setting, training: the identity; of ``training`` all but the overlap and the seed.
        parameters: of the model; None if unknown or if the files disagree.
        cells: scores by cell and seed.
        retrieval: summaries by (alpha_train, seed), all measured in one way.
        looks: of trainings that were looked at, by (alpha_train, seed).
        sources: files that are in it.
        notes: what a reader has to know.
    """

    id: str
    setting: Setting
    training: Training
    parameters: int | None = None
    cells: dict[Cell, dict[str, Score]] = field(default_factory=dict)
    retrieval: dict[tuple[str, str], list[Record]] = field(default_factory=dict)
    looks: dict[tuple[str, str], tuple[Record, ...]] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def seeds(self) -> list[str]:
        """Every seed of any cell."""
        return sorted({seed for by_seed in self.cells.values() for seed in by_seed}, key=_seed_key)

    @property
    def alphas_train(self) -> list[str]:
        """Overlaps that were trained at, ascending."""
        return sorted({row for row, _ in self.cells}, key=as_alpha)

    @property
    def alphas_eval(self) -> list[str]:
        """Overlaps that were scored at, ascending."""
        return sorted({column for _, column in self.cells}, key=as_alpha)

    def seeds_of(self, cells: Iterable[Cell]) -> list[str]:
        """Seeds that have every one of some cells: only they may be compared across them."""
        have = [set(self.cells.get(cell, ())) for cell in cells]
        return sorted(set.intersection(*have), key=_seed_key) if have else []


@dataclass(frozen=True)
class Entries:
    """What some records come to.

    Attributes:
        entries: the rows to be.
        unknown: models whose training nobody told.
        left_out: (file, reason), sorted.
    """

    entries: tuple[Entry, ...]
    unknown: tuple[Unknown, ...]
    left_out: tuple[tuple[str, str], ...]


def assemble(found: Found) -> Entries:
    """Sort everything into entries.

    Two files that claim one figure and agree count once. Two that disagree cannot both be right,
    and nothing here can tell which is: neither counts, and both are named.
    """
    seen = [*own_records.observe(found), *harness_results.observe(found)]
    left_out = {*found.left_out.items(), *(item for item in seen if isinstance(item, tuple))}
    observed = [item for item in seen if isinstance(item, Observation)]
    entries = []
    for row, group in sorted(_rows(observed).items()):
        entry = _entry(row, sorted(group, key=lambda one: one.source), left_out)
        if entry.cells:
            entries.append(entry)
        else:
            left_out |= {(one.source, _alone(one)) for one in group}
    _add_looks(entries, found)
    unknown = sorted((item for item in seen if isinstance(item, Unknown)), key=lambda u: u.source)
    return Entries(tuple(entries), tuple(unknown), tuple(sorted(left_out)))


def _rows(observed: list[Observation]) -> dict[str, list[Observation]]:
    """Observations by row.

    Not every record tells the fingerprint of the weights before fine-tuning. Where all that tell
    it agree, it is one encoder; where they do not, two encoders have one name, and each
    fingerprint, and the unknown one, has a row of its own.
    """
    by_name: dict[str, list[Observation]] = {}
    for one in observed:
        by_name.setdefault(one.row, []).append(one)
    rows: dict[str, list[Observation]] = {}
    for name, group in by_name.items():
        if len({one.training.base for one in group} - {None}) <= 1:
            rows[name] = group
            continue
        for one in group:
            rows.setdefault(digest([name, one.training.base])[:12], []).append(one)
    return rows


def _alone(one: Observation) -> str:
    if one.scores:
        return "nothing of it is left: see the other reasons"
    return "a probe of a checkpoint whose accuracies are in no file"


def _entry(row: str, group: list[Observation], left_out: set[tuple[str, str]]) -> Entry:
    who = next((one.training for one in group if one.training.base), group[0].training)
    entry = Entry(row, group[0].setting, who)
    sizes = {one.parameters for one in group if one.parameters is not None}
    if len(sizes) == 1:
        entry.parameters = int(sizes.pop())
    elif sizes:
        entry.notes.append(f"files disagree on the number of parameters: {sorted(sizes)}")
    claims: dict[tuple[Cell, str], list[tuple[str, Score]]] = {}
    for one in group:
        for alpha_eval, score in one.scores.items():
            cell = (one.training.alpha, alpha_eval)
            claims.setdefault((cell, one.training.seed), []).append((one.source, score))
    kept = {key: _settle(key, told, entry, left_out) for key, told in sorted(claims.items())}
    for (cell, seed), agreed in kept.items():
        if agreed is not None:
            entry.cells.setdefault(cell, {})[seed] = agreed
    _same_tests(entry, left_out, {key: [s for s, _ in told] for key, told in claims.items()})
    _add_retrieval(entry, group, left_out)
    used = {one.source for one in group if one.scores or one.retrieval}
    entry.sources = sorted(used)
    return entry


def _settle(
    key: tuple[Cell, str],
    told: list[tuple[str, Score]],
    entry: Entry,
    left_out: set[tuple[str, str]],
) -> Score | None:
    """The score that all files tell, None if they tell different ones."""
    first = told[0][1]
    if all(abs(s.acc - first.acc) <= _EQUAL and s.test == first.test for _, s in told):
        # Credit of single contents is worth having; else the first file by name.
        return next((score for _, score in told if score.credit), first)
    (cell, seed), files = key, [source for source, _ in told]
    where = f"alpha_train={cell[0]}, alpha_eval={cell[1]}, seed {seed}"
    entry.notes.append(f"{len(files)} files disagree on {where}: the cell is blank")
    for source in files:
        others = ", ".join(sorted(set(files) - {source}))
        left_out.add((source, f"disagrees with {others} on {where}: neither counts there"))
    return None


def _same_tests(
    entry: Entry, left_out: set[tuple[str, str]], sources: Mapping[tuple[Cell, str], list[str]]
) -> None:
    """Take out scores of one overlap and seed on different test sets: two protocols."""
    tests: dict[tuple[str, str], set[str]] = {}
    for cell, by_seed in entry.cells.items():
        for seed, score in by_seed.items():
            tests.setdefault((cell[1], seed), set()).add(score.test)
    for (alpha_eval, seed), found in sorted(tests.items()):
        if len(found) == 1:
            continue
        told = f"alpha_eval={alpha_eval}, seed {seed}: files tell of different test sets"
        entry.notes.append(f"{told}; these cells are blank")
        for cell in [cell for cell in entry.cells if cell[1] == alpha_eval]:
            if entry.cells[cell].pop(seed, None) is not None:
                left_out |= {(source, told) for source in sources[cell, seed]}
            if not entry.cells[cell]:
                del entry.cells[cell]


def _add_retrieval(entry: Entry, group: list[Observation], left_out: set[tuple[str, str]]) -> None:
    """Retrieval of the one way of measuring that covers most trainings; others are named."""
    ways: dict[str, dict[tuple[str, str], dict[str, tuple[str, Record]]]] = {}
    for one in group:
        place = (one.training.alpha, one.training.seed)
        for how, row in one.retrieval:
            kept = ways.setdefault(how, {}).setdefault(place, {})
            what = digest([row["source"], row["features"], row["set"]])
            source, there = kept.setdefault(what, (one.source, row))
            if there["top1"]["mean"] != row["top1"]["mean"]:
                for name, other in ((source, one.source), (one.source, source)):
                    told = f"disagrees with {other} on retrieval at alpha_train={place[0]}, seed"
                    left_out.add((name, f"{told} {place[1]}: neither counts there"))
                kept[what] = (source, {**there, "top1": {"mean": None}})
    if not ways:
        return
    chosen = min(ways, key=lambda how: (-len(ways[how]), how))
    if len(ways) > 1:
        entry.notes.append(
            f"retrieval was measured in {len(ways)} ways (projector settings, gallery, number "
            "format): shown is the one that covers most trainings"
        )
    entry.retrieval = {
        place: [row for _, row in rows.values() if row["top1"]["mean"] is not None]
        for place, rows in sorted(ways[chosen].items())
    }


def _add_looks(entries: list[Entry], found: Found) -> None:
    """Dynamics go to the entry of the same training; they tell the corpus, not the styles."""
    for dynamics in found.records.dynamics.values():
        if dynamics.degenerate or dynamics.afterwards or "model" not in dynamics.config:
            continue
        training = training_of(dynamics.config, None)
        for entry in entries:
            mine = (entry.training.encoder, entry.training.recipe, entry.setting.k,
                    entry.setting.corpus_fingerprint)  # fmt: skip
            theirs = (training.encoder, training.recipe, dynamics.config["k"], dynamics.corpus)
            if mine == theirs and any(row == training.alpha for row, _ in entry.cells):
                entry.looks.setdefault((training.alpha, training.seed), dynamics.looks)


def _seed_key(seed: str) -> tuple[int, ...]:
    return tuple(int(part) for part in seed.split("/"))
