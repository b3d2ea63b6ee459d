"""Section 5.1, Figure 1: targets with prescribed POD, estimators of the best error, the bound (17)."""
