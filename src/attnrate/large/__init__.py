"""The loop for large models on accelerate, its checkpoints and schedules."""
