"""A scene from the tables of a TOML file. Keys are the dataclasses' fields: a new field needs nothing here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from typing import Any, NamedTuple, NoReturn

from ...collision.shapes import Shape
from ..joint_specs import Joint, Motor
from ..loop_specs import Distance, Driven, Gear, Rolling, Spring
from ..spec import BodySpec, LinkSpec, LoopSpec, PairSpec, PlaneSpec, SceneSpec, SensorSpec, SiteSpec, StaticSpec
from ..wording import abridge
from . import toml_plain as plain
from .toml_plain import TablePath, is_list, suggest
from .toml_values import NONE, is_required, key_of, spell

Table = Mapping[str, Any]

SHAPES = {kind.kind: kind for kind in Shape.__subclasses__()}
JOINTS = {kind.kind: kind for kind in Joint.__subclasses__()}
LOOPS = {kind: made for kind, made in JOINTS.items() if kind != "floating"} | {
    kind.kind: kind for kind in (Distance, Spring, Rolling, Gear, Driven)
}


def read_scene(table: Table) -> SceneSpec:
    """The scene that a whole file describes; raises WrongValue."""
    where = TablePath((), "scene")
    scene = _build(SceneSpec, table, where)
    known = ["world", *(spec.name for spec in (*scene.links, *scene.statics) if spec.name is not None)]
    for k, pair in enumerate(scene.exclusions):
        for n, name in enumerate(pair):
            if name not in known:
                where.reject("exclude", pair, f"there is no {abridge(spell(name))}: {suggest(name, known)}", k, n)
    return scene


def read_field(field: Field[Any], value: object, where: TablePath) -> Any:
    """The value of a dataclass's field, checked for its type; raises WrongValue."""
    return _type_of(field).read(key_of(field), value, where)


def _build(kind: type, table: Table, where: TablePath, tag: str | None = None) -> Any:
    """A dataclass from a table.  tag: the key that selected the class, which is not one of its fields."""
    known = {key_of(field): field for field in fields(kind)}
    for key, value in table.items():
        if key not in known and key != tag:
            misplaced = where.keys and key in map(key_of, fields(SceneSpec))
            fix = "it is the scene's, and stands at the top of the file, before the first [[" if misplaced else ""
            where.reject(key, value, f"there is no such key: {fix or suggest(key, known)}")
    for key, field in known.items():
        if is_required(field) and key not in table:
            where.missing(key, _type_of(field).wanted)
    return kind(**{field.name: read_field(field, table[key], where) for key, field in known.items() if key in table})


def _select(kinds: dict[str, type], table: Table, where: TablePath) -> Any:
    """A shape or joint of the kind that its table names."""
    if "kind" not in table:
        where.missing("kind", f"one of {', '.join(kinds)}")
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        where.reject("kind", kind, f"there is no such kind: {suggest(str(kind), kinds)}")
    return _build(kinds[kind], table, TablePath(where.keys, f"{where.who} ({kind})"), tag="kind")


def _joint(key: str, value: object, where: TablePath, kinds: dict[str, type] = JOINTS) -> Any:
    if not isinstance(value, Mapping):
        where.reject(key, value, 'it must be a table: e.g. joint = { kind = "revolute", axis = [0, 0, 1] }')
    return _select(kinds, value, where.inner(key, who=f"{where.who}, joint"))


def _loop_joint(key: str, value: object, where: TablePath) -> Any:
    return _joint(key, value, where, LOOPS)


def _function(key: str, value: object, where: TablePath) -> NoReturn:
    where.reject(key, value, "a file holds no functions: give rate, amplitude, frequency and phase, or build in Python")


def _motor(key: str, value: object, where: TablePath) -> Motor | tuple[Motor | None, ...]:
    """One Motor, or one or None for each dof."""
    if not is_list(value):
        return _one_motor(key, value, where)
    return tuple(None if item in (NONE, None) else _one_motor(key, item, where, n) for n, item in enumerate(value))


