"""What every stage shares: configuration, files, the run of a stage."""
