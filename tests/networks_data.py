"""A small Bayesian network, as a file would have it."""

SURVEY = """
network unknown { }
variable A { type discrete [ 3 ] { young, adult, old }; }
variable S { type discrete [ 2 ] { M, F }; }
variable E { type discrete [ 2 ] { high, uni }; }
probability ( A ) { table 0.3, 0.5, 0.2; }
probability ( S ) { table 0.6, 0.4; }
probability ( E | A, S ) {
  (young, M) 0.75, 0.25;
  (adult, M) 0.72, 0.28;
  (old, M) 0.88, 0.12;
  (young, F) 0.64, 0.36;
  (adult, F) 0.7, 0.3;
  (old, F) 0.9, 0.1;
}
"""
