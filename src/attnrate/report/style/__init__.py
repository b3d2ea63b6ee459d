"""The style of every figure."""
