"""Tables for a paper: LaTeX with booktabs."""

from __future__ import annotations

from collections.abc import Iterable

from style_overlap.report.tables import Table

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textasciigrave{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$", "–": "--", "−": "$-$", "→": r"$\rightarrow$", "α": r"$\alpha$",
    "ρ": r"$\rho$", "…": r"\dots{}",
}  # fmt: skip


def render(table: Table, label: str) -> str:
    """A table environment; needs ``booktabs``, and ``textcomp`` for old installations.

    Args:
        table: what to write.
        label: of the table, after ``tab:``.
    """
    columns = "l" + "r" * (len(table.header) - 1)
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{text(table.caption)}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _row(map(text, table.header)),
        r"\midrule",
    ]
    for i, row in enumerate(table.rows):
        cells = [
            rf"\textbf{{{text(cell)}}}" if (i, j) in table.emphasis else text(cell)
            for j, cell in enumerate(row)
        ]
        lines.append(_row(cells))
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip\footnotesize {text(note)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}", ""])


def text(raw: str) -> str:
    """Text that LaTeX sets as it is."""
    return "".join(_ESCAPES.get(character, character) for character in raw)


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
