"""Data sets, their sources and their permutations."""
