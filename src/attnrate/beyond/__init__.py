"""Beyond the paper: what depth, filters, heads and a mask change (docs/beyond.md)."""
