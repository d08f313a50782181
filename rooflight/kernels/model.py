"""What a kernel's name tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelName:
    """``family`` and ``collective`` come from closed lists (docs/kernel-names.md); ``dtype`` is the
    element type, ``compute_dtype`` the math type, both ``None`` when the name does not tell."""

    name: str
    short_name: str
    family: str
    dtype: str | None = None
    compute_dtype: str | None = None
    tensor_core: bool | None = None
    collective: str | None = None
