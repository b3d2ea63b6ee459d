"""Theory and fits."""
