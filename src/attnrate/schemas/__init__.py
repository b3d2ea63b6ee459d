"""Schemas of params.yaml, one module an experiment."""
