"""Plans: which design suits a study, by trying out what each would publish."""
