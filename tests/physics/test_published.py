"""Published single results: an articulated inertia, an arm's kinematics and torques, a pendulum's places."""

import numpy as np
import pytest
from scipy import special

import carom
from carom.engine.algebra.spatial import ArticulatedInertia, Motion
from carom.engine.algebra.vec3 import Vec3
from carom.engine.dynamics.aba import factorize
from carom.engine.dynamics.bodies import inertias
from carom.engine.dynamics.kinematics import propagate_poses
from carom.engine.forest import Forest

# -- Featherstone (2008), example 7.1: a cylinder in a box (Drake's articulated_body_algorithm_test) ----


def box_and_cylinder(*, sides, box, radius, length, cylinder, q_box=(1, 0, 0, 0), slide=0.0, turn=0.0):
    """The box on a gimbal; in it a cylinder along x that slides along the box's y and turns about x.

    The two freedoms are two joints at the cylinder's centre with a massless link between them.
    """
    x, y, z = (s**2 for s in sides)
    across = (3 * radius**2 + length**2) / 12
    b = carom.SceneBuilder()
    inertia = tuple(box / 12 * s for s in (y + z, x + z, x + y))
    b.add_link("box", joint=carom.Spherical(), mass=box, inertia=inertia, q0=q_box)
    b.add_link("slide", "box", joint=carom.Prismatic((0, 1, 0)), mass=0, inertia=(0, 0, 0), q0=slide)
    inertia = tuple(cylinder * s for s in (radius**2 / 2, across, across))
    b.add_link("cylinder", "slide", joint=carom.Revolute((1, 0, 0)), mass=cylinder, inertia=inertia, q0=turn)
    return carom.compile_scene(b)


def as_parents_feel_them(model: carom.Model, state: carom.State) -> dict[str, np.ndarray]:
    """6 x 6 articulated inertia of each link at its own origin, world axes, its joint's columns eliminated."""
    forest = Forest.of(model, q=state.q)
    poses = propagate_poses(forest, model, state.q)
    felt = {}
    for group, (IA, pivots) in zip(
        forest.groups, factorize(forest, model, poses, inertias(forest, model, poses)), strict=True
    ):
        for pivot in pivots:
            IA = IA - ArticulatedInertia.outer(pivot.U, pivot.Dinv)
        columns = []
        for e in np.eye(6):
            F = IA @ Motion(Vec3(*e[:3]), Vec3(*e[3:]))
            columns.append([float(x) for x in (F.n.x, F.n.y, F.n.z, F.f.x, F.f.y, F.f.z)])
        felt[model.topology.names[group.links[0]]] = np.array(columns).T
    return felt


def test_articulated_inertia_of_example_7_1() -> None:
    scene = box_and_cylinder(sides=(0.4, 1.0, 1.0), box=2.0, radius=0.2, length=0.3, cylinder=0.8)
    felt = as_parents_feel_them(*scene)
    J = 0.8 * (3 * 0.2**2 + 0.3**2) / 12
    # the massless link between the two freedoms hands on the cylinder without its turn about x and its mass along y
    np.testing.assert_allclose(felt["slide"], np.diag([0, J, J, 0.8, 0, 0.8]), rtol=0, atol=1e-15)
    # on its gimbal the box cannot pass on a moment, and along y it moves without the cylinder
    np.testing.assert_allclose(felt["box"], np.diag([0, 0, 0, 2.8, 2.0, 2.8]), rtol=0, atol=1e-15)


def test_articulated_inertia_away_from_symmetry() -> None:
    """Drake's second case: box turned by -90 deg about y, cylinder by 45 deg and 0.2 m off the middle."""
    m, M, half = 0.6, 2.4, np.sqrt(0.5)
    felt = as_parents_feel_them(
        *box_and_cylinder(
            sides=(0.5, 1.2, 1.6), box=M, radius=0.3, length=0.3, cylinder=m, q_box=(half, 0, -half, 0), slide=0.2,
            turn=np.pi / 4,
        )
    )  # fmt: skip
    J = m * (3 * 0.3**2 + 0.3**2) / 12
    # the cylinder's axis, along which it turns freely, is now along the world's z; it slides along the world's y
    np.testing.assert_allclose(felt["slide"], np.diag([J, J, 0, m, 0, m]), rtol=0, atol=1e-15)
    # by hand: the cylinder felt at the box's centre, r = 0.2 along y; its mass acts along x and z only
    Ix, Iz = M / 12 * (0.5**2 + 1.2**2), M / 12 * (1.2**2 + 1.6**2)  # of the box about the world's x and z
    r = 0.2
    moved_x = m * (1 - m * r**2 / (Ix + J + m * r**2))  # a push along x turns the box about z, and vice versa
    moved_z = m * (1 - m * r**2 / (Iz + m * r**2))
    np.testing.assert_allclose(np.diag(felt["box"])[3:], [M + moved_z, M, M + moved_x], rtol=1e-14)
    np.testing.assert_allclose(felt["box"] - np.diag(np.diag(felt["box"])), 0, atol=1e-15)
    np.testing.assert_allclose(np.diag(felt["box"])[:3], 0, atol=1e-15)


# -- Kuka iiwa (Drake's MG_kuka_iiwa_robot_test) ------------------------------------------------------

