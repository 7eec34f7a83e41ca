"""The agents: a party, a coordinator, and a host that runs many parties in one process."""
