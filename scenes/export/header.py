"""The C header of an exported world."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Collection, Sequence

from .exported import Exported
from .functions import Argument
from .programs import DAMAGED_SAVE, OTHER_SAVE, REFUSED


def header_text(made: Exported) -> str:
    """All that a program in C needs to know."""
    name, fields, topology = made.name, made.fields, made.topology
    wide = fields.all["q"].start.dtype.itemsize
    real, whole = ("double", "int64_t") if wide == 8 else ("float", "int32_t")
    W, guard = f"{name} *", f"{name.upper()}_H"
    sizes = {
        "bodies": topology.n_links, "dofs": topology.nv, "pairs": len(topology.pairs), "save_most": fields.most,
    } | ({"triggers": len(fields.all["inside"].start)} if "inside" in fields.all else {})  # fmt: skip
    plain = _identifiers(topology.names)
    functions = {one.function.name for one in made.functions}
    bodies = {f"body_{n}": k for k, n in enumerate(plain)}
    joints = zip(plain, topology.joints, topology.v_start, topology.v_start[1:], strict=False)
    dofs = {f"dof_{n}": a for n, joint, a, b in joints if joint != "floating" and b > a}
    lines = [
        f"/* {name}: a world, simulated by Carom. SI units, world axes, quaternions w x y z. See readme.txt. */",
        f"#ifndef {guard}", f"#define {guard}", "#include <stdint.h>", "#ifdef __cplusplus", 'extern "C" {', "#endif",
        f"typedef struct {name} {name};", f"typedef {real} {name}_real;",
        _enum(name, sizes), _enum(name, bodies), *([_enum(name, dofs)] if dofs else []),
        *(_enum(name, _enumerators(kind, some, functions)) for kind, some in made.numbered._asdict().items() if some),
        f"typedef struct {{ {whole} a, b, phase, impacts; {real} impulse[3], point[3], normal[3], speed; }} "
        f"{name}_contact; /* a, b: bodies, -1 static; phase 0 begins, 1 stays, 2 ends, 3 bounced; impulse on a */",
        f"typedef struct {{ {whole} body, shape; {real} distance, point[3], normal[3]; }} {name}_hit;",
        f"{W}{name}_create(void); /* NULL: no memory */", f"void {name}_free({W});",
        f"int {name}_size(void); /* bytes of a world, for {name}_init in memory of your own, a multiple of 64 */",
        f"void {name}_init({W});", f"void {name}_reset({W}); /* back to the start */",
    ]  # fmt: skip
    for one in made.functions:
        f = one.function
        arguments = ", ".join([W.strip(), *(x for a in f.arguments for x in _declare(name, real, a))])
        lines.append(f"{f.returns} {name}_{f.name}({arguments});" + f" /* {f.says} */" * bool(f.says))
    lines.append(f"int {name}_save(const {W}, void *save); /* returns its bytes, at most {name}_save_most */")
    for p in made.pointers:
        constant = "const " * p.constant
        kind = "int32_t" if p.whole else real
        lines.append(f"{constant}{kind} *{name}_{p.name}({constant}{W.strip()}); /* {p.says} */")
    lines += [
        "/* step and others return 0 where all is well, below 100 where a frame is less exact than promised; from 100 "
        f"on nothing has changed: {REFUSED} what was given cannot be, {OTHER_SAVE} another world's save, "
        f"{DAMAGED_SAVE} a damaged one, others: carom.Code, and pushes and contacts are gone */",
        "#ifdef __cplusplus", "}", "#endif", "#endif", "",
    ]  # fmt: skip
    return "\n".join(x for line in lines for x in _wrap(line))


def _declare(name: str, real: str, a: Argument) -> list[str]:
    if a.kind in ("real", "int"):
        return [f"{real if a.kind == 'real' else a.type or 'int'} {a.name}"]
    if a.kind in ("reals", "maybe"):
        return [f"const {real} {a.name}[{a.size}]" if a.kind == "reals" else f"const {real} *{a.name}"]
    if a.kind == "bits":
        return [f"const uint32_t *{a.name}"]
    if a.kind == "save":
        return [f"const void *{a.name}", "int size"]
    if a.kind == "rows":
        return [f"{a.type if a.type == 'int' else f'{name}_{a.type}'} *{a.name}", "int room"]
    if a.type in ("char", "real"):
        return [f"{real if a.type == 'real' else a.type} {a.name}[{a.size}]"]
    return [f"{name}_{a.type} *{a.name}"]


def _enum(name: str, values: dict[str, int]) -> str:
    return f"enum {{ {', '.join(f'{name}_{key} = {value}' for key, value in values.items())} }};"


def _enumerators(kind: str, numbers: dict[str, int], functions: Collection[str]) -> dict[str, int]:
    """Enumerators, none of them the name of a function such as `joint_force`."""
    taken = [name.removeprefix(f"{kind}_") for name in functions if name.startswith(f"{kind}_")]
    return {f"{kind}_{n}": k for n, k in zip(_identifiers(list(numbers), taken), numbers.values(), strict=True)}


def _identifiers(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Parts of identifiers of C, one for each of these names, all different and none of those taken."""
    made: list[str] = []
    for k, name in enumerate(names):
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        numbered = (f"{plain}_{n}" for n in itertools.count(k))
        made.append(next(one for one in itertools.chain([plain], numbered) if one not in made and one not in taken))
    return made


def _wrap(line: str) -> list[str]:
    return textwrap.wrap(line, 120, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False) or [""]
