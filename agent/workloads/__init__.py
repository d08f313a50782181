"""Built-in torch workloads, each with a bound that is known beforehand; importing them imports no torch."""

from agent.workloads import attention, gemm, starved, tiny, transformer
from agent.workloads.registry import WORKLOADS, Place, Workload, find

__all__ = ["WORKLOADS", "Place", "Workload", "attention", "find", "gemm", "starved", "tiny", "transformer"]
