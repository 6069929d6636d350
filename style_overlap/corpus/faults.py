"""Bad rows of a file, gathered and told all at once: file, row, column, a count, the first five."""

from __future__ import annotations

from dataclasses import dataclass, field

from style_overlap.errors import UsageError

SHOWN = 5


@dataclass
class Faults:
    """What is wrong with the rows of one file.

    Attributes:
        file: its name, for the message.
        found: kind of fault -> the first few of them as (row, message).
        counts: how many there are of each kind.
        advice: kind of fault -> what to do about it.
    """

    file: str
    found: dict[str, list[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    advice: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, row: int, column: str, what: str, advice: str = "") -> None:
        """Take note of one fault; only the first few of a kind are kept."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if advice:
            self.advice[kind] = advice
        shown = self.found.setdefault(kind, [])
        if len(shown) < SHOWN:
            shown.append(f"row {row}, column {column!r}: {what}")

    def more(self, kind: str, count: int) -> None:
        """Say how many there are of a kind of which only the first were added."""
        self.counts[kind] = count

    def stop(self) -> None:
        """Raise if anything is wrong.

        Raises:
            UsageError: with the count of each kind of fault and the first five of them.
        """
        if not self.counts:
            return
        lines = []
        for kind, count in self.counts.items():
            shown = self.found.get(kind, [])
            number = f"{count}, the first {len(shown)}" if count > len(shown) else str(count)
            lines.append(f"{self.file}: {kind} ({number}):")
            lines += [f"  {line}" for line in shown]
            if kind in self.advice:
                lines.append(f"  {self.advice[kind]}")
        raise UsageError("\n".join(lines))
