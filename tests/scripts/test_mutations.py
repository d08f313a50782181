"""The changes that scripts/fuzz makes: repeatable, and mostly such that a document stays one."""

from __future__ import annotations

import gzip
import importlib
import json
from collections import Counter
from types import ModuleType

import pytest

from tests.shared import CHECKOUT

DOC = (CHECKOUT / "tests/data/cases/26-async-kernels-and-step-copies/input.json").read_bytes()


@pytest.fixture
def mutations(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(CHECKOUT / "scripts"))
    return importlib.import_module("mutations")


def is_document(data: bytes) -> bool:
    try:
        return "traceEvents" in json.loads(data)
    except (ValueError, TypeError):
        return False


def test_the_same_seed_makes_the_same_file(mutations: ModuleType) -> None:
    assert [mutations.Mutator(n)(DOC) for n in range(50)] == [mutations.Mutator(n)(DOC) for n in range(50)]


def test_files_differ_and_many_are_still_documents(mutations: ModuleType) -> None:
    made = [mutations.Mutator(n)(DOC) for n in range(300)]
    assert len(set(made)) > 290
    kinds = Counter(
        "gzip" if d[:2] == b"\x1f\x8b" else "zip" if d[:2] == b"PK" else is_document(d) for d in made
    )
    assert kinds[True] > 75
    assert kinds[False] > 20
    assert kinds["gzip"] > 5
    assert kinds["zip"] > 5


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"\x1f\x8b\x08", b"PK\3\4", b'{"a": [1, {"b": "\\ud800"}]}', gzip.compress(DOC)]
)
def test_anything_can_be_changed(mutations: ModuleType, data: bytes) -> None:
    for seed in range(100):
        assert isinstance(mutations.Mutator(seed)(data), bytes)
