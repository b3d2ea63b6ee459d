"""The claims of the paper: criteria, findings, verdicts."""
