"""The sliding window over a document, against plain bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rooflight.readers.window import Window

texts = st.text(alphabet="[]{}, \n", max_size=40).map(str.encode)


@given(st.lists(st.tuples(texts, st.integers(0, 60)), max_size=12))
def test_what_was_added_and_not_read_is_there(steps: list[tuple[bytes, int]]) -> None:
    window, model, read = Window(16), b"", 0
    for piece, n in steps:
        window.append(piece)
        model += piece
        assert (bytes(window), len(window)) == (model, len(model))
        assert window.rfind(b"{", n) == model.rfind(b"{", 0, n)
        n = min(n, len(model))
        with window.bracketed(n) as text:
            assert bytes(text) == b"[" + model[:n] + b"]"
        with window.bracketed(n, closed=False) as text:
            assert bytes(text) == b"[" + model[:n]
        window.advance(n)
        model, read = model[n:], read + n
        assert (bytes(window), window.offset) == (model, read)


@given(texts)
def test_one_comma_is_passed_with_the_spaces_before_it(text: bytes) -> None:
    window = Window(8)
    window.append(text)
    window.drop(b" \n", b",")
    rest = text.lstrip(b" \n")
    assert bytes(window) == (rest[1:] if rest.startswith(b",") else text)


@given(texts, st.integers(0, 40))
def test_the_end_of_a_sign_before_spaces(text: bytes, before: int) -> None:
    window = Window(8)
    window.append(text)
    head = text[: min(before, len(text))].rstrip(b" \n")
    assert window.end_of(b"]", min(before, len(text)), b" \n") == (len(head) if head.endswith(b"]") else None)


def test_what_was_decoded_may_look_into_the_old_buffer() -> None:
    """A view that is still held does not stop the window from growing."""
    window = Window(8)
    window.append(b"1,2")
    with window.bracketed(3) as text:
        view = text[:]
    window.append(b"," + b"9" * 100)
    assert (bytes(view[1:4]), len(window)) == (b"1,2", 104)
