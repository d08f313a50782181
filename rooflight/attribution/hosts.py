"""Whether the ranks of a group are on one host, as far as one recording tells: only then do they meet over
the link that the datasheet of their device names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rooflight.attribution.lists import whole_numbers
from rooflight.trace.tables import I64
from rooflight.trace.timeline import Meta, Timeline

LOCAL, ACROSS, UNTOLD = 1, 0, -1


def hosts_of_comms(timeline: Timeline) -> I64:
    """As :func:`on_one_host`, of each entry of ``timeline.comms``; the last is of a collective without args,
    which ``-1`` finds."""
    return np.array([on_one_host(c, timeline.meta) for c in (*timeline.comms, {})], np.int64)


def on_one_host(comm: Mapping[str, object], meta: Meta) -> int:
    """Of a collective with these args: ``LOCAL``, ``ACROSS`` or ``UNTOLD``.

    Launchers number ranks host by host, as many as it has devices.  A recording that lists one device may
    hide the others, and tells nothing.
    """
    devices, size = len(meta.devices), comm.get("Group size")
    if devices < 2:
        return UNTOLD
    if isinstance(size, int) and size > devices:
        return ACROSS
    if meta.world_size is not None and meta.world_size <= devices:
        return LOCAL
    ranks = whole_numbers(comm.get("Process Group Ranks"))
    if not ranks or len(ranks) != size:
        return UNTOLD
    return LOCAL if len({rank // devices for rank in ranks}) == 1 else ACROSS
