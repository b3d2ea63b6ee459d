"""Target relationships H of the paper."""
