"""The literal ``lm_eval`` command, in fresh environments that style-overlap was installed into."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import installations
from installations import ROOT, Installation
from style_overlap.names import ALPHAS, KS, task_name

pytestmark = pytest.mark.slow

TASKS = [task_name(k, alpha) for k in KS for alpha in ALPHAS]
K3 = [task_name(3, alpha) for alpha in ALPHAS]
BRIDGE_FILES = {f"style_overlap_bridge{suffix}" for suffix in (".py", ".pth", ".start")}


@pytest.fixture(scope="session")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installations.link_dependencies(tmp_path_factory.mktemp("dependencies") / "packages")


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="session")
def from_wheel(
    tmp_path_factory: pytest.TempPathFactory, dependencies: Path, wheel: Path
) -> Installation:
    made = installations.create(tmp_path_factory.mktemp("wheel") / "venv", dependencies)
    made.pip("install", "--no-deps", wheel)
    return made


@pytest.fixture(scope="session")
def editable(tmp_path_factory: pytest.TempPathFactory, dependencies: Path) -> Installation:
    made = installations.create(tmp_path_factory.mktemp("editable") / "venv", dependencies)
    made.pip("install", "--no-deps", "--no-build-isolation", "--editable", ROOT)
    return made


@pytest.fixture(scope="session", params=["wheel", "editable"])
def installed(request: pytest.FixtureRequest) -> Installation:
    fixture = {"wheel": "from_wheel", "editable": "editable"}[request.param]
    made: Installation = request.getfixturevalue(fixture)
    home = made.packages if request.param == "wheel" else ROOT
    # Otherwise the tests below would be about some other copy of us.
    assert made.python("import style_overlap as s; print(s.__file__)") == str(
        home / "style_overlap" / "__init__.py"
    )
    assert made.python("import style_overlap_bridge as b; print(b.__file__)") == str(
        made.packages / "style_overlap_bridge.py"
    )
    return made


def test_sdist_and_wheel_carry_the_bridge_and_the_tasks(dist: Path, wheel: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as sdist:
        in_sdist = {name.partition("/")[2] for name in sdist.getnames()}
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    yaml = {f"style_overlap/tasks/style_overlap/{task}.yaml" for task in TASKS}
    assert in_sdist >= {f"bridge/{name}" for name in BRIDGE_FILES} | yaml
    assert in_wheel >= BRIDGE_FILES | yaml
    assert {name for name in in_wheel if "/" not in name} == BRIDGE_FILES


def test_entry_points_are_those_that_lm_eval_will_read(from_wheel: Installation) -> None:
    code = """
import json
from importlib.metadata import distribution
print(json.dumps(sorted(
    [entry.group, entry.name, entry.value]
    for entry in distribution("style-overlap").entry_points if entry.group.startswith("lm_eval")
)))
"""
    assert json.loads(from_wheel.python(code)) == [
        ["lm_eval.models", "style-encoder", "style_overlap.lm:StyleEncoderLM"],
        ["lm_eval.tasks", "style_overlap", "style_overlap.tasks.style_overlap"],
    ]


def test_ls_tasks_lists_ours_beside_the_built_in_ones(installed: Installation) -> None:
    done = installed.run("lm_eval", "ls", "tasks")
    assert done.returncode == 0
    listed = {line.split("|")[1].strip() for line in done.stdout.splitlines() if "|" in line}
    assert listed >= {*TASKS, *(f"style_overlap_k{k}" for k in KS), "arc_easy", "hellaswag"}
    assert "style-overlap" not in done.stderr


def test_validate_knows_a_task_by_name(installed: Installation) -> None:
    done = installed.run("lm-eval", "validate", "--tasks", "style_overlap_k3_a0.4,arc_easy")
    assert (done.returncode, done.stderr) == (0, "")
    assert "All tasks found and valid" in done.stdout


def test_the_model_is_known_beside_the_built_in_ones(installed: Installation) -> None:
    code = """
