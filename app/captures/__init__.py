"""Orders to record processes that run on a host: made here, fetched by that host's agent, answered by it."""
