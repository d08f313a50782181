"""Advice: what was seen, why it costs, what to do, and what that would save at most.  See docs/findings.md.

A rule is a file in ``rules/`` with one decorated function; its name in :data:`RULES` switches it on.
"""

from __future__ import annotations

import importlib

from rooflight.findings.facts import Facts
from rooflight.findings.model import Found, Rule, Seen
from rooflight.findings.registry import all_rules, find, find_in_run, run_codes, spoken_of
from rooflight.findings.waits import Waits

RULES = (
    "input_starved",
    "dataloader_workers",
    "host_bound",
    "tiny_kernels",
    "elementwise_chain",
    "fp32_gemm",
    "gemm_under_roof",
    "memory_at_roof",
    "layout",
    "fills",
    "casts",
    "synchronising",
    "allocations",
    "pageable_copies",
    "exposed_copies",
    "exposed_communication",
    "low_occupancy",
    "uneven_steps",
    "underfilled",
    "embedding_bound",
    "few_rows",
    "kv_cache",
    "contiguous",
    "small_collectives",
    "materialised_attention",
    "unfused_optimizer",
    "graph_breaks",
    "straggler",
    "uneven_experts",
    "unlike_recordings",
    "recording_options",
)

for _rule in RULES:
    importlib.import_module(f"{__name__}.rules.{_rule}")

__all__ = [
    "RULES",
    "Facts",
    "Found",
    "Rule",
    "Seen",
    "Waits",
    "all_rules",
    "find",
    "find_in_run",
    "run_codes",
    "spoken_of",
]
