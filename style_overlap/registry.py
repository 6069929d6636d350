"""Everything that lm-evaluation-harness gets to know of us, in one place.

The harness finds the entry points of ``pyproject.toml`` by itself once its release reads them.
Until then ``bridge/style_overlap_bridge.py`` calls ``models_loaded`` and ``tasks_loaded`` while the
harness is being imported; a program that runs without the bridge calls ``register``. Each half
stands aside on its own as soon as the harness discovers plug-ins of that kind. Importing this
module loads neither the harness nor torch.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from style_overlap.errors import UsageError
from style_overlap.tasks.style_overlap.files import FOLDER

MODELS = {"style-encoder": "style_overlap.lm:StyleEncoderLM"}
"""``--model`` names as "module:Class", imported on use; entry point group ``lm_eval.models``."""


def register() -> None:
    """Tell lm-eval of our tasks and model from a program that runs without the bridge.

    Call it any number of times, before a ``TaskManager`` is made or a model is looked up.
    """
    import lm_eval.tasks

    register_models()
    register_tasks(lm_eval.tasks)


def run_harness(argv: list[str]) -> None:
    """Run the ``lm_eval`` command in this process, with our tasks and model.

    Args:
        argv: arguments as typed after ``lm_eval``: a subcommand and its options, or ``--help``.

    Raises:
        SystemExit: as the command itself does: after ``--help``, wrong options, missing tasks.
        UsageError: input that one of our tasks or our model cannot use.
    """
    register()
    from lm_eval.__main__ import cli_evaluate

    typed = sys.argv
    # A copy: the harness writes the implied "run" into it.
    sys.argv = ["lm_eval", *argv]
    try:
        cli_evaluate()
    finally:
        sys.argv = typed


def models_loaded(module: ModuleType) -> None:
    """Called by the bridge once ``lm_eval.models`` has been imported."""
    _shorten_usage_errors()
    register_models()


def tasks_loaded(module: ModuleType) -> None:
    """Called by the bridge once ``lm_eval.tasks`` has been imported."""
    _shorten_usage_errors()
    register_tasks(module)


def register_models() -> None:
    """Add ``MODELS`` to lm-eval's model registry, as names that are imported on first use."""
    # The harness registers its own models only while its registry is empty: ours must come second,
    # or every other model, hf included, would be unknown.
    import lm_eval.models  # noqa: F401
    from lm_eval.api import registry

    if hasattr(registry, "load_plugins") and _declared("lm_eval.models"):
        return
    for name, target in MODELS.items():
        if name not in registry.model_registry:
            registry.model_registry.register(name, target=target)


def register_tasks(module: ModuleType) -> None:
    """Make every ``TaskManager`` of ``lm_eval.tasks`` that has the built-in tasks have ours too.

    Our folder is read between the two: ours replaces a built-in task of the same name, the user's
    ``include_path`` replaces ours. A ``TaskManager(include_defaults=False)`` is left alone.

    Args:
        module: ``lm_eval.tasks``, executed.

    Raises:
        TypeError: ``TaskManager`` takes no ``include_path``, so this lm-eval is not one we know.
    """
    manager = module.TaskManager
    home = sys.modules.get(manager.__module__, module)
    discovers = any(hasattr(place, "discover_plugin_task_paths") for place in (module, home))
    if discovers and _declared("lm_eval.tasks"):
        return
    init = manager.__init__
    # An attribute, not isinstance: it outlives a reload of either package.
    if not getattr(init, "knows_style_overlap", False):
        manager.__init__ = _with_our_tasks(init)


def _with_our_tasks(init: Callable[..., None]) -> Callable[..., None]:
    """``TaskManager.__init__`` that reads our folder before the user's ``include_path``."""
    signature = inspect.signature(init)
    if "include_path" not in signature.parameters:
        raise TypeError(f"TaskManager{signature} takes no include_path: lm-eval>=0.4.12 does")

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:
            init(self, *args, **kwargs)  # raises it as if we were not here
            return
        bound.apply_defaults()
        given = bound.arguments["include_path"]
        if bound.arguments.get("include_defaults", True):
            paths = _as_list(given)
            # Read twice, each of our tasks would be reported as overriding itself.
            if not any(FOLDER.is_relative_to(Path(path).resolve()) for path in paths):
                bound.arguments["include_path"] = [FOLDER, *paths]
        init(*bound.args, **bound.kwargs)
        if hasattr(self, "include_path"):
            self.include_path = given

    __init__.knows_style_overlap = True  # type: ignore[attr-defined]
    return __init__


def _as_list(include_path: Any) -> list[str | Path]:
    """The value of ``include_path`` as lm-eval reads it: nothing, one path, or several."""
    if not include_path:
        return []
    return list(include_path) if isinstance(include_path, (list, tuple)) else [include_path]


def _declared(group: str) -> bool:
    """Whether our entry point of this group can be found: not when run from a bare checkout."""
    return any(
        entry.value.partition(":")[0].partition(".")[0] == "style_overlap"
        for entry in metadata.entry_points(group=group)
    )


def _shorten_usage_errors() -> None:
    """In the process of the ``lm_eval`` command, say bad input in one line and exit with 2.

    Scripts and notebooks that call ``simple_evaluate`` keep their exceptions and tracebacks.
    """
    previous = sys.excepthook
    if not _is_harness_command() or getattr(previous, "knows_style_overlap", False):
        return

    def excepthook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, UsageError):
            previous(kind, error, traceback)
            return
        print(f"error: {error}", file=sys.stderr)
        # Python takes the exit status from a SystemExit that its excepthook raises.
        raise SystemExit(2)

    excepthook.knows_style_overlap = True  # type: ignore[attr-defined]
    sys.excepthook = excepthook


def _is_harness_command() -> bool:
    """Whether this process was started as ``lm_eval``, ``lm-eval`` or ``python -m lm_eval``."""
    command = Path(sys.argv[0]) if sys.argv else Path()
    if command.name == "__main__.py":
        return command.parent.name == "lm_eval"
    name = command.name.removesuffix(".exe").removesuffix(".py").removesuffix("-script")
    return name in {"lm_eval", "lm-eval"}
