"""Fresh virtual environments with style-overlap installed, made offline and in a second or two.

The dependencies come from the environment that runs the tests, through a folder of links: every
package but style-overlap itself, so that what a test sees of us is what it installed. The
linked lm-eval lacks most of its 14,000 task files, which are 7 s of every ``lm_eval`` command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]

KEPT_TASKS = {"arc", "hellaswag"}
"""The built-in task folders that the trimmed lm-eval has."""

COMMAND = """#!{python}
import sys
from lm_eval.__main__ import cli_evaluate
if __name__ == "__main__":
    sys.exit(cli_evaluate())
"""


@dataclass(frozen=True)
class Installation:
    """A virtual environment. ``extra_path`` comes before its own packages, as PYTHONPATH does."""

    root: Path
    extra_path: tuple[Path, ...] = ()

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def packages(self) -> Path:
        return next((self.root / "lib").glob("python*/site-packages"))

    def run(
        self, *command: str | Path, cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of this environment (``python``, ``lm_eval``) from a neutral folder."""
        unwanted = ("PYTHONPATH", "STYLE_OVERLAP_BRIDGE", "VIRTUAL_ENV")
        clean = {name: value for name, value in os.environ.items() if name not in unwanted}
        if self.extra_path:
            clean["PYTHONPATH"] = os.pathsep.join(map(str, self.extra_path))
        return subprocess.run(
            [str(self.bin / command[0]), *map(str, command[1:])],
            env={**clean, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **environment},
            cwd=cwd or self.root,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def python(self, code: str, **environment: str) -> str:
        """What the code printed; its last line if lm-eval printed too."""
        done = self.run("python", "-c", code, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().rpartition("\n")[2]

    def pip(self, *arguments: str | Path) -> None:
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", self.bin / "python", *arguments],
            check=True,
            capture_output=True,
            timeout=300,
        )


def create(root: Path, dependencies: Path | None) -> Installation:
    """An empty virtual environment with an ``lm_eval`` command, if there are dependencies."""
    venv.create(root, symlinks=True)
    made = Installation(root)
    if dependencies is not None:
        # A path line: .pth files inside that folder are not read.
        (made.packages / "dependencies.pth").write_text(f"{dependencies}\n")
        for name in ("lm_eval", "lm-eval"):
            (made.bin / name).write_text(COMMAND.format(python=made.bin / "python"))
            (made.bin / name).chmod(0o755)
    return made


def link_dependencies(folder: Path) -> Path:
    """Link everything installed beside the running tests, except style-overlap."""
    folder.mkdir()
    for place in map(Path, sys.path):
        if place.name not in ("site-packages", "dist-packages"):
            continue
        for entry in place.iterdir():
            ours = entry.name.lstrip("_").startswith("style_overlap") or entry.suffix == ".pth"
            link = folder / entry.name
            if not ours and entry.name not in ("lm_eval", "__pycache__") and not link.exists():
                link.symlink_to(entry)
    spec = find_spec("lm_eval")
    assert spec is not None
    assert spec.origin is not None
    link_harness(Path(spec.origin).parent, folder)
    return folder


def link_harness(package: Path, folder: Path) -> None:
    """Link the package ``lm_eval``, with the tasks in ``KEPT_TASKS`` alone."""
    trimmed = folder / "lm_eval"
    (trimmed / "tasks").mkdir(parents=True)
    for entry in package.iterdir():
        if entry.name != "tasks":
            (trimmed / entry.name).symlink_to(entry)
    for entry in (package / "tasks").iterdir():
        if entry.suffix == ".py":
            (trimmed / "tasks" / entry.name).symlink_to(entry)
        elif entry.name in KEPT_TASKS:
            # The harness' glob enters no linked folder.
            shutil.copytree(entry, trimmed / "tasks" / entry.name)
