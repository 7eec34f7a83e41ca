"""What is measured, against what: one file for each benchmark, one harness for all of them."""
