"""Appendix B.1, Figures 4 to 6: three tasks with a known rule, and trainings on them."""
