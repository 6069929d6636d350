"""The house rules on imports, read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import style_overlap

PACKAGE = Path(style_overlap.__file__).parent
LEVELS = {
    "errors": 0, "names": 0, "results": 0, "scoring": 0, "stats": 0, "bootstrap": 0,
    "codes": 0, "draws": 0, "entropy": 0,
    "corpus": 1, "overlap": 1, "devices": 1, "checkpoints": 1, "heads": 1, "batching": 1,
    "model_folders": 1,
    "passes": 1, "textmodel": 1, "encoder": 1, "processes": 1, "coverage": 1, "model_args": 1,
    "trainers.classifier": 2, "trainers": 2, "probe": 2, "tasks": 2, "questions": 2,
    "embedding": 2, "lm": 2, "metrics": 2,
    "registry": 3, "evaluation": 3, "probing": 3, "report": 3,
    "leaderboard": 3, "sweep": 3,
    "cli": 4, "cli_options": 4, "cli_corpus": 4, "cli_leaderboard": 4, "cli_sweep": 4,
    "cli_train": 4, "cli_probe": 4, "cli_values": 4,
    "__main__": 4,
}  # fmt: skip
WITHOUT_TORCH = (
    "errors", "names", "results", "scoring", "stats", "bootstrap", "codes", "draws", "entropy",
    "corpus", "overlap", "report", "leaderboard",
)  # fmt: skip
WITH_HARNESS = ("tasks", "lm", "registry", "evaluation")


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def room(module: str) -> str:
    """The entry of LEVELS that a module belongs to."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in LEVELS:
            return ".".join(parts[:length])
    raise AssertionError(f"{module} has no level: give it one in this test")


def imports(path: Path) -> set[str]:
    """Full names of all that a module imports, at any depth of its code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_down_the_levels_and_nothing_imports_the_command_line(path):
    mine = room(module_name(path))
    for name in imports(path):
        if name.startswith("style_overlap.") and name != "style_overlap.__version__":
            theirs = room(name.removeprefix("style_overlap."))
            assert LEVELS[theirs] <= LEVELS[mine], f"{mine} imports {theirs}"
            assert theirs != "cli" or mine == "__main__"


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_torch_and_the_harness_stay_where_they_belong(path):
    mine = room(module_name(path))
    top = {name.split(".")[0] for name in imports(path)}
    if mine in WITHOUT_TORCH:
        assert not top & {"torch", "transformers", "accelerate"}
    if mine not in WITH_HARNESS:
        assert "lm_eval" not in top


def test_trainers_and_probe_meet_in_the_dynamics_alone():
    others = {"trainers": "style_overlap.probe.", "probe": "style_overlap.trainers."}
    for path in MODULES:
        mine = module_name(path)
        other = others.get(mine.split(".")[0])
        if other and mine != "trainers.dynamics":
            assert not [name for name in imports(path) if name.startswith(other)], mine


def test_no_drawer_for_everything():
    stems = {path.stem for path in MODULES}
    assert not stems & {"utils", "helpers", "common", "misc"}


@pytest.mark.parametrize(
    "statement",
    ["import style_overlap", "from style_overlap import cli", "from style_overlap import overlap"],
)
def test_heavy_libraries_are_not_loaded_before_they_are_needed(statement):
    heavy = {"torch", "transformers", "datasets", "lm_eval", "evaluate", "matplotlib", "sklearn"}
    code = f"{statement}; import sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert heavy & set(loaded) == set()
