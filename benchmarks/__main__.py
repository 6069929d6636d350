"""The command ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine, parts, profiles, section
from benchmarks.answers import DisagreementError
from benchmarks.runner import ContenderError

LEAST_ROUNDS = 3
FIGURE = "performance-growth.svg"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for, in a form that can be run.

    Raises:
        SystemExit: it cannot.
    """
    import benchmarks

    text = str(benchmarks.__doc__)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=text.splitlines()[0],
        epilog=f"On demand only: {', '.join(parts.ON_DEMAND)}.",
    )
    known = (*parts.PARTS, *parts.ON_DEMAND)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"some of {', '.join(known)}; without, the default"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--quick", action="store_true", help="tiny sizes, once: does it run? The times say nothing"
    )
    how.add_argument("--full", action="store_true", help="the goals' own sizes; takes hours")
    parser.add_argument(
        "--rounds", type=int, help="how often each contender runs, 3 or more; default 3"
    )
    parser.add_argument("--threads", type=int, default=machine.cores(), help="of every contender")
    parser.add_argument("--output", type=Path, help="page to put the tables into")
    parser.add_argument(
        "--profile", action="store_true", help="instead, show where ours spends its time"
    )
    asked = parser.parse_args(argv)
    for name in asked.parts:
        if name not in known:
            parser.error(f"there is no part {name!r}: choose from {', '.join(known)}")
    if asked.quick and asked.output:
        parser.error("--quick measures nothing that a page could tell: leave out one of the two")
    least = 1 if asked.quick else LEAST_ROUNDS
    if asked.rounds is not None and asked.rounds < least:
        parser.error(f"--rounds is {asked.rounds}: expected at least {least}")
    if asked.threads < 1:
        parser.error(f"--threads is {asked.threads}: expected at least 1")
    asked.parts = list(dict.fromkeys(asked.parts)) or list(parts.PARTS)
    if asked.output:
        try:  # ten minutes later would be late
            section.check(asked.output, [place(name, asked.profile) for name in asked.parts])
        except (OSError, ValueError) as error:
            parser.error(f"--output {asked.output}: {error}")
    asked.size = "quick" if asked.quick else "full" if asked.full else "standard"
    return asked


def place(name: str, profile: bool) -> str:
    """Where the result of a part stands on the page."""
    return f"profile {name}" if profile else name


def command_of(name: str, asked: argparse.Namespace) -> str:
    """What to type for this result."""
    words = ["python -m benchmarks", name]
    words += [f"--{asked.size}"] if asked.size != "standard" else []
    words += ["--rounds", str(asked.rounds)] if asked.rounds else []
    words += ["--threads", str(asked.threads)] if asked.threads != machine.cores() else []
    return " ".join([*words, *(["--profile"] if asked.profile else [])])


def measured(name: str, asked: argparse.Namespace, state: str) -> list[str]:
    """The result of one part as Markdown, below the command that made it."""
    part: Any = parts.load(name)
    size, others, started = part.SIZES[asked.size], machine.Neighbours(), time.perf_counter()
    rounds = asked.rounds or (1 if asked.quick else LEAST_ROUNDS)
    if asked.profile:
        lines = profiles.listing(part.profiled(size))
    elif name == "growth" and asked.output:
        lines = part.run(size, rounds, asked.output.with_name(FIGURE)).lines()
    else:
        lines = part.run(size, rounds).lines()
    took = time.perf_counter() - started
    warning = others.warning()
    times = "" if asked.profile else f", {rounds} round{'s' * (rounds > 1)}"
    return [
        f"`{command_of(name, asked)}`{times}, {took:.0f} s in all; {state}.",
        "",
        *lines,
        *(["", f"**Not to be trusted:** {warning}."] if warning else []),
    ]


show_at_once = partial(print, flush=True)


def main(argv: Sequence[str] | None = None, show: Callable[[str], None] = show_at_once) -> int:
    """Run the parts; 1 if contenders disagree or one broke down, after the others have run."""
    asked = parse(argv)
    machine.use_threads(asked.threads)
    about, state = machine.describe(asked.threads), machine.state()
    described = {} if asked.profile else {"machine": about}
    show("\n".join(about))
    failed, started = [], time.perf_counter()
    for name in asked.parts:
        show(f"\n## {parts.load(name).TITLE}\n")
        try:
            lines = measured(name, asked, state)
        except (DisagreementError, ContenderError) as error:
            failed.append(name)
            print(f"FAILED {name}: {error}", file=sys.stderr, flush=True)
            continue
        show("\n".join(lines))
        if asked.output:
            section.write(asked.output, {**described, place(name, asked.profile): lines})
            show(f"\nwritten to {asked.output}")
    show(f"\n{len(asked.parts)} parts in {time.perf_counter() - started:.0f} s")
    if failed:
        print(f"FAILED: {', '.join(failed)}; no figures of these", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
