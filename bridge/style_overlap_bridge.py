"""Makes the ``lm_eval`` command know style-overlap, as long as lm-eval finds no plug-ins itself.

Released versions of lm-evaluation-harness look for tasks and models in their own package only.
``style_overlap_bridge.pth`` (``.start`` from Python 3.15 on) calls ``install`` when Python starts.
That puts one finder on ``sys.meta_path``; it answers for two module names, and once one of them
has been executed it hands the module to ``style_overlap.registry``. The package itself is imported
then and not before, so a Python that never meets lm-eval pays for this short file alone, which is
why nothing is imported here that Python has not loaded by itself.

``STYLE_OVERLAP_BRIDGE=0`` switches it off; uninstalling style-overlap takes it away.
"""

import os
import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# Which function of style_overlap.registry is to see which module of the harness.
HOOKS = {"lm_eval.models": "models_loaded", "lm_eval.tasks": "tasks_loaded"}

_warned = False


def install() -> None:
    """Put the finder on ``sys.meta_path``, once, unless the environment says no."""
    if os.environ.get("STYLE_OVERLAP_BRIDGE", "").strip().lower() in {"0", "false", "no", "off"}:
        return
    # By name: a reloaded copy of this module has another class.
    if not any(type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


class Finder:
    """Finds the modules in ``HOOKS`` through the other finders, and no others at all."""

    def __init__(self) -> None:
        self._asking: set[tuple[int, str]] = set()

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """The spec that Python would have found anyway, with a loader that tells us afterwards."""
        asking = (get_ident(), name)
        # Another tool's import hook may ask every finder in turn, us included, from within ours.
        if name not in HOOKS or asking in self._asking:
            return None
        self._asking.add(asking)
        try:
            spec = _ask_others(self, name, path, target)
        finally:
            self._asking.discard(asking)
        # A namespace package has nothing to run, and so nothing to wait for.
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _TellingLoader(spec.loader)  # type: ignore[assignment]
        return spec


def _ask_others(
    ours: Finder, name: str, path: "Sequence[str] | None", target: "ModuleType | None"
) -> "ModuleSpec | None":
    for finder in list(sys.meta_path):
        if finder is not ours and hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


class _TellingLoader:
    """Stands in for a loader until the module has run, and leaves no trace on it."""

    def __init__(self, loader: "Loader") -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def exec_module(self, module: "ModuleType") -> None:
        """Run the module under its own loader, then register with it."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _tell(module)


def _tell(module: "ModuleType") -> None:
    """Hand the module to the registry; whatever fails here must not break the user's program."""
    try:
        from style_overlap import registry

        getattr(registry, HOOKS[module.__name__])(module)
    except Exception as error:
        _warn_once(module.__name__, error)


def _warn_once(name: str, error: Exception) -> None:
    global _warned
    if not _warned and sys.stderr is not None:
        _warned = True
        print(
            f"style-overlap: its tasks and model are not available, because registering them with "
            f"{name} failed ({type(error).__name__}: {error}). Reinstall style-overlap, or set "
            f"STYLE_OVERLAP_BRIDGE=0 to do without it.",
            file=sys.stderr,
        )
