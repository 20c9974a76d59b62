"""The text of a TOML file of a scene, as a person would write it: defaults are left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any

from ...collision.shapes import Shape
from ..chains.spec import refuse_chain
from ..joint_specs import Joint, Motor
from ..loop_specs import Distance, Driven, Gear, Rolling, Spring
from ..spec import BodySpec, LinkSpec, LoopSpec, PairSpec, PlaneSpec, SceneSpec, SensorSpec, SiteSpec, StaticSpec
from .toml_values import WIDTH, is_required, key_of, wrap_value

# specs with a header of their own
TABLES = (BodySpec, LinkSpec, PlaneSpec, StaticSpec, PairSpec, LoopSpec, SiteSpec, SensorSpec, Shape)
JOINTS = (Joint, Distance, Spring, Rolling, Gear, Driven)
TELLING = ("normal", "kind")  # they show what a table is, a plane or a motor: written even if they are the defaults


def to_toml(scene: SceneSpec) -> str:
    """The text, from which `parse_toml` reads an equal scene. Raises a TypeError if a field holds no plain data."""
    refuse_chain(scene, "TOML")
    return "\n".join(_table(scene, "")).strip("\n") + "\n"


def _table(spec: Any, path: str) -> Iterator[str]:
    """Lines of keys with plain values, then the tables inside.  path: of the table, "" for the whole file."""
    inner: list[tuple[str, Any]] = []
    if isinstance(spec, (Shape, *JOINTS)):
        yield f'kind = "{spec.kind}"'
    for key, value in _unusual_fields(spec):
        at = f"{path}.{key}" if path else key
        if isinstance(value, tuple) and value and all(isinstance(item, TABLES) for item in value):
            inner += [(f"[[{at}]]", item) for item in value]
        elif isinstance(value, (*JOINTS, dict)):
            inner.append((f"[{at}]", value))
        else:
            yield f"{key} = {wrap_value(_to_tables(value), WIDTH - len(key) - 3)}"
    for header, value in inner:
        yield ""
        yield header
        yield from _table(value, header.strip("[]"))


def _unusual_fields(spec: Any) -> Iterator[tuple[str, Any]]:
    """Keys and values that are not defaults; the name first, then fields without a default."""
    if isinstance(spec, dict):
        yield from spec.items()
        return
    for field in sorted(fields(spec), key=lambda field: (field.name != "name", not is_required(field))):
        value = getattr(spec, field.name)
        if value is None or (_is_usual(field, value) and field.name not in TELLING):
            continue
        if field.name == "source" and not isinstance(value, str):
            vertices, faces = value
            value = {"vertices": vertices, "faces": faces}
        if callable(value):
            raise TypeError(
                f"{field.name} is {value!r}: a function has no place in a TOML file: give rate, amplitude, frequency "
                "and phase, or keep the scene in Python"
            )
        yield key_of(field), value


def _is_usual(field: Field[Any], value: object) -> bool:
    return not is_required(field) and value == field.default and "-0" not in repr(value)  # -0.0 == 0.0


def _to_tables(value: object) -> object:
    """Motors as tables, which `spell` writes in one line."""
    if isinstance(value, Motor):
        return dict(_unusual_fields(value))
    return tuple(map(_to_tables, value)) if isinstance(value, tuple) else value
