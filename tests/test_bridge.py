"""The import hook, against a stand-in for lm-eval, in fresh interpreters that read no .pth file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BRIDGE = Path(__file__).parents[1] / "bridge"

HARNESS = {
    "lm_eval/__init__.py": "",
    "lm_eval/models/__init__.py": "ready = True",
    "lm_eval/tasks/__init__.py": "from lm_eval.tasks.manager import ready",
    "lm_eval/tasks/manager.py": "ready = True",
}
REGISTRY = """
seen = []
def models_loaded(module): seen.append((module.__name__, module.ready))
def tasks_loaded(module): seen.append((module.__name__, module.ready))
"""
FINDERS = "print([type(f).__name__ for f in sys.meta_path if hasattr(f, '_asking')])"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a stand-in for lm-eval and a style_overlap that notes what it is shown."""
    files = {**HARNESS, "style_overlap/__init__.py": "", "style_overlap/registry.py": REGISTRY}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(site: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    start = (BRIDGE / "style_overlap_bridge.pth").read_text()
    prepare = f"import sys; sys.path[:0] = [{str(site)!r}, {str(BRIDGE)!r}]\n{start}"
    clean = {k: v for k, v in os.environ.items() if k != "STYLE_OVERLAP_BRIDGE"}
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", prepare + code],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def output(site: Path, code: str, **environment: str) -> str:
    """What the code printed; it must neither fail nor say anything on stderr."""
    done = run(site, code, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_each_module_is_handed_over_after_it_has_run(site: Path) -> None:
    code = """
import lm_eval.tasks, lm_eval.models
from style_overlap.registry import seen
print(seen)
"""
    assert output(site, code) == "[('lm_eval.tasks', True), ('lm_eval.models', True)]\n"


def test_the_package_is_imported_with_the_harness_and_not_before(site: Path) -> None:
    code = """
import lm_eval, json
print("style_overlap" in sys.modules)
import lm_eval.models
print("style_overlap" in sys.modules)
"""
    assert output(site, code) == "False\nTrue\n"


def test_start_up_loads_one_module_and_no_other(site: Path) -> None:
    bare = [sys.executable, "-I", "-S", "-c", "import sys; print(*sorted(sys.modules), sep='\\n')"]
    before = subprocess.run(bare, capture_output=True, text=True, check=True).stdout.split()
    after = output(site, "print(*sys.modules, sep='\\n')").split()
    # Without -S Python has loaded os by itself, and so everything that os needs.
    with_os = [*bare[:-1], bare[-1].replace("import sys", "import sys, os")]
    before += subprocess.run(with_os, capture_output=True, text=True, check=True).stdout.split()
    assert set(after) - set(before) == {"style_overlap_bridge"}


def test_reloading_the_harness_registers_again(site: Path) -> None:
    code = """
import importlib, lm_eval.tasks
importlib.reload(lm_eval.tasks)
from style_overlap.registry import seen
print(len(seen))
"""
    assert output(site, code) == "2\n"


def test_the_hooked_module_keeps_its_own_loader(site: Path) -> None:
    code = """
import inspect, lm_eval.models as m
print(type(m.__loader__).__name__, m.__spec__.loader is m.__loader__)
print(inspect.getsource(m).strip())
"""
    assert output(site, code) == "SourceFileLoader True\nready = True\n"


def test_the_pth_and_the_start_file_together_install_one_finder(site: Path) -> None:
    entry = (BRIDGE / "style_overlap_bridge.start").read_text().strip()
    code = f"""
import importlib, pkgutil
pkgutil.resolve_name({entry!r})()
importlib.reload(style_overlap_bridge).install()
"""
    assert output(site, code + FINDERS) == "['Finder']\n"


@pytest.mark.parametrize("value", ["0", "off", "False", "no"])
def test_the_environment_switches_it_off(site: Path, value: str) -> None:
    code = """
import lm_eval.tasks, lm_eval.models
print("style_overlap" in sys.modules)
"""
    assert output(site, code + FINDERS, STYLE_OVERLAP_BRIDGE=value) == "False\n[]\n"


@pytest.mark.parametrize("value", ["", "1", "on"])
def test_other_values_leave_it_on(site: Path, value: str) -> None:
    assert output(site, FINDERS, STYLE_OVERLAP_BRIDGE=value) == "['Finder']\n"


BREAKAGES = {
    "hook raises": ("style_overlap/registry.py", "def models_loaded(m): 1 / 0"),
    "registry does not compile": ("style_overlap/registry.py", "def"),
    "registry is gone": ("style_overlap/registry.py", None),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_failing_hook_warns_once_and_breaks_nothing(site: Path, breakage: str) -> None:
    name, text = BREAKAGES[breakage]
    (site / name).unlink()
    if text is not None:
        (site / name).write_text(text)

    done = run(site, "import lm_eval.tasks, lm_eval.models; print(lm_eval.models.ready)")

    assert (done.returncode, done.stdout) == (0, "True\n")
    assert done.stderr.count("style-overlap: its tasks and model are not available") == 1
    assert len(done.stderr.splitlines()) == 1
    assert "STYLE_OVERLAP_BRIDGE=0" in done.stderr


def test_a_package_that_is_gone_warns_once_and_breaks_nothing(site: Path) -> None:
    (site / "style_overlap").rename(site / "elsewhere")
    done = run(site, "import lm_eval.tasks, lm_eval.models; print(lm_eval.models.ready)")
    assert (done.returncode, done.stdout) == (0, "True\n")
    assert len(done.stderr.splitlines()) == 1


def test_no_harness_is_an_ordinary_import_error(site: Path) -> None:
    (site / "lm_eval" / "models" / "__init__.py").unlink()
    (site / "lm_eval" / "models").rmdir()
    done = run(site, "import lm_eval.models")
    assert done.returncode == 1
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'lm_eval.models'\n")
    assert "style" not in done.stderr.splitlines()[-1]


def test_an_error_inside_the_harness_reaches_the_user_unchanged(site: Path) -> None:
    (site / "lm_eval" / "models" / "__init__.py").write_text("raise OSError('no models today')")
    done = run(site, "import lm_eval.models")
    assert done.returncode == 1
    assert done.stderr.endswith("OSError: no models today\n")


@pytest.mark.parametrize("position", [0, 1])
def test_another_hook_that_asks_every_finder_makes_no_loop(site: Path, position: int) -> None:
    code = f"""
class Curious:
    def find_spec(self, name, path=None, target=None):
        for finder in sys.meta_path:
            if finder is not self:
                spec = finder.find_spec(name, path, target)
                if spec: return spec
sys.meta_path.insert({position}, Curious())
import lm_eval.tasks
from style_overlap.registry import seen
print(sorted(set(seen)))
"""
    assert output(site, code) == "[('lm_eval.tasks', True)]\n"