def _one_motor(key: str, value: object, where: TablePath, *dof: int) -> Motor:
    if not isinstance(value, Mapping):
        must = f'it must be a table, or a list of one a dof, "{NONE}" for a dof without'
        where.reject(key, value, f'{must}: e.g. {key} = {{ kind = "position", kp = 100.0, kd = 10.0 }}', *dof)
    return _build(Motor, value, where.inner(key, *dof, who=f"{where.who}, motor"))


def _shapes(key: str, value: object, where: TablePath) -> tuple[Shape, ...]:
    return tuple(
        _select(SHAPES, table, where.inner(key, k, who=f"{where.who}, shape {k}"))
        for k, table in enumerate(_tables(key, value, where))
    )


def _list_reader(kind_of: Callable[[Table], type]) -> Callable[[str, object, TablePath], tuple[Any, ...]]:
    """A reader of a list of tables.  kind_of: the dataclass of a table."""

    def read(key: str, value: object, where: TablePath) -> tuple[Any, ...]:
        made = []
        for k, table in enumerate(_tables(key, value, where)):
            kind, name = kind_of(table), table.get("name")
            who = f'{_NOUNS[kind]} "{name}"' if isinstance(name, str) else f"{_NOUNS[kind]} {k}"
            made.append(_build(kind, table, where.inner(key, k, who=who)))
        return tuple(made)

    return read


_NOUNS = {BodySpec: "body", LinkSpec: "link", PlaneSpec: "plane", StaticSpec: "static", PairSpec: "pair rule",
          LoopSpec: "loop", SiteSpec: "site", SensorSpec: "sensor"}  # fmt: skip


def _tables(key: str, value: object, where: TablePath) -> list[Table]:
    if not is_list(value) or not all(isinstance(table, Mapping) for table in value):
        header = ".".join([*(part for part in where.keys if isinstance(part, str)), key])
        where.reject(key, value, f"it must be a list of tables: write [[{header}]] above each")
    return list(value)


class _Type(NamedTuple):
    read: Callable[[str, object, TablePath], Any]
    wanted: str


# annotation of a field, without its "| None" -> its reader, and its description
_TYPES = {
    "float": _Type(plain.number, "one number"),
    "Numbers": _Type(plain.numbers, "a number or a list of numbers"),
    "int": _Type(plain.whole, "a whole number"),
    "bool": _Type(plain.truth, "true or false"),
    "str": _Type(plain.text, "a text in quotes"),
    "Limits": _Type(plain.limits, "[lower, upper]"),
    "Any": _Type(plain.mesh_source, "the path of a mesh file, or a table of vertices and faces"),
    "Joint": _Type(_joint, "a table with its kind"),
    "Motor | Sequence[Motor | None]": _Type(_motor, "a table"),
    "Sequence[Shape]": _Type(_shapes, "a list of tables"),
    "tuple[BodySpec | LinkSpec, ...]": _Type(
        _list_reader(lambda table: LinkSpec if table.keys() & {"joint", "parent"} else BodySpec), "a list of tables"
    ),
    "tuple[PlaneSpec | StaticSpec, ...]": _Type(
        _list_reader(lambda table: PlaneSpec if table.keys() & {"normal", "offset"} else StaticSpec), "a list of tables"
    ),
    "tuple[PairSpec, ...]": _Type(_list_reader(lambda _: PairSpec), "a list of tables"),
    "tuple[LoopSpec, ...]": _Type(_list_reader(lambda _: LoopSpec), "a list of tables"),
    "tuple[SiteSpec, ...]": _Type(_list_reader(lambda _: SiteSpec), "a list of tables"),
    "tuple[SensorSpec, ...]": _Type(_list_reader(lambda _: SensorSpec), "a list of tables"),
    "Callable[[Any], Any]": _Type(_function, "nothing"),
    "tuple[tuple[str, str], ...]": _Type(plain.name_pairs, "a list of pairs of names"),
}


_OF_LOOPS = _Type(_loop_joint, "a table with its kind")


def _type_of(field: Field[Any]) -> _Type:
    kind = str(field.type).removesuffix(" | None")
    return _OF_LOOPS if (field.name, kind) == ("joint", "Any") else _TYPES[kind]
