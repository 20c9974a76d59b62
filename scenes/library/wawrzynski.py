"""Wawrzynski's reference objects (planar chains, part III, sections 13 and 14) as trees in the x-z plane.

Joint coordinates here are relative to the parent link and every link's frame sits at its joint. Section 13 uses
the same angles. Section 14 counts the angles theta_i of links from the upward vertical, absolute and clockwise
seen along -y (from z to x), so with our q = (x, q_1, q_2, ...), about +y:
    theta_i = q_1 + ... + q_i,    q_1 = theta_1,  q_i = theta_i - theta_(i-1)     (rates and accelerations alike).
Forces on x and torques of the joints need no map; the generalised force of theta_i in section 14 is the joint torque i
less the joint torque i+1.

Rotational inertias of planar objects act about y only; the same number about x and z makes them possible bodies.
"""

from __future__ import annotations

from ..builder import SceneBuilder
from ..joint_specs import Motor, Prismatic, Revolute
from ..spec import SceneSpec
from .chains import X, Y
from .facts import Entry

DOWN_Y = (0.0, -1.0, 0.0)  # section 13.2-13.3: theta_1 from the horizontal, counter-clockwise (from x to z)
NO_INERTIA = (0.0, 0.0, 0.0)


def wawrzynski_pendulum(*, effort: float = 0.225) -> SceneSpec:
    """13.1: unit point mass on a unit rod, theta'' = sin(theta) + tau: theta from the top, gravity 1 m/s^2.

    |tau| <= effort [N m].
    """
    b = SceneBuilder(gravity=(0.0, 0.0, -1.0))
    joint = Revolute(Y, motor=Motor(effort=effort))
    b.add_link("rod", joint=joint, mass=1.0, com=(0.0, 0.0, 1.0), inertia=NO_INERTIA)
    return b.build()


def acrobot() -> SceneSpec:
    """13.2: two links of length 1, mass 1, centre 0.5, inertia 1 about the centre; theta_1 from the horizontal."""
    b = SceneBuilder()
    for i, parent in enumerate(("world", "link1")):
        b.add_link(
            f"link{i + 1}",
            parent,
            joint=Revolute(DOWN_Y),
            position=(float(i), 0.0, 0.0),
            mass=1.0,
            com=(0.5, 0.0, 0.0),
            inertia=(1.0, 1.0, 1.0),
        )
    return b.build()


def weightlifter(*, weight: float = 1.0) -> SceneSpec:
    """13.3: three massless unit links with point masses 1, 1 and `weight` [kg] at their ends; the text's m is open."""
    b = SceneBuilder()
    parent = "world"
    for i, mass in enumerate((1.0, 1.0, weight)):
        b.add_link(
            f"link{i + 1}",
            parent,
            joint=Revolute(DOWN_Y),
            position=(1.0 if i else 0.0, 0.0, 0.0),
            mass=mass,
            com=(1.0, 0.0, 0.0),
            inertia=NO_INERTIA,
        )
        parent = f"link{i + 1}"
    return b.build()


def cart_pole(*, friction: bool = True) -> SceneSpec:
    """14.1: cart 1 kg, pole 0.1 kg, half length 0.5 m; |x| <= 2.4 m, |F| <= 10 N; theta = q_1, from the top.

    friction: Coulomb loss 0.0005 N of the cart, damping 0.000002 N m s of the pole. The text's + mu_p theta'
    must be a minus: as printed, the pole's friction would drive it.
    """
    loss, damping = (0.0005, 0.000002) if friction else (0.0, 0.0)
    b = SceneBuilder()
    b.add_link(
        "cart",
        joint=Prismatic(X, limits=(-2.4, 2.4), loss=loss, motor=Motor(effort=10.0)),
        mass=1.0,
        inertia=(1.0, 1.0, 1.0),
    )
    _pole(b, "pole", "cart", at=0.0, mass=0.1, centre=0.5, inertia=0.1 / 3 * 0.5**2, damping=damping)
    return b.build()


def cart_double_pendulum() -> SceneSpec:
    """14.2 (Bogdanov 2004, table 1): cart 1.5 kg, uniform links 0.5 kg, 0.5 m and 0.75 kg, 0.75 m."""
    b = SceneBuilder()
    b.add_link("cart", joint=Prismatic(X), mass=1.5, inertia=(1.0, 1.0, 1.0))
    _pole(b, "link1", "cart", at=0.0, mass=0.5, centre=0.25, inertia=0.5 * 0.5**2 / 12)
    _pole(b, "link2", "link1", at=0.5, mass=0.75, centre=0.375, inertia=0.75 * 0.75**2 / 12)
    return b.build()


def cart_triple_pendulum(*, friction: bool = True) -> SceneSpec:
    """14.3 (table 3): cart 1.014 kg and three links; gravity 9.8. The cart's force is K_s u, K_s = 24.7125 N/V.

    friction: viscous C_c and C_i of the table; Coulomb mu_x A37 and mu_i A38..A40 as losses of the *joint* rates.
    Departures from the text, each derived: A10 holds m1 l1^2 (printed: m2 l1^2); the signs in f(q, u) are
    those of velocities (printed: of positions), and act at joints, whose rates are differences of the theta_i'.
    """
    on = 1.0 if friction else 0.0
    b = SceneBuilder(gravity=(0.0, 0.0, -9.8))
    b.add_link("cart", joint=Prismatic(X, damping=on * 5.5, loss=on * 0.07 * 1.3), mass=1.014, inertia=(1.0, 1.0, 1.0))
    parent, at = "cart", 0.0
    # mass, centre, length, inertia about the centre, normal force A38..A40 in the Coulomb friction of the joint
    for i, (mass, centre, length, inertia, normal) in enumerate(_TRIPLE):
        name = f"link{i + 1}"
        friction_numbers = {"damping": on * 0.00026875, "loss": on * 0.003 * normal}
        _pole(b, name, parent, at=at, mass=mass, centre=centre, inertia=inertia, **friction_numbers)
        parent, at = name, length
    return b.build()


_TRIPLE = (
    (0.4506, 0.37, 0.43, 0.0042, 0.506),
    (0.219, 0.3, 0.33, 0.0012, 0.219),
    (0.0568, 0.05, 0.13, 0.00010609, 0.568),
)


def _pole(
    b: SceneBuilder, name: str, parent: str, *, at: float, mass: float, centre: float, inertia: float,
    damping: float = 0.0, loss: float = 0.0,
) -> None:  # fmt: skip
    """A link that stands upright at q = 0, hinged about y at the height `at` of its parent [m]."""
    b.add_link(
        name,
        parent,
        joint=Revolute(Y, damping=damping, loss=loss),
        position=(0.0, 0.0, at),
        mass=mass,
        com=(0.0, 0.0, centre),
        inertia=(inertia, inertia, inertia),
    )


ENTRIES = {
    "wawrzynski_pendulum": Entry(wawrzynski_pendulum, "Wawrzynski 13.1: unit pendulum from the top"),
    "acrobot": Entry(acrobot, "Wawrzynski 13.2: two links on a bar"),
    "weightlifter": Entry(weightlifter, "Wawrzynski 13.3: three links that lift a weight"),
    "cart_pole": Entry(cart_pole, "Wawrzynski 14.1: a pole on a cart"),
    "cart_double_pendulum": Entry(cart_double_pendulum, "Wawrzynski 14.2: two links on a cart"),
    "cart_triple_pendulum": Entry(cart_triple_pendulum, "Wawrzynski 14.3: three links on a cart"),
}
