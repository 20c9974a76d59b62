"""A robot's links and joints as one tree, checked: every link except the root hangs on one joint."""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

from ...wording import list_names
from .nodes import XmlElement


class Branch(NamedTuple):
    """A link and the joint that it hangs on, None for the root; parent: name of a link, "" for the root."""

    name: str
    parent: str
    link: XmlElement
    joint: XmlElement | None


def read_tree(robot: XmlElement) -> list[Branch]:
    """Every link after its parent, depth first, children in the order of their joints in the file."""
    links = _by_name(robot, "link")
    if not links:
        robot.fail("there is no <link> in it: a robot has one or more")
    carriers: dict[str, tuple[str, XmlElement]] = {}  # link -> the name of its parent, and its joint
    for name, joint in _by_name(robot, "joint").items():
        parent, child = (_end(joint, tag, links) for tag in ("parent", "child"))
        if child in carriers:
            before = carriers[child][1].text("name")
            joint.fail(f'link "{child}" hangs on joint "{before}" and on "{name}": loops of links cannot be imported')
        carriers[child] = parent, joint
    roots = [name for name in links if name not in carriers]
    if not roots:
        robot.fail("every link hangs on another, in a circle: leave out the joint that closes it")
    if len(roots) > 1:
        names = list_names(f'"{name}"' for name in roots)
        links[roots[1]].fail(f"there are {len(roots)} roots ({names}): join them by a joint, or leave out all but one")
    order = _depth_first(roots[0], carriers)
    if len(order) < len(links):
        lost = next(name for name in links if name not in order)
        carriers[lost][1].fail(f'link "{lost}" hangs on itself through other links: give the circle another parent')
    return [
        Branch(name, carriers[name][0] if name in carriers else "", links[name], _of(name, carriers)) for name in order
    ]


def nearest(name: str, known: list[str]) -> str:
    """The end of a message about a name that is not known."""
    near = get_close_matches(name, known, n=1)
    return f'did you mean "{near[0]}"?' if near else "known are " + list_names(f'"{k}"' for k in known)


def _of(name: str, carriers: dict[str, tuple[str, XmlElement]]) -> XmlElement | None:
    return carriers[name][1] if name in carriers else None


def _by_name(robot: XmlElement, tag: str) -> dict[str, XmlElement]:
    by_name: dict[str, XmlElement] = {}
    for node in robot.all(tag):
        name = node.text("name")
        if name in by_name:
            node.fail(f'there is a {tag} "{name}" on line {by_name[name].line} already: rename one of the two')
        by_name[name] = node
    return by_name


def _end(joint: XmlElement, tag: str, links: dict[str, XmlElement]) -> str:
    """The name of the link at one end of a joint."""
    node = joint.only(tag)
    name = node.text("link")
    if name not in links:
        node.fail(f'the {tag} of joint "{joint.text("name")}" is "{name}", and there is no such link: '
                  + nearest(name, list(links)))  # fmt: skip
    return name


def _depth_first(root: str, carriers: dict[str, tuple[str, XmlElement]]) -> list[str]:
    children: dict[str, list[str]] = {}
    for child, (parent, _) in carriers.items():
        children.setdefault(parent, []).append(child)
    order, left = [], [root]
    while left:
        order.append(left.pop())
        left += reversed(children.get(order[-1], []))
    return order
