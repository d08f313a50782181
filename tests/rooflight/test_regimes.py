"""Kernel and step regimes against the rules of DEFINITIONS §15 and §16."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflight.protocol import PARTS, REGIMES
from rooflight.regimes.advice import FIRST, FIRST_ON_CPU, MEANING, MEANING_ON_CPU, advice, meaning
from rooflight.regimes.kernels import KernelFacts, Verdict, kernel_regime
from rooflight.regimes.steps import GROUPS, grouped, run_regime, step_regime, summed, unexplained_idle
from rooflight.roofline.bounds import Bound


def kernel(c=None, m=None, t=100_000.0, **facts) -> KernelFacts:
    """A launch of 100 us whose compute and memory bounds are ``c`` and ``m`` of that."""
    scaled = [None if u is None else u * t for u in (c, m)]
    return KernelFacts(t_ns=t, bound=Bound(compute_ns=scaled[0], memory_ns=scaled[1]), **facts)


@pytest.mark.parametrize(
    ("c", "m", "regime"),
    [
        (0.6, 0.6, "compute"),  # u_c >= u_m, at the threshold
        (0.9, 0.7, "compute"),
        (0.7, 0.71, "memory"),
        (0.0, 0.6, "memory"),
        (0.59, 0.59, "latency"),
        (0.0, 0.0, "latency"),
        (1.4, 0.2, "compute"),  # above its roof, shown as it is
        (None, 0.6, "memory"),
        (None, 0.59, "unknown"),
        (0.6, None, "compute"),
        (0.59, None, "unknown"),
        (0.0, None, "unknown"),  # an auxiliary kernel: no FLOPs, bytes unknown
        (None, None, "unknown"),
    ],
)
def test_the_busier_resource_names_the_regime_from_the_threshold_on(c, m, regime):
    assert kernel_regime(kernel(c, m)).regime == regime


def test_the_threshold_is_one_setting():
    assert kernel_regime(kernel(0.5, 0.1), threshold=0.5).regime == "compute"
    assert kernel_regime(kernel(0.65, 0.1), threshold=0.7).regime == "latency"


def test_communication_and_copies_come_before_any_roof():
    assert kernel_regime(kernel(0.9, 0.9, communication=True)).regime == "communication"
    assert kernel_regime(kernel(0.9, 0.9, kind="memcpy")).regime == "copy"
    assert kernel_regime(kernel(kind="memset")).regime == "copy"


def test_the_reason_of_latency_is_the_first_that_holds():
    everything = {"blocks": 10, "sm_count": 80, "occupancy": 0.1}
    assert kernel_regime(kernel(0.1, 0.1, t=4_999, **everything)) == Verdict("latency", "tiny")
    assert kernel_regime(kernel(0.1, 0.1, t=5_000, **everything)).reason == "underfilled"
    assert kernel_regime(kernel(0.1, 0.1, **everything | {"blocks": 80})).reason == "low_occupancy"
    assert kernel_regime(kernel(0.1, 0.1, **everything | {"is_hip": True})).reason == "low_occupancy"
    assert kernel_regime(kernel(0.1, 0.1, blocks=80, sm_count=80, occupancy=0.25)).reason == "inefficient"
    assert kernel_regime(kernel(0.1, 0.1, blocks=1)).reason == "inefficient", "the SM count is not known"
    assert kernel_regime(kernel(0.1, 0.1)).reason == "inefficient"


def test_inferred_bytes_tell_latency_only_of_families_that_never_multiply():
    inferred = {"origin": "inferred", "never_matrix": True}
    assert kernel_regime(kernel(None, 0.59, **inferred)) == Verdict("latency", "inefficient")
    assert kernel_regime(kernel(None, 0.6, **inferred)).regime == "memory"
    assert kernel_regime(kernel(None, 0.59, origin="inferred")).regime == "unknown"
    assert kernel_regime(kernel(None, 0.59, origin="modelled", never_matrix=True)).regime == "unknown"
    assert kernel_regime(kernel(None, None, **inferred)).regime == "unknown"


def test_a_launch_without_a_duration_is_unknown():
    assert kernel_regime(KernelFacts(t_ns=0, bound=Bound(compute_ns=10, memory_ns=10))).regime == "unknown"


def test_unknown_says_what_is_missing():
    assert kernel_regime(kernel()).reason == "FLOPs and bytes are unknown"
    no_roof = KernelFacts(t_ns=10, bound=Bound(peak_known=False))
    assert kernel_regime(no_roof).reason == "no roof is known for its work"
    assert kernel_regime(kernel(None, 0.2)).reason.startswith("20 % of the memory roof")


shares = st.none() | st.floats(0, 3)


@given(shares, shares, st.booleans(), st.sampled_from(["measured", "modelled", "inferred", "unknown"]))
def test_a_regime_never_contradicts_its_roofs(c, m, never_matrix, origin):
    verdict = kernel_regime(kernel(c, m, never_matrix=never_matrix, origin=origin))
    known = [u for u in (c, m) if u is not None]
    assert verdict.regime in ("compute", "memory", "latency", "unknown")
    # multiplying by t and dividing again may move a share by a rounding step
    if verdict.regime in ("compute", "memory"):
        assert max(known) >= 0.6 * (1 - 1e-12)
        assert (c if verdict.regime == "compute" else m) == pytest.approx(max(known))
    if verdict.regime == "latency":
        assert max(known) < 0.6 * (1 + 1e-12)
        assert verdict.reason
    if verdict.regime == "unknown":
        assert None in (c, m)


@given(shares, shares, st.floats(1, 100))
def test_a_slower_launch_is_never_nearer_to_a_roof(c, m, slower):
    fast = kernel_regime(kernel(c, m)).regime
    bounds = [None if u is None else u * 100_000.0 for u in (c, m)]
    slow_facts = KernelFacts(t_ns=100_000.0 * slower, bound=Bound(compute_ns=bounds[0], memory_ns=bounds[1]))
    slow = kernel_regime(slow_facts).regime
    assert slow == fast or slow in ("latency", "unknown")


# ---- steps ----


def verdict(*, grade="complete", doubt=0.0, withheld=None, factor_assumed=False, **parts):
    return step_regime(
        parts, grade=grade, unknown_inferred_frac=doubt, withheld=withheld, factor_assumed=factor_assumed
    )


def test_every_part_counts_for_a_regime():
    assert set(GROUPS) == set(PARTS)
    assert set(GROUPS.values()) == set(REGIMES)
    assert grouped(dict.fromkeys(PARTS, 1)) == {
        "compute": 1, "memory": 1, "latency": 3, "communication": 1, "input": 1, "host": 2, "copy": 1,
        "dependency": 1, "unknown": 2,
    }  # fmt: skip


def test_a_cause_outside_kernel_work_is_the_regime_from_a_fifth_of_the_wall_on():
    assert verdict(compute=800, input=200).regime == "input"  # 200 of 1000
    assert verdict(compute=801, input=199).regime == "compute"
    assert verdict(compute=400, input=250, communication=350).regime == "communication"


def test_launch_and_dispatch_together_are_latency_and_sync_is_host():
    assert verdict(compute=800, launch=100, dispatch=100).regime == "latency"
    assert verdict(compute=800, launch=100, dispatch=99, latency=1).regime == "compute"
    assert verdict(compute=800, sync=120, host=80).regime == "host"


def test_below_the_fifth_launch_and_dispatch_still_count_for_latency():
    # latency 350 + launch 100 + dispatch 90 = 540 of 1000 against compute 460; the causes alone are 190
    assert verdict(compute=460, latency=350, launch=100, dispatch=90).regime == "latency"


def test_idle_of_unknown_cause_is_unknown_and_gives_no_regime():
    v = verdict(compute=300, unknown=200, unknown_idle=150)
    assert (v.regime, v.confidence, v.reason) == (None, None, "costs unknown")


def test_a_withheld_verdict_gives_its_reason():
    v = verdict(compute=1000, withheld="unreliable recording: 3 of 4 steps have no GPU events")
    assert (v.regime, v.confidence) == (None, None)
    assert v.reason.startswith("unreliable")


def test_a_step_without_time_has_no_regime():
    assert verdict().regime is None


def test_confidence():
    clear = {"compute": 700, "memory": 300}  # lead 40 points
    assert verdict(**clear).confidence == "high"
    assert verdict(**clear, doubt=0.0999).confidence == "high"
    assert verdict(**clear, doubt=0.10).confidence == "medium"
    assert verdict(**clear, doubt=0.40).confidence == "medium"
    assert verdict(**clear, doubt=0.401).confidence == "low"
    assert verdict(**clear, grade="usable").confidence == "medium"
    assert verdict(compute=550, memory=450).confidence == "high"  # lead 10 points
    assert verdict(compute=549, memory=451).confidence == "medium"
    assert verdict(compute=515, memory=485).confidence == "medium"  # lead 3 points
    assert verdict(compute=514, memory=486).confidence == "low"


def test_the_lead_is_over_the_second_of_the_same_contest():
    assert verdict(compute=600, input=300, communication=100).confidence == "high"  # 20 points
    assert verdict(compute=500, input=260, communication=240).confidence == "low"  # 2 points


def test_roofs_that_rest_on_an_assumption_lower_only_what_rests_on_roofs():
    assert verdict(compute=700, memory=300, factor_assumed=True).confidence == "medium"
    assert verdict(compute=700, input=300, factor_assumed=True).confidence == "high"


def test_unexplained_idle_makes_any_confidence_low():
    assert not unexplained_idle({"compute": 950, "dependency": 50})  # 5 % is not more than 5 %
    assert unexplained_idle({"compute": 949, "dependency": 51})
    assert verdict(compute=949, dependency=51).confidence == "low"


@given(st.permutations([r for r in REGIMES if r != "unknown"]))
def test_ties_go_to_the_first_of_the_list(order):
    """Whatever order the parts come in, equal causes go to latency, then communication, and so on."""
    causes = {"latency": "launch", "host": "host"}
    names = [causes.get(r, r) for r in order if r not in ("compute", "memory")]
    assert verdict(**dict.fromkeys(names[:3], 100)).regime == min(order_of(names[:3]), key=REGIMES.index)
    assert verdict(memory=100, compute=100, latency=100).regime == "compute"


def order_of(parts):
    return [GROUPS[p] for p in parts]


some_parts = st.fixed_dictionaries({p: st.integers(0, 10**10) for p in PARTS})


@given(some_parts, st.sampled_from(["complete", "usable"]), st.floats(0, 1))
def test_a_step_regime_is_a_share_that_the_parts_hold(parts, grade, doubt):
    v = step_regime(parts, grade=grade, unknown_inferred_frac=doubt, withheld=None)
    wall, groups = sum(parts.values()), grouped(parts)
    assert sum(groups.values()) == wall
    if v.regime is None:
        assert wall == 0 or groups["unknown"] == max(
            groups[r] for r in ("compute", "memory", "latency", "unknown")
        )
        return
    assert groups[v.regime] > 0
    assert v.confidence in ("high", "medium", "low")
    if v.regime in ("communication", "input", "host", "copy", "dependency"):
        assert groups[v.regime] * 5 >= wall


@given(some_parts, st.floats(0, 1), st.floats(0, 1))
def test_more_doubt_never_raises_confidence(parts, a, b):
    rank = {"high": 2, "medium": 1, "low": 0, None: -1}
    low, high = sorted((a, b))
    sure = step_regime(parts, grade="complete", unknown_inferred_frac=low, withheld=None)
    unsure = step_regime(parts, grade="complete", unknown_inferred_frac=high, withheld=None)
    assert sure.regime == unsure.regime
    assert rank[unsure.confidence] <= rank[sure.confidence]


def test_the_run_is_judged_by_its_steps_together():
    steps = [{"compute": 900, "input": 100}, {"compute": 100, "input": 300}]  # 1000 compute, 400 input
    assert summed(steps) == dict.fromkeys(PARTS, 0) | {"compute": 1000, "input": 400}
    v = run_regime(steps, grade="complete", unknown_inferred_frac=0, withheld=None)
    assert v.regime == "input"  # 400 of 1400
    assert v.reason == "input takes 29 % of the wall time"
    assert run_regime([], grade="complete", unknown_inferred_frac=0, withheld=None).regime is None


def test_every_regime_has_advice_and_no_regime_tells_how_to_get_one():
    assert set(FIRST) == set(MEANING) == set(REGIMES)
    assert set(MEANING_ON_CPU) < set(REGIMES)
    assert meaning("host") == MEANING["host"] != meaning("host", on_cpu=True)
    assert meaning("input", on_cpu=True) == MEANING["input"]
    assert set(FIRST_ON_CPU) < set(REGIMES)
    assert advice("latency", on_cpu=True) == FIRST_ON_CPU["latency"] != FIRST["latency"]
    assert advice("copy", on_cpu=True) == FIRST["copy"], "what differs in nothing is said once"
    assert "calibrate" in advice(None, on_cpu=True)
    assert len(set(FIRST.values())) == len(REGIMES)
    assert advice(None) == FIRST["unknown"]
    assert advice("something new") == FIRST["unknown"]
    assert "num_workers" in advice("input")


def test_a_cpu_is_never_told_to_feed_a_gpu() -> None:
    """On a CPU the likely regimes have advice of their own, which speaks of no GPU that waits."""
    for regime in ("compute", "latency", "input", "host", None):
        assert advice(regime, on_cpu=True) != advice(regime)
        assert "the GPU" not in advice(regime, on_cpu=True)
