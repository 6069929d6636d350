"""What lm-eval is told, and when it is told nothing; a stand-in plays its TaskManager."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from style_overlap import registry
from style_overlap.registry import MODELS, register_models, register_tasks
from style_overlap.tasks.style_overlap.files import FOLDER as TASKS

ENTRY_POINTS = {
    "lm_eval.models": metadata.EntryPoint(
        "style-encoder", "style_overlap.lm:StyleEncoderLM", "lm_eval.models"
    ),
    "lm_eval.tasks": metadata.EntryPoint(
        "style_overlap", "style_overlap.tasks.style_overlap", "lm_eval.tasks"
    ),
}


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def tasks() -> ModuleType:
    """A stand-in for ``lm_eval.tasks``; its TaskManager notes which paths it would read."""

    class TaskManager:
        def __init__(
            self,
            verbosity: str | None = None,
            include_path: Any = None,
            include_defaults: bool = True,
            metadata: dict[str, Any] | None = None,
        ) -> None:
            self.read = include_path
            self.include_path = include_path
            self.metadata = metadata

    module = ModuleType("lm_eval_tasks_stand_in")
    module.TaskManager = TaskManager  # type: ignore[attr-defined]
    return module


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry points can be found, as after an installation."""
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: [ENTRY_POINTS[group]])


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry points, as in a checkout that is only on PYTHONPATH."""
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: [])


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, [TASKS]),
        ("", [TASKS]),
        ([], [TASKS]),
        ("mine", [TASKS, "mine"]),
        (Path("mine"), [TASKS, Path("mine")]),
        (["mine", Path("yours")], [TASKS, "mine", Path("yours")]),
        (("mine",), [TASKS, "mine"]),
    ],
)
def test_our_folder_is_read_before_the_users(tasks: ModuleType, given: Any, read: Any) -> None:
    register_tasks(tasks)
    manager = tasks.TaskManager(include_path=given)
    assert manager.read == read
    assert manager.include_path == given


def test_positional_arguments_keep_their_places(tasks: ModuleType) -> None:
    register_tasks(tasks)
    manager = tasks.TaskManager(None, "mine", True, {"seed": 1})
    assert (manager.read, manager.metadata) == ([TASKS, "mine"], {"seed": 1})


def test_a_manager_without_defaults_is_left_alone(tasks: ModuleType) -> None:
    register_tasks(tasks)
    assert tasks.TaskManager(include_defaults=False).read is None
    assert tasks.TaskManager(include_defaults=False, include_path="mine").read == "mine"


@pytest.mark.parametrize("folder", [TASKS, TASKS.parent, str(TASKS)])
def test_our_folder_given_by_the_user_is_read_once(tasks: ModuleType, folder: Any) -> None:
    register_tasks(tasks)
    assert tasks.TaskManager(include_path=[folder]).read == [folder]


def test_registering_twice_wraps_once(tasks: ModuleType) -> None:
    register_tasks(tasks)
    once = tasks.TaskManager.__init__
    register_tasks(tasks)
    assert tasks.TaskManager.__init__ is once
    assert tasks.TaskManager().read == [TASKS]


def test_registering_after_a_reload_adds_the_folder_once(tasks: ModuleType) -> None:
    register_tasks(tasks)
    importlib.reload(registry).register_tasks(tasks)
    assert tasks.TaskManager().read == [TASKS]


def test_wrong_arguments_are_the_harness_own_error(tasks: ModuleType) -> None:
    register_tasks(tasks)
    with pytest.raises(TypeError, match="unexpected keyword argument 'include_paths'"):
        tasks.TaskManager(include_paths="mine")


def test_a_task_manager_of_another_kind_is_refused(tasks: ModuleType) -> None:
    tasks.TaskManager.__init__ = lambda self, folders=(): None
    with pytest.raises(TypeError, match="no include_path"):
        register_tasks(tasks)


@pytest.mark.usefixtures("installed")
def test_tasks_are_left_to_a_harness_that_discovers_them(tasks: ModuleType) -> None:
    tasks.discover_plugin_task_paths = list  # type: ignore[attr-defined]
    register_tasks(tasks)
    assert tasks.TaskManager().read is None


@pytest.mark.usefixtures("installed")
def test_discovery_may_live_beside_the_task_manager(
    tasks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ModuleType("lm_eval_tasks_manager_stand_in")
    home.discover_plugin_task_paths = list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, home.__name__, home)
    tasks.TaskManager.__module__ = home.__name__
    register_tasks(tasks)
    assert tasks.TaskManager().read is None


@pytest.mark.usefixtures("bare")
def test_a_checkout_that_no_discovery_can_see_still_registers_its_tasks(tasks: ModuleType) -> None:
    tasks.discover_plugin_task_paths = list  # type: ignore[attr-defined]
    register_tasks(tasks)
    assert tasks.TaskManager().read == [TASKS]


@pytest.fixture
def models() -> Iterator[Any]:
    """lm-eval's registry module, without our model until the test registers it."""
    import lm_eval.models  # noqa: F401
    from lm_eval.api import registry as harness

    before = dict(harness.model_registry._objs)
    for name in MODELS:
        harness.model_registry._objs.pop(name, None)
    yield harness
    harness.model_registry._objs.clear()
    harness.model_registry._objs.update(before)


