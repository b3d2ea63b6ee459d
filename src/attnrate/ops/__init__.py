"""What no result depends on: run log, cluster, profiles, verification, costs, tables of the documentation."""
