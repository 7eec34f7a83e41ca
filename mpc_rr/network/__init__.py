"""Messages between agents: their form, their sealing, the session over them, and the carriers."""
