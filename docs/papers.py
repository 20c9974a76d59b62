"""Writes docs/papers.md, where in the code each passage of the sources is, from what docstrings and comments cite:
`python docs/papers.py`."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FLOORS = ("engine", "collision", "contact", "integrators", "scenes")

HEAD = """# From the paper to the code

Where each passage of Carom's sources is, by what the code cites (`python docs/papers.py` writes this page). Numbers are
those of the source. Published figures that the tests hold Carom to are in [references.md](references.md).
"""

WORKS = {  # as the code calls them
    "Holck": "J. Holck, *Dynamisk simulering af artikulerede stive legemer*, thesis, 2005 (Danish)",
    "Mirtich": "B. Mirtich, *Impulse-based Dynamic Simulation of Rigid Body Systems*, Berkeley, 1996",
    "Featherstone": "R. Featherstone, *Rigid Body Dynamics Algorithms*, Springer, 2008",
    "Kim": "J. Kim, *Lie Group Formulation of Articulated Rigid Body Dynamics*, 2012",
    "Mikhaylyuk": "M. Mikhaylyuk and E. Strashnov, on articulated bodies by the method of penalties, 2013 (Russian)",
    "Wawrzynski": "P. Wawrzyński, *Symulacja dynamiki płaskich łańcuchów kinematycznych*, report 05-06, 2005",
    "Stronge": "W. Stronge, *Rigid body collisions with friction*, Proc. R. Soc. A 431, 1990",
}

_NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)*[a-z]?"
_KINDS = r"eqs?\.|equations?|sections?|chapters?|tables?|theorems?|lemmas?|appendix|figs?\."
_CITED = re.compile(
    rf"(?P<work>{'|'.join(WORKS)})(?:'s)?\b(?: and \w+)?,?(?: \(?(?:19|20)\d\d\)?)?,?"
    r"|(?P<other>[A-Z][a-z]+,? \(?(?:19|20)\d\d\)?)"
    rf"|(?P<kind>{_KINDS}) (?P<some>{_NUMBER}|[A-Z]\b)(?P<more>(?:(?:, | and | to |-){_NUMBER})*)"
    rf"|\((?P<equation>{_NUMBER}(?:(?:, |-){_NUMBER})*)\)"
    rf"|(?<=[a-z0-9,)] )(?P<bare>\d+\.\d+(?:\.\d+)*)(?P<rest>(?:(?:, | and | to |-)\d+\.\d+(?:\.\d+)*)*)(?=[\s,;:.)])"
)


class Passage(NamedTuple):
    """kind: "" where only a number is cited.  place: the module, and the function or class in it.  said: its first
    sentence."""

    work: str
    kind: str
    numbers: str
    path: str
    name: str
    said: str


def passages() -> list[Passage]:
    """Of all files, in the order of works and numbers."""
    found = [one for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py")) for one in of_file(path)]
    return sorted(dict.fromkeys(found), key=lambda p: (list(WORKS).index(p.work), order(p), p.path, p.name))


def of_file(path: Path) -> Iterator[Passage]:
    text, work = path.read_text(), ""
    for name, said, words in texts(text):
        others = False  # the passage that comes next is another work's
        for one in _CITED.finditer(words):
            before = words[max(0, one.start() - 30) : one.start()]
            if one["work"] or one["other"]:
                work, others = one["work"] or work, bool(one["other"])
            elif others or not work:
                others = False
            elif one["kind"]:
                yield Passage(work, singular(one["kind"]), one["some"] + one["more"], relative(path), name, said)
            elif one["equation"] and "." in one["equation"] and "ulp" not in words:
                yield Passage(work, "eq.", one["equation"], relative(path), name, said)
            elif one["bare"] and re.search(rf"{work}(?:'s)?,?(?: \(?\d{{4}}\)?)?,? $|{work}[^.]*; $", before):
                yield Passage(work, "", one["bare"] + one["rest"], relative(path), name, said)


def texts(source: str) -> Iterator[tuple[str, str, str]]:
    """(name, first sentence, text) of a module, of its functions and classes, with their comments."""
    tree = ast.parse(source)
    parts = [("", tree, 1, len(source.splitlines()))]
    kinds = (ast.FunctionDef, ast.ClassDef)
    parts += [(node.name, node, node.lineno, node.end_lineno or 0) for node in tree.body if isinstance(node, kinds)]
    comments = [(t.start[0], t.string.lstrip("# ")) for t in tokens(source) if t.type == tokenize.COMMENT]
    for name, node, first, last in parts:
        inner = [node] if isinstance(node, ast.Module) else list(ast.walk(node))
        docs = [ast.get_docstring(n) or "" for n in inner if isinstance(n, (ast.Module, *kinds))]
        docstring = ast.get_docstring(node) or (ast.get_docstring(tree) or "")  # type: ignore[arg-type]
        own = [said for line, said in comments if name and first <= line <= last]
        sentence = re.split(r"(?<=[.:;])\s|\n\n", docstring.replace("\n", " "), maxsplit=1)[0].rstrip(".:;")
        yield name, " ".join(sentence.split()), " ".join(" ".join([*docs, *own]).split())


def tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def singular(kind: str) -> str:
    return {"equation": "eq.", "eqs.": "eq.", "figs.": "fig."}.get(kind.rstrip("s"), kind.rstrip("s"))


def order(passage: Passage) -> tuple[float, ...]:
    return tuple(float(x) for x in re.findall(r"\d+", passage.numbers.split(",")[0])[:3]) or (1e3,)


def page() -> str:
    lines, work = [HEAD], ""
    for one in passages():
        if one.work != work:
            work = one.work
            lines += [
                f"## {work}",
                "",
                f"{WORKS[work]}.",
                "",
                "| passage | where | what it is there |",
                "|---|---|---|",
            ]
        place = f"[{one.path}](../{one.path})" + (f" `{one.name}`" if one.name else "")
        said = one.said.replace("|", "\\|")
        lines.append(f"| {f'{one.kind} {one.numbers}'.strip()} | {place} | {said} |")
    return re.sub(r"\n(## )", r"\n\n\1", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "papers.md").write_text(page())
