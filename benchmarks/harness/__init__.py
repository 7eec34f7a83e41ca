"""What all benchmarks share: rows, seeds, costs, one file format, a table, a comparison."""
