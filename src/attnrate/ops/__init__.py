"""What no stage imports: cluster, profiles, verification, costs, tables of the documentation."""
