"""The one measurer of attention spectra, for this project's models and anybody's."""
