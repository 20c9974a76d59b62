"""Which pairs of shapes are asked in the default run, which in the slow one, and which by hand."""

import pytest

# seconds to compile, each: a few of them for the slow run, and those that are close to others by hand
HARD = {("heightfield", "ellipsoid"), ("cylinder", "cylinder")}
HARD_TOO = {
    ("heightfield", "cylinder"), ("capsule", "cylinder"), ("cylinder", "hull"), ("cylinder", "ellipsoid"),
    ("box", "ellipsoid"), ("ellipsoid", "hull"), ("sphere", "ellipsoid"), ("sphere", "cylinder"), ("capsule", "hull"),
    ("box", "hull"), ("sphere", "hull"), ("heightfield", "capsule"), ("heightfield", "hull"), ("box", "cylinder"),
    ("capsule", "ellipsoid"),
}  # fmt: skip
# one of each family: what compiles a pair anew asks these, and all others by hand
FAMILIES = {
    ("plane", "box"), ("heightfield", "sphere"), ("sphere", "box"), ("capsule", "capsule"), ("box", "box"),
    ("ellipsoid", "ellipsoid"), ("hull", "hull"),
}  # fmt: skip


def each(pairs: list[tuple[str, str]]) -> pytest.MarkDecorator:
    marks = {**dict.fromkeys(HARD, pytest.mark.slow), **dict.fromkeys(HARD_TOO, pytest.mark.exhaustive)}
    return pytest.mark.parametrize("names", [pytest.param(n, marks=marks.get(n, ())) for n in pairs], ids="-".join)


def one_of_each_family(pairs: list[tuple[str, str]]) -> pytest.MarkDecorator:
    marked = [pytest.param(n, marks=() if n in FAMILIES else pytest.mark.exhaustive) for n in pairs]
    return pytest.mark.parametrize("names", marked, ids="-".join)