HALF = np.pi / 2
# joint frame in the link before: roll, pitch, yaw [rad] and place [m]; every joint turns about its z
FRAMES = (
    ((0, 0, 0), (0, 0, 0.1575)),
    ((HALF, 0, np.pi), (0, 0, 0.2025)),
    ((HALF, 0, np.pi), (0, 0.2045, 0)),
    ((HALF, 0, 0), (0, 0, 0.2155)),
    ((-HALF, np.pi, 0), (0, 0.1845, 0)),
    ((HALF, 0, 0), (0, 0, 0.2155)),
    ((-HALF, np.pi, 0), (0, 0.081, 0)),
)
# mass [kg], centre of mass [m], inertia about it [kg m^2]
BODIES = (
    (5.76, (0, -0.03, 0.12), (0.033, 0.0333, 0.0123)),
    (6.35, (0.0003, 0.059, 0.042), (0.0305, 0.0304, 0.011)),
    (3.5, (0, 0.03, 0.13), (0.025, 0.0238, 0.0076)),
    (3.5, (0, 0.067, 0.034), (0.017, 0.0164, 0.006)),
    (3.5, (0.0001, 0.021, 0.076), (0.01, 0.0087, 0.00449)),
    (1.8, (0, 0.0006, 0.0004), (0.0049, 0.0047, 0.0036)),
    (1.2, (0, 0, 0.02), (0.001, 0.001, 0.001)),
)


def quaternion(roll: float, pitch: float, yaw: float) -> tuple[float, ...]:
    """Of Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = (f(np.array([roll, pitch, yaw]) / 2) for f in (np.cos, np.sin))
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


@pytest.fixture(scope="module")
def iiwa() -> carom.Model:
    b = carom.SceneBuilder()
    for i, ((rpy, xyz), (mass, com, inertia)) in enumerate(zip(FRAMES, BODIES, strict=True)):
        b.add_link(
            f"link{i + 1}",
            f"link{i}" if i else "world",
            joint=carom.Revolute((0, 0, 1)),
            position=xyz,
            quaternion=quaternion(*rpy),
            mass=mass,
            com=com,
            inertia=inertia,
        )
    return carom.compile_scene(b)[0]


def test_iiwa_kinematics(iiwa: carom.Model) -> None:
    upright = carom.fk(iiwa, np.zeros(7))
    np.testing.assert_allclose(upright.position[-1], [0, 0, 1.261], rtol=0, atol=1e-15)
    np.testing.assert_allclose(upright.rotation[-1], np.eye(3), rtol=0, atol=1e-15)
    bent = carom.fk(iiwa, np.deg2rad(np.array([60.0, 30, 60, 30, 60, 30, 60])))
    printed = [0.2970356451892219, 0.1727696964662288, 1.154681973689345]
    np.testing.assert_allclose(bent.position[-1], printed, rtol=0, atol=2e-15)


def test_iiwa_torques_upright(iiwa: carom.Model) -> None:
    """1000 rad/s^2 of the last link take 1 N m in every joint whose axis is vertical, and nothing of the others."""
    still, last = np.zeros(7), 1000.0 * np.eye(7)[6]
    weightless = iiwa.replace(gravity=np.zeros(3))
    np.testing.assert_allclose(carom.rnea(weightless, still, still, last), [1, 0, 1, 0, 1, 0, 1], rtol=0, atol=1e-14)
    # with gravity the horizontal joints also hold two centres of mass that sit 0.3 and 0.1 mm off the vertical
    B, E = 0.0003 * 6.35 * 9.81, 0.0001 * 3.5 * 9.81
    np.testing.assert_allclose(carom.rnea(iiwa, still, still, last), [1, B + E, 1, -E, 1, 0, 1], rtol=0, atol=1e-14)


# -- IFToMM benchmark A01: a pendulum let go from the horizontal ------------------------------------------


def test_pendulum_a01() -> None:
    """m = 1 kg on a massless rod of 1 m: places after 5 and 10 s, over four swings (references.md, IFToMM's pendulum).

    y(10) is printed as -.961419204999; the elliptic functions give -.961419205099, and so does x(10) by Pythagoras.
    """
    b = carom.SceneBuilder()
    b.add_link("rod", joint=carom.Revolute((0, -1, 0)), mass=1.0, com=(-1.0, 0, 0), inertia=(0, 0, 0))
    model, state = carom.compile_scene(b)
    result = carom.rollout(model, state, duration=10.0, frame_dt=5.0, max_dt=2.5e-4, scheme="rk4")
    angle = np.asarray(result.q)[1:, 0]
    places = -np.stack([np.cos(angle), np.sin(angle)], -1)
    printed = [[-0.942305435044, -0.334754338414], [-0.275087462577, -0.961419205099]]
    np.testing.assert_allclose(places, printed, rtol=0, atol=2e-12)
    # sin(phi/2) = k sn(K - w t), k^2 = 1/2, of the angle phi from the lowest place
    sn = special.ellipj(special.ellipk(0.5) - np.sqrt(9.81) * np.array([5.0, 10.0]), 0.5)[0]
    phi = -2 * np.arcsin(np.sqrt(0.5) * sn)
    np.testing.assert_allclose(places, np.stack([np.sin(phi), -np.cos(phi)], -1), rtol=0, atol=2e-12)
