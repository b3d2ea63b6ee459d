"""Attention spectra of models that others made: catch queries and keys, load model and inputs, draw."""