def test_the_model_is_registered_by_name_beside_the_built_in_ones(models: Any) -> None:
    from lm_eval.models import MODEL_MAPPING

    register_models()
    register_models()
    assert set(models.model_registry) >= {"hf", "style-encoder", *MODEL_MAPPING}
    assert models.model_registry._objs["style-encoder"] == "style_overlap.lm:StyleEncoderLM"


def test_a_model_that_is_already_imported_stays(models: Any) -> None:
    class StyleEncoderLM:
        """What lm-eval puts in place of the name once the model has been asked for."""

    models.model_registry._objs["style-encoder"] = StyleEncoderLM
    register_models()
    assert models.model_registry._objs["style-encoder"] is StyleEncoderLM


def test_registering_the_model_first_does_not_hide_the_built_in_ones() -> None:
    code = """
from style_overlap.registry import register_models
register_models()
from lm_eval.api.registry import model_registry
print("hf" in model_registry, "style-encoder" in model_registry)
"""
    assert python(code, STYLE_OVERLAP_BRIDGE="0").stdout == "True True\n"


@pytest.mark.usefixtures("installed")
def test_models_are_left_to_a_harness_that_discovers_them(
    models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "load_plugins", lambda group, registry: [], raising=False)
    register_models()
    assert "style-encoder" not in models.model_registry


@pytest.mark.usefixtures("bare")
def test_a_checkout_that_no_discovery_can_see_still_registers_its_model(
    models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "load_plugins", lambda group, registry: [], raising=False)
    register_models()
    assert "style-encoder" in models.model_registry


@pytest.mark.usefixtures("installed")
def test_a_harness_that_discovers_models_alone_is_still_told_of_the_tasks(
    models: Any, tasks: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "load_plugins", lambda group, registry: [], raising=False)
    registry.models_loaded(ModuleType("lm_eval.models"))
    registry.tasks_loaded(tasks)
    assert "style-encoder" not in models.model_registry
    assert tasks.TaskManager().read == [TASKS]


def test_importing_the_registry_loads_neither_the_harness_nor_torch() -> None:
    code = "import sys, style_overlap.registry; print({'lm_eval', 'torch'} & {*sys.modules})"
    assert python(code).stdout == "set()\n"


COMMANDS = [
    "/venv/bin/lm_eval",
    "/venv/bin/lm-eval",
    "/venv/lib/site-packages/lm_eval/__main__.py",
    "/venv/Scripts/lm_eval.exe",
    "/venv/Scripts/lm-eval-script.py",
]
SCRIPTS = ["", "-c", "my_eval.py", "/somewhere/ipykernel_launcher.py", "/elsewhere/__main__.py"]

BAD_INPUT = """
import sys
sys.argv = [{argv0!r}, "run"]
from types import ModuleType
from style_overlap import registry
from style_overlap.errors import UsageError
sys.excepthook = lambda kind, error, traceback: print("previous:", error)
registry.models_loaded(ModuleType("lm_eval.models"))
once = sys.excepthook
registry.models_loaded(ModuleType("lm_eval.models"))
assert sys.excepthook is once
raise {error}
"""


@pytest.mark.parametrize("argv0", COMMANDS)
def test_in_the_harness_command_bad_input_is_one_line_and_exit_status_2(argv0: str) -> None:
    done = python(BAD_INPUT.format(argv0=argv0, error="UsageError('alpha is 2')"))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: alpha is 2\n")


def test_in_the_harness_command_other_errors_go_to_the_previous_hook() -> None:
    done = python(BAD_INPUT.format(argv0=COMMANDS[0], error="ValueError('not ours')"))
    assert (done.returncode, done.stdout, done.stderr) == (1, "previous: not ours\n", "")


@pytest.mark.parametrize("argv0", SCRIPTS)
def test_in_a_script_bad_input_stays_an_exception(argv0: str) -> None:
    done = python(BAD_INPUT.format(argv0=argv0, error="UsageError('alpha is 2')"))
    assert (done.returncode, done.stdout) == (1, "previous: alpha is 2\n")
