"""`rooflight cost`: a line in, a line out."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from rooflight.cli import cost as command
from rooflight.cli.main import main


class _Stdin:
    def __init__(self, text: bytes) -> None:
        self.buffer = io.BytesIO(text)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def _ask(*lines: str) -> tuple[int, list[dict[str, Any]]]:
        monkeypatch.setattr(command.sys, "stdin", _Stdin("\n".join(lines).encode()))
        status = main(["cost"])
        return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return _ask


def test_an_event_is_answered(ask: Any) -> None:
    line = json.dumps(
        {"op": "aten::mm", "input_dims": [[64, 128], [128, 32]], "input_types": ["float", "float"]}
    )
    assert ask(line) == (
        0,
        [
            {
                "flops": 2 * 64 * 128 * 32,
                "bytes_read": 4 * (64 * 128 + 128 * 32),
                "bytes_written": 4 * 64 * 32,
                "origin": "modelled",
                "reason": "",
            }
        ],
    )


def test_unknown_is_null(ask: Any) -> None:
    status, (answer,) = ask('{"op": "my::op"}')
    assert status == 0
    assert (answer["flops"], answer["bytes_read"], answer["origin"]) == (None, None, "unknown")


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"input_dims": []}', "no op"),
        ('{"op": "aten::mm", "input_dims": 3}', "input_dims is not a list"),
        ('{"op": "k", "comm": []}', "comm is not an object"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_named_and_the_others_are_answered(ask: Any, bad: str, says: str) -> None:
    status, (first, second, third) = ask('{"op": "a"}', bad, '{"op": "b"}')
    assert status == 2
    assert first["reason"] == third["reason"] == "unknown_op"
    assert says in second["error"]
    assert second["error"].startswith("line 2: ")


def test_blank_lines_are_no_events(ask: Any) -> None:
    assert ask("", "  ") == (0, [])


def test_arguments_by_name(ask: Any) -> None:
    """Stride 1, padding 1, 2 groups: 16 x 10 x 10 results of 4*9 multiply-adds."""
    event = {
        "op": "aten::conv2d",
        "input_dims": [[1, 8, 10, 10], [16, 4, 3, 3], [], [], [], [], []],
        "concrete": {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 2},
    }
    assert ask(json.dumps(event))[1][0]["flops"] == 2 * 16 * 100 * 36


def test_an_overlong_line_is_refused_and_the_next_is_read(monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    monkeypatch.setattr(command, "_MAX_LINE", 64)
    status, answers = ask(json.dumps({"op": "x" * 500}), '{"op": "b"}')
    assert status == 2
    assert "error" in answers[0]
    assert answers[1]["reason"] == "unknown_op"
    assert len(answers) == 2
