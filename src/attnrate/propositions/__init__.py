"""Sections 4.2 and 6: the paper's statements on density, ordering, mixing and the RNN, checked without training."""
