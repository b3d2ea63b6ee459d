"""Decay laws: fits of errors and of singular values."""
