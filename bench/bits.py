"""Digests of runs of library scenes by code for several processors, to check that all bits are the same."""

from __future__ import annotations

from carom.tests.oracles.bits import AARCH64, FIELDS, HERE, WARP, X86, bits_of, missing

SCENES = ("pool_break", "stack", "ragdoll")


def suite(scenes: list[str], seconds: float = 5.0) -> int:
    """Print a line for each scene and processor. The exit status says whether all bits are the same."""
    print(f"sha256 of what runs of {seconds:g} s give back; rest: code, statistics and last state")
    print(f"{'scene':>12} {'code for':>12}", *(f"{x:>8}" for x in FIELDS), f"{'impacts':>8} {'us a tick':>9}")
    same = True
    for scene in scenes:
        here = bits_of(scene, seconds)
        for processor in (HERE, *X86, AARCH64, WARP):
            lacking = missing(processor)
            if lacking:
                print(f"{scene:>12} {processor:>12} not run: this machine has no {lacking}", flush=True)
                continue
            there = bits_of(scene, seconds, processor)
            same &= there.digests == here.digests
            marks = (
                f"{there.digests[name][:7]}{' ' if there.digests[name] == here.digests[name] else '!'}"
                for name in FIELDS
            )
            tick = "emulated" if there.cpu_seconds is None else f"{1e6 * there.cpu_seconds / there.ticks:.0f}"
            print(f"{scene:>12} {processor:>12}", *marks, f"{there.impacts:8d} {tick:>9}", flush=True)
    print("the same bits" if same else "not the same bits: see !")
    return 0 if same else 1
