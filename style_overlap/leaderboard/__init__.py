"""Leaderboards: rows from anyone's records, a static page, a gate for CI, and submissions."""
