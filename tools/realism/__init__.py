"""How simulated runs differ from real ones: distances of distributions, and a classifier that is asked which is which."""
