"""A fine-tuning in a process of its own, which the tests start, kill and share out.

python train_run.py '{"model": ..., "k": 2, ...}' [--kill-at STEP] [--wait-at STEP FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from conftest import make_corpus
from style_overlap.errors import UsageError
from style_overlap.trainers.classifier import TrainSettings, train


def command(settings: TrainSettings, *options: object) -> list[str]:
    """The command line of a fine-tuning."""
    given = {**settings.__dict__, "output": str(settings.output)}
    return [sys.executable, __file__, json.dumps(given), *map(str, options)]


def run(settings: TrainSettings, *options: object) -> subprocess.CompletedProcess[str]:
    """Fine-tune in another process."""
    return subprocess.run(command(settings, *options), capture_output=True, text=True, timeout=120)


class Interruption(TrainerCallback):
    """Ends the process at a step, as the system's out-of-memory killer would, or holds it there."""

    def __init__(self, kill_at: int | None, wait_at: int | None, ready: Path | None) -> None:
        self.kill_at, self.wait_at, self.ready = kill_at, wait_at, ready

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        step = state.global_step + 1
        if step == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if step == self.wait_at and self.ready is not None:
            self.ready.touch()
            while self.ready.exists():
                time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("settings", type=json.loads)
    parser.add_argument("--kill-at", type=int)
    parser.add_argument("--wait-at", type=int)
    parser.add_argument("--ready", type=Path)
    given = parser.parse_args()
    callback = Interruption(given.kill_at, given.wait_at, given.ready)
    output = Path(given.settings.pop("output"))
    try:
        result = train(
            TrainSettings(**given.settings, output=output),
            corpus=make_corpus(200),
            callbacks=[callback],
        )
    except UsageError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    if result.first:
        print(result.summary())


if __name__ == "__main__":
    main()
