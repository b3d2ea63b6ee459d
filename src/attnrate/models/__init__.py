"""Hypothesis spaces: the Transformer of eq. (5) and what it is compared with."""
