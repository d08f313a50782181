"""Contrast of the design tokens in both themes (WCAG AA), computed from the stylesheet itself."""

from __future__ import annotations

import re

import pytest

from tests.shared import CHECKOUT

TOKENS = (CHECKOUT / "web" / "static" / "css" / "tokens.css").read_text("utf-8")
THEMES = ("light", "dark")


def colour(name: str, theme: str) -> str:
    found = re.search(rf"--{name}: (?:light-dark\((#\w{{6}}), (#\w{{6}}|transparent)\)|(#\w{{6}}))", TOKENS)
    assert found, name
    light, dark, both = found.groups()
    return str(both or (light if theme == "light" else dark))


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_measure_itself() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ground", ["surface", "sunken", "bg", "hover"])
@pytest.mark.parametrize("ink", ["ink", "ink-2", "ink-3", "accent"])
def test_text_is_readable(ink: str, ground: str, theme: str) -> None:
    assert contrast(colour(ink, theme), colour(ground, theme)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("word", ["worse", "better", "warn"])
def test_verdicts_are_readable_on_their_own_ground(word: str, theme: str) -> None:
    assert contrast(colour(word, theme), colour(f"{word}-soft", theme)) >= 4.5
    assert contrast(colour("ink-2", theme), colour(f"{word}-soft", theme)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_pressed_is_readable(theme: str) -> None:
    assert contrast(colour("on-accent", theme), colour("accent", theme)) >= 4.5
    assert contrast(colour("accent", theme), colour("accent-soft", theme)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    "regime",
    ["compute", "memory", "latency", "communication", "copy", "input", "host", "dependency", "unknown"],
)
def test_marks_stand_out_or_have_an_edge(regime: str, theme: str) -> None:
    ground = colour("surface", theme)
    mark = contrast(colour(regime, theme), ground)
    if regime in ("memory", "copy") and theme == "light":
        mark = contrast(colour(f"{regime}-edge", theme), ground)
    assert mark >= 3
