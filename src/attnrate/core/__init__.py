"""What can change a byte of a result and every stage shares: parameters, files, the run of a stage."""
