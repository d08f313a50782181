"""What keeps the agent from doing its work on this host, and what to do about it: one file for each thing
looked at.  Looking changes nothing, but for an empty push that asks whether a push would be allowed."""
