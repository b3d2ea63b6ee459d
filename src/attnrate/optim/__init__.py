"""Muon for matrices, and the schedules of learning rates."""
