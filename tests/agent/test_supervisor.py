"""Loops beside each other: one that fails starts again, and none keeps another from ending."""

from __future__ import annotations

import threading
import time

from agent.supervisor import Loop, Supervisor


def test_a_loop_that_fails_starts_again_and_the_others_go_on() -> None:
    began, steady, notes = threading.Semaphore(0), threading.Event(), list[str]()

    def failing(_stop: threading.Event) -> None:
        began.release()
        raise RuntimeError("out of order")

    def fine(stop: threading.Event) -> None:
        steady.set()
        stop.wait()

    loops = [Loop("failing", failing), Loop("fine", fine)]
    with Supervisor(loops, notes.append):
        # At once, and a second later.
        assert began.acquire(timeout=10)
        assert began.acquire(timeout=10)
        assert steady.wait(10)
        assert loops[1].alive
    assert not loops[1].alive
    assert loops[0].failures >= 2
    assert loops[0].problem == "RuntimeError: out of order"
    assert notes[0] == "failing failed and starts again in 1 s: RuntimeError: out of order"


def test_an_end_in_the_middle_of_a_pause_is_an_end() -> None:
    def failing(_stop: threading.Event) -> None:
        raise RuntimeError("out of order")

    began = time.monotonic()
    with Supervisor([Loop("failing", failing)], lambda _: None):
        time.sleep(0.2)
    assert time.monotonic() - began < 5  # the pause of 1 s, then 2, is not waited out


def test_a_loop_in_a_long_question_is_not_waited_for() -> None:
    answered = threading.Event()
    loop = Loop("asking", lambda _stop: answered.wait(60) and None, awaited=False)
    began = time.monotonic()
    with Supervisor([loop], lambda _: None):
        pass
    assert time.monotonic() - began < 5
    answered.set()
