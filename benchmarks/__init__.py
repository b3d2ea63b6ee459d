"""Each hot path against the script that a competent user would write instead."""
