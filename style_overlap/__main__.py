"""``python -m style_overlap``, for launchers that start modules."""

from style_overlap.cli import main

main()
