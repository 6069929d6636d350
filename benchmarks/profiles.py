"""Where the time goes: a profile of one work, told by package and by function."""

from __future__ import annotations

import builtins
import cProfile
import pstats
import re
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STDLIB = Path(sysconfig.get_paths()["stdlib"])
_BUILTIN = re.compile(r"<built-in method ([\w.]+?)\.\w+>|<method '\w+' of '([\w.]+)'")


def profiled(work: Callable[[Any], Any], argument: Any) -> tuple[Any, dict[str, float]]:
    """What the work returns, and the seconds that every function spent itself."""
    profile = cProfile.Profile()
    found = profile.runcall(work, argument)
    return found, own_seconds(pstats.Stats(profile))


def own_seconds(stats: pstats.Stats) -> dict[str, float]:
    """Seconds of every function without those it calls, by ``package: function``."""
    found: dict[str, float] = {}
    for (file, line, function), row in stats.stats.items():  # type: ignore[attr-defined]
        package = package_of(file, function)
        place = f" ({Path(file).name}:{line})" if line else ""
        name = f"{package}: {function}{place}"
        found[name] = found.get(name, 0.0) + row[2]
    return found


def package_of(file: str, function: str) -> str:
    """Who wrote a function: a package, ``python`` for its own library."""
    path = Path(file)
    if file == "~":
        match = _BUILTIN.search(function)
        owner = ((match[1] or match[2]) if match else "").split(".")[0]
        if "torch" in function:
            return "torch"
        own = not owner or owner in sys.stdlib_module_names or hasattr(builtins, owner)
        return "python" if own else owner
    parts = path.parts
    if "site-packages" in parts:
        return Path(parts[parts.index("site-packages") + 1]).stem
    for own in ("style_overlap", "benchmarks"):
        if own in parts:
            return own
    return "python" if path.is_relative_to(_STDLIB) or file.startswith("<") else path.stem


def by_package(own: dict[str, float]) -> list[tuple[str, float]]:
    """Seconds of every package, most first."""
    found: dict[str, float] = {}
    for name, seconds in own.items():
        package = name.partition(":")[0]
        found[package] = found.get(package, 0.0) + seconds
    return sorted(found.items(), key=lambda item: -item[1])


def listing(own: dict[str, float], top: int = 12) -> list[str]:
    """A profile as lines of Markdown: shares of the packages, then the functions with most."""
    total = sum(own.values()) or 1.0
    shares = ", ".join(
        f"{package} {100 * seconds / total:.0f} %"
        for package, seconds in by_package(own)
        if seconds / total >= 0.01
    )
    rows = sorted(own.items(), key=lambda item: -item[1])[:top]
    return [
        f"{total:.1f} s under the profiler, by who wrote the code: {shares}.",
        "",
        "| seconds | share | function, without what it calls |",
        "| ---: | ---: | --- |",
        *(f"| {s:.2f} | {100 * s / total:.0f} % | `{name}` |" for name, s in rows),
    ]
