"""What a study publishes: one typed thing (`parts`), made once by its ending, one file a kind."""