from lm_eval.api.registry import get_model, model_registry
get_model("dummy")
from lm_eval.models import MODEL_MAPPING
print(sorted(set(model_registry) - set(MODEL_MAPPING)), set(MODEL_MAPPING) <= set(model_registry))
"""
    assert installed.python(code) == "['style-encoder'] True"


def test_the_environment_switches_the_bridge_off(from_wheel: Installation) -> None:
    off = {"STYLE_OVERLAP_BRIDGE": "0"}
    done = from_wheel.run("lm_eval", "validate", "--tasks", "arc_easy,style_overlap_k3_a0.4", **off)
    assert done.returncode == 1
    assert "Tasks not found: style_overlap_k3_a0.4" in done.stdout
    models = "import lm_eval.models; from lm_eval.api.registry import model_registry as m"
    assert from_wheel.python(f"{models}; print('style-encoder' in m, 'hf' in m)", **off) == (
        "False True"
    )


@pytest.mark.case(21)
def test_globs_and_dotted_names_select_exactly_their_tasks(
    from_wheel: Installation, tmp_path: Path
) -> None:
    """Also with a folder of a task's name in the working directory."""
    (tmp_path / "style_overlap_k3_a0.4").mkdir()
    code = """
import json, sys
from lm_eval.config.evaluate_config import EvaluatorConfig
chosen = []
for tasks in json.loads(sys.argv[1]):
    config = EvaluatorConfig(tasks=tasks)
    config.process_tasks()
    chosen.append(config.tasks)
print(json.dumps(chosen))
"""
    asked = {
        "style_overlap_k3_a0.4": ["style_overlap_k3_a0.4"],
        "style_overlap_k3_*": K3,
        "style_overlap_k3_a0.*": K3[:-1],
        "style_overlap_k?_a0.4": [task_name(k, "0.4") for k in KS],
        "style_overlap_k3_a0.4,style_overlap_k2_a1.0": [
            "style_overlap_k3_a0.4",
            "style_overlap_k2_a1.0",
        ],
    }
    done = from_wheel.run("python", "-c", code, json.dumps([[a] for a in asked]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == list(asked.values())


def test_include_path_wins_and_include_defaults_false_leaves_ours_out(
    from_wheel: Installation, tmp_path: Path
) -> None:
    mine = tmp_path / "mine" / "task.yaml"
    mine.parent.mkdir()
    mine.write_text("task: style_overlap_k3_a0.4\ndataset_path: x\noutput_type: multiple_choice\n")
    code = f"""
import json
from pathlib import Path
from lm_eval.tasks import TaskManager
mine = {str(mine.parent)!r}
where = [
    str(TaskManager(include_path=given).task_index["style_overlap_k3_a0.4"].yaml_path)
    for given in (mine, Path(mine), [mine], (Path(mine),))
]
print(json.dumps([where, TaskManager(mine).include_path, TaskManager(include_path=mine,
    include_defaults=False).all_tasks, TaskManager(include_defaults=False).all_tasks]))
"""
    where, _, alone, nothing = json.loads(from_wheel.python(code))
    assert where == [str(mine)] * 4
    assert alone == ["style_overlap_k3_a0.4"]
    assert nothing == []


BAD_TASK = """
task: {name}
custom_dataset: !function bad.load
output_type: multiple_choice
test_split: test
"""
BAD_LOADER = """
from style_overlap.errors import UsageError
def load(**_):
    raise UsageError("alpha is 2: expected a number from 0 to 1, for example 0.4")
"""


@pytest.fixture
def bad_task(tmp_path: Path) -> Path:
    """A folder with a task whose data set refuses its settings."""
    (tmp_path / "bad.yaml").write_text(BAD_TASK.format(name="bad"))
    (tmp_path / "bad.py").write_text(BAD_LOADER)
    return tmp_path


@pytest.mark.parametrize("command", [["lm_eval"], ["python", "-m", "lm_eval"]])
def test_bad_input_is_one_line_and_exit_status_2(
    from_wheel: Installation, bad_task: Path, command: list[str]
) -> None:
    options = ["run", "--model", "dummy", "--tasks", "bad", "--include_path", str(bad_task)]
    done = from_wheel.run(*command, *options)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "error: alpha is 2: expected a number from 0 to 1, for example 0.4"
    )
    assert "Traceback" not in done.stderr


def test_a_harness_that_reads_entry_points_gets_no_second_copy(from_wheel: Installation) -> None:
    """lm-eval with discovery of its own, played by its attributes' names in their real places."""
    code = """
import sys, types
import lm_eval.api.registry as harness
harness.load_plugins = lambda group, registry: []
import lm_eval.tasks.manager as manager  # has run lm_eval.tasks by now: run it again
before = manager.TaskManager.__init__.__wrapped__
manager.TaskManager.__init__ = before
manager.discover_plugin_task_paths = list
import importlib, lm_eval.tasks, lm_eval.models
importlib.reload(lm_eval.tasks)
print(manager.TaskManager.__init__ is before, "style-encoder" in harness.model_registry)
"""
    assert from_wheel.python(code) == "True False"


def test_run_harness_needs_neither_installation_nor_site(
    tmp_path: Path, dependencies: Path
) -> None:
    plain = Installation(installations.create(tmp_path / "venv", None).root, (ROOT, dependencies))
    code = "import sys; from style_overlap.registry import run_harness; run_harness(sys.argv[1:])"
    for options, said in {
        ("validate", "--tasks", "style_overlap_k3_a0.4"): "All tasks found and valid",
        ("ls", "subtasks"): "style_overlap_k5_a1.0",
        ("--help",): "Language Model Evaluation Harness",
    }.items():
        done = plain.run("python", "-S", "-c", code, *options)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
    missing = plain.run("python", "-S", "-c", code, "validate", "--tasks", "no_such_task")
    assert missing.returncode == 1


def test_a_half_removed_package_costs_one_warning(
    tmp_path: Path, dependencies: Path, wheel: Path
) -> None:
    made = installations.create(tmp_path / "venv", dependencies)
    made.pip("install", "--no-deps", wheel)
    (made.packages / "style_overlap" / "registry.py").unlink()
    assert made.run("python", "-W", "error", "-c", "pass").stderr == ""
    done = made.run("lm_eval", "validate", "--tasks", "arc_easy")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert "style-overlap: its tasks and model are not available" in done.stderr


def test_uninstalling_leaves_nothing(tmp_path: Path, dependencies: Path, wheel: Path) -> None:
    made = installations.create(tmp_path / "venv", dependencies)
    before = {path.name for path in made.packages.iterdir()}
    made.pip("install", "--no-deps", wheel)
    assert {path.name for path in made.packages.iterdir()} > before | BRIDGE_FILES

    made.pip("uninstall", "--yes", "style-overlap")

    left = {path.name for path in made.packages.iterdir()} - {"__pycache__"}
    assert left == before
    assert not list(made.root.glob("**/*style_overlap*"))
    started = made.run("python", "-W", "error", "-c", "import sys; print(len(sys.meta_path))")
    assert (started.stdout, started.stderr) == ("3\n", "")
    done = made.run("lm_eval", "validate", "--tasks", "arc_easy,style_overlap_k3_a0.4")
    assert (done.returncode, done.stderr) == (1, "")
    assert "Tasks not found: style_overlap_k3_a0.4" in done.stdout


def test_the_oldest_harness_that_we_allow_knows_us_too(
    from_wheel: Installation, tmp_path: Path
) -> None:
    fetch = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "15", "download"]
    fetch += ["--quiet", "--no-deps", "--dest", tmp_path, "lm-eval==0.4.12"]
    try:
        subprocess.run(fetch, check=True, capture_output=True, timeout=120)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("lm-eval 0.4.12 is not to be had: no network")
    unpacked, trimmed = tmp_path / "unpacked", tmp_path / "trimmed"
    with zipfile.ZipFile(next(tmp_path.glob("lm_eval-0.4.12*.whl"))) as archive:
        archive.extractall(unpacked)
    installations.link_harness(unpacked / "lm_eval", trimmed)
    metadata = "lm_eval-0.4.12.dist-info"
    (trimmed / metadata).symlink_to(unpacked / metadata)
    older = Installation(from_wheel.root, (trimmed,))

    code = """
import lm_eval.models, lm_eval.tasks
from lm_eval.api.registry import model_registry
print(lm_eval.__version__, "style-encoder" in model_registry, "hf" in model_registry)
"""
    assert older.python(code) == "0.4.12 True True"
    done = older.run("lm_eval", "validate", "--tasks", "style_overlap_k3_a0.4,arc_easy")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_whole_harness_knows_our_tasks() -> None:
    """Here, with all 14,000 of its tasks, none of which has one of our names."""
    command = Path(sys.executable).with_name("lm_eval")
    done = subprocess.run(
        [command, "validate", "--tasks", "style_overlap_k3_a0.4,arc_easy"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0
    assert "style_overlap" not in done.stderr  # no task of ours overrides another
