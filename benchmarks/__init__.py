"""Ours and what a user would otherwise run, side by side on the same work.

    python -m benchmarks                          # all parts, ten minutes at most on two cores
    python -m benchmarks score train              # some of them
    python -m benchmarks --output docs/performance.md
    python -m benchmarks retrieval --full         # at the size that the goal names
    python -m benchmarks score --profile          # where ours spends its time

A part is a module with ``TITLE``, ``SIZES``, ``run`` and ``profiled``: see ``parts``. The parent
process stays light and computes nothing: every contender works in a process of its own, so that
its peak memory is its own, and the contenders take turns. Answers are compared before any figure
is printed: a benchmark of two programs that disagree measures nothing.
"""
