"""The tools for a model of one's own."""
