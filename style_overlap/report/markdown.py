"""The report as Markdown, with its figures beside it."""

from __future__ import annotations

from pathlib import Path

from style_overlap.report import figures
from style_overlap.report.matrix import Matrices, Matrix, advantages, rows
from style_overlap.results import versions, write_text


def write(matrices: Matrices, output: Path, command: str) -> Path:
    """Write ``report.md`` and its figures; returns the report's path.

    Args:
        matrices: what to report.
        output: folder, made if it does not exist.
        command: what the reader types to make the report again.
    """
    parts = ["# Cross-overlap evaluation", ""]
    for number, matrix in enumerate(matrices.matrices, start=1):
        name = f"matrix_{number}_k{matrix.k}"
        figures.save(figures.heat_map(matrix), output / name)
        parts += _section(matrix, f"{name}.svg")
    if matrices.left_out:
        parts += ["## Left out", ""]
        parts += [f"- `{path}`: {reason}" for path, reason in sorted(matrices.left_out.items())]
        parts.append("")
    installed = ", ".join(f"{name} {version}" for name, version in versions().items())
    parts += ["## Made by", "", f"    {command}", "", f"with {installed}.", ""]
    path = output / "report.md"
    write_text(path, "\n".join(parts))
    return path


def _section(matrix: Matrix, picture: str) -> list[str]:
    seeds = ", ".join(map(str, matrix.seeds))
    parts = [
        f"## {matrix.encoder}, k={matrix.k} ({', '.join(matrix.styles)})",
        "",
        f"Accuracy in percent on the test split of every content overlap; seeds {seeds}"
        + (" (mean ± standard deviation)." if len(matrix.seeds) > 1 else "."),
        "",
        f"| alpha_train | {' | '.join(f'eval {a}' for a in matrix.alphas_eval)} |",
        "|" + " --- |" * (len(matrix.alphas_eval) + 1),
    ]
    for alpha, cells in rows(matrix):
        parts.append(f"| **{alpha}** | {' | '.join(cells)} |")
    parts += ["", f"![Accuracy by alpha_train and alpha_eval]({picture})", ""]
    if found := advantages(matrix):
        parts += [
            "High-overlap advantage, Acc(train high, eval low) - Acc(train low, eval high), in "
            "points:",
            "",
            *(f"- {line}" for line in found),
            "",
        ]
    return parts
