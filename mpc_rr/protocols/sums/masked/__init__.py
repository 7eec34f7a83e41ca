"""The masked sum: thousands of parties add up, and some may leave.

`setup` fixes keys and draws the graph, once for any number of sums; `sum` has the steps of one; the
coordinator takes off what is left of the masks by `recovery`; `slots` packs what goes to a party's
neighbours.
"""
