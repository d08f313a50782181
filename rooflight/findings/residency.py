"""Who finds room on the SMs: a collective's blocks beside those of a kernel that computes."""

from __future__ import annotations

import math

from rooflight.findings.facts import Facts
from rooflight.hardware.occupancy import Beside, Block, beside
from rooflight.roofline.groups import Group
from rooflight.trace.timeline import DeviceProperties


def taken_sms(facts: Facts, group: Group) -> tuple[int, int] | None:
    """How many SMs the blocks of a launch are on at most, and how many the device has; ``None`` where either
    is unknown.  On HIP a grid may count work-items and tells nothing."""
    device, blocks = _device(facts), _blocks(group)
    sms = (device.sm_count if device else None) or facts.roofs.sm_count
    if not blocks or not sms or facts.timeline.meta.is_hip:
        return None
    return min(blocks, sms), sms


def room_beside(facts: Facts, computes: Group, communicates: Group) -> Beside | None:
    """Whether a block of the one that communicates fits beside those of the one that computes; ``None`` where
    that is unknown, or where the latter has too few blocks to fill the device."""
    device, many, one = _device(facts), _block(computes), _block(communicates)
    if device is None or device.compute is None or many is None or one is None or facts.timeline.meta.is_hip:
        return None
    found = beside(device.compute, many, one, device.limits)
    filled = found and device.sm_count and (_blocks(computes) or 0) >= found.resident * device.sm_count
    return found if filled else None


def _device(facts: Facts) -> DeviceProperties | None:
    return facts.timeline.meta.device(facts.timeline.device_keys[facts.partition.device])


def _blocks(group: Group) -> int | None:
    return math.prod(group.shape.grid) if group.shape and group.shape.grid else None


def _block(group: Group) -> Block | None:
    shape = group.shape
    if shape is None or not shape.block or shape.registers is None or shape.shared_memory is None:
        return None
    threads = math.prod(shape.block)
    return Block(threads, shape.registers, shape.shared_memory) if threads > 0 else None
