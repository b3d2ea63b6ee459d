"""Types, ranges and meanings of params.yaml, a module an experiment. Only the stages validate and page import it."""
