"""Recording training processes that already run, through the socket that torch itself asks.

A process with ``KINETO_USE_DAEMON`` set asks a local datagram socket every few seconds whether it should
record itself.  :mod:`agent.capture.wire` reads and writes the datagrams, :mod:`agent.capture.fabric` is the
socket, :mod:`agent.capture.coordinator` decides who is answered what, and :mod:`agent.capture.traces` fetches
what was written.
"""
