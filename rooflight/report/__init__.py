"""An analysis for a reader: what a screen says first, and the report in one file (``html``)."""
