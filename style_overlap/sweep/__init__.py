"""The grid of encoders, k, overlaps and seeds: planned as data, run here or on a Ray cluster."""
