"""Sums of which nobody learns more than the total.

`secure_sum` is the papers': a few parties, any number of whom may collude. `masked` scales and
forgives parties that leave. `choice` takes the one that suits the number of parties.
"""
