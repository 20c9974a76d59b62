"""safe_step and longest_step: never later than the true time of impact, exact where they can be, never through.

What is near is given in closed form or by slabs of the tests' own, so that no detector takes part.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from carom.collision.proximities import Proximities
from carom.collision.safe_step import longest_step, safe_step, undetected_step
from carom.collision.speeds.link_motion import link_motion
from carom.engine.dynamics.kinematics import fk
from carom.engine.model import Model
from carom.engine.state import State
from carom.engine.topology import Topology
from carom.integrators.schemes import scheme_named
from carom.tests.oracles.bare_shapes import BareShape, with_shapes
from carom.tests.oracles.random_trees import Recipe, random_model, random_state, random_topology, unit, with_passive
from carom.tests.oracles.tumbling import Flight, candidate_axes, widest_slab

EXACT = 1e-12  # relative: closed forms against closed forms
ROUNDING = 1e-9  # [m] overlap that rounding and the oracle's own steps may show in scenes of metres
GRAVITY = np.array([0.3, -0.5, -9.81])
CORNERS = np.stack(np.meshgrid(*[(-1.0, 1.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
BODY = Topology(("a", "b"), (-1, -1), ("floating", "floating"))


def near_rows(pair: Any, gap: Any, normal: Any, point_a: Any, point_b: Any, dtype: Any = float) -> Proximities:
    gap, normal, point_a, point_b = (jnp.asarray(x, dtype) for x in (gap, normal, point_a, point_b))
    pair = jnp.broadcast_to(jnp.asarray(pair, jnp.int32), gap.shape)
    none = jnp.zeros(gap.shape[:-1], jnp.int32)
    return Proximities(pair, jnp.ones(gap.shape, bool), gap, normal, point_a, point_b, none, none)


def bodies(n: int, rng: np.random.Generator, shapes: list[BareShape], **changes: Any) -> Model:
    """Two free bodies in n lanes, each with its own random inertia about its origin, and a shape each (or B static)."""
    model = random_model(rng, BODY)
    second = rng.uniform(0.005, 0.1, (n, 2, 3))  # second moments of mass
    inertia = (second.sum(-1, keepdims=True) - second)[..., None] * np.eye(3)
    model = model.replace(inertia=inertia, com=np.zeros((2, 3)), armature=np.zeros(12), gravity=GRAVITY)
    model = with_shapes(model, shapes, ((0, 1),)).replace(**changes)
    return jax.tree.map(jnp.asarray, model)


def flights(model: Model, n: int, rng: np.random.Generator) -> list[Flight]:
    """Two bodies a lane, one to two metres apart, that tumble and mostly come nearer."""
    c = rng.normal(size=(n, 3)) * 0.3
    to = unit(rng.normal(size=(n, 3))) * rng.uniform(1, 2, (n, 1))
    aim = -to * rng.uniform(-0.3, 3, (n, 1)) + rng.normal(size=(n, 3)) * 0.3
    drift = rng.normal(size=(n, 3)) * 2
    inertia = np.diagonal(np.broadcast_to(model.inertia, (n, 2, 3, 3)), axis1=2, axis2=3)
    out = []
    for k, (p, u) in enumerate(((c, drift), (c + to, drift + aim))):
        R = Rotation.from_quat(rng.normal(size=(n, 4))).as_matrix()
        w = unit(rng.normal(size=(n, 3))) * rng.uniform(0, 8, (n, 1)) ** rng.integers(0, 2, (n, 1))
        out.append(Flight(p, u, R, w, inertia[:, k], GRAVITY))
    return out


def state_of(*flights: Flight) -> State:
    n = len(flights[0].c)
    quaternion = [np.roll(Rotation.from_matrix(f.R).as_quat(), 1, 1) for f in flights]
    q = np.concatenate([x for f, o in zip(flights, quaternion, strict=True) for x in (f.c, o)], 1)
    v = np.concatenate([x for f in flights for x in (f.w, f.u)], 1)
    return State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(n))


class Polytopes:
    """Two bodies of vertices (n, k, 3) about their centres, with face normals and edges; slabs by separating axes."""

    def __init__(self, vertices: list[np.ndarray], faces: list[np.ndarray], edges: list[np.ndarray]):
        self.vertices, self.faces, self.edges = vertices, faces, edges

    def slab(self, a: Flight, b: Flight) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        A, B = (x @ f.R.transpose(0, 2, 1) + f.c[:, None] for x, f in zip(self.vertices, (a, b), strict=True))
        turned = [
            [x @ f.R.transpose(0, 2, 1) for x, f in zip(y, (a, b), strict=True)] for y in (self.faces, self.edges)
        ]
        axes = candidate_axes(turned[0][0], turned[1][0], turned[0][1], turned[1][1])
        width, n = widest_slab(A, B, axes)
        lowest = np.take_along_axis(A, np.einsum("nkj,nj->nk", A, n).argmin(1)[:, None, None], 1)[:, 0]
        highest = np.take_along_axis(B, np.einsum("nkj,nj->nk", B, n).argmax(1)[:, None, None], 1)[:, 0]
        return width, n, lowest, highest


class Balls:
    """A ball on each body, off its centre."""

    def __init__(self, centers: list[np.ndarray], radii: list[np.ndarray]):
        self.centers, self.radii = centers, radii

    def slab(self, a: Flight, b: Flight) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        x, y = (f.c + np.einsum("nij,nj->ni", f.R, c) for f, c in zip((a, b), self.centers, strict=True))
        n = unit(x - y)
        return (
            np.linalg.norm(x - y, axis=1) - sum(self.radii), n, x - n * self.radii[0][:, None],
            y + n * self.radii[1][:, None],
        )  # fmt: skip


class OnPlane:
    """Points (n, k, 3) of body A with a radius (n,) about each, above the plane z = 0."""

    def __init__(self, points: np.ndarray, radius: np.ndarray):
        self.points, self.radius = points, radius

    def slab(self, a: Flight, _: Flight) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        world = self.points @ a.R.transpose(0, 2, 1) + a.c[:, None]
        low = np.take_along_axis(world, world[..., 2].argmin(1)[:, None, None], 1)[:, 0]
        low = low - self.radius[:, None] * (0, 0, 1)
        n = np.broadcast_to([0.0, 0.0, 1.0], low.shape)
        return low[:, 2], n, low, low * (1, 1, 0)


def balls(n: int, rng: np.random.Generator) -> tuple[Model, Any]:
    centers, radii = rng.normal(size=(n, 2, 3)) * 0.15, rng.uniform(0.05, 0.3, (n, 2))
    size = np.stack([radii, 0 * radii, 0 * radii], -1)
    shapes = [BareShape("sphere", link=0), BareShape("sphere", link=1)]
    model = bodies(n, rng, shapes, shape_size=size, shape_position=centers)
    return model, Balls([centers[:, 0], centers[:, 1]], [radii[:, 0], radii[:, 1]])


def boxes(n: int, rng: np.random.Generator) -> tuple[Model, Any]:
    half = rng.uniform(0.05, 0.4, (n, 2, 3))
    shapes = [BareShape("box", link=0), BareShape("box", link=1)]
    axes = np.broadcast_to(np.eye(3), (n, 3, 3))
    corners = [CORNERS * half[:, k, None] for k in range(2)]
    return bodies(n, rng, shapes, shape_size=half), Polytopes(corners, [axes, axes], [axes, axes])


def tetrahedra(n: int, rng: np.random.Generator) -> tuple[Model, Any]:
    points = rng.normal(size=(n, 2, 4, 3)) * 0.25
    shapes = [BareShape("hull", link=k, points=np.zeros((4, 3))) for k in range(2)]
    i, j = np.triu_indices(4, 1)
    edges = [points[:, k, i] - points[:, k, j] for k in range(2)]
    three = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
    corner = [points[:, k][:, three] for k in range(2)]
    faces = [np.cross(x[:, :, 1] - x[:, :, 0], x[:, :, 2] - x[:, :, 0]) for x in corner]
    model = bodies(n, rng, shapes, points=points.reshape(n, 8, 3))
    return model, Polytopes([points[:, 0], points[:, 1]], faces, edges)


def boxes_on_a_plane(n: int, rng: np.random.Generator) -> tuple[Model, Any]:
    half = rng.uniform(0.05, 0.4, (n, 3))
    size = np.stack([half, 0 * half], 1)
    model = bodies(n, rng, [BareShape("box", link=0), BareShape("plane")], shape_size=size)
    return model, OnPlane(CORNERS * half[:, None], np.zeros(n))


def capsules_on_a_plane(n: int, rng: np.random.Generator) -> tuple[Model, Any]:
    radius, half = rng.uniform(0.02, 0.2, n), rng.uniform(0, 0.4, n)
    size = np.zeros((n, 2, 3))
    size[:, 0, 0], size[:, 0, 1] = radius, half
    model = bodies(n, rng, [BareShape("capsule", link=0), BareShape("plane")], shape_size=size)
    ends = half[:, None, None] * np.array([[0, 0, 1.0], [0, 0, -1.0]])
    return model, OnPlane(ends, radius)


FAMILIES = {
    "balls": (balls, 3500),
    "boxes": (boxes, 3000),
    "tetrahedra": (tetrahedra, 1500),
    "box-plane": (boxes_on_a_plane, 2000),
    "capsule-plane": (capsules_on_a_plane, 2000),
}  # 12 000 pairs, of which more than 10 000 begin apart


@pytest.mark.parametrize("family", FAMILIES)
def test_free_bodies_never_touch_before(family):
    make, n = FAMILIES[family]
    rng = np.random.default_rng(list(FAMILIES).index(family))
    model, oracle = make(n, rng)
    a, b = flights(model, n, rng)
    if "plane" in family:
        a.c = a.c + np.array([0, 0, 1])
    gap, normal, point_a, point_b = oracle.slab(a, b)
    rows = near_rows(0, gap[:, None], normal[:, None], point_a[:, None], point_b[:, None])
    safe = np.asarray(safe_step(model, state_of(a, b), rows))
    apart = gap > 0
    assert apart.mean() > 0.8
    assert (safe[apart] > 0).all()
    horizon = 3.0  # [s] where the bound is infinite
    until, steps = np.minimum(safe, horizon), 60
    touched = np.full(n, np.inf)
    for k in range(3 * steps // 2):  # beyond the bound too, to see how close it comes
        gap = oracle.slab(a, b)[0]
        assert k > steps or (gap > -ROUNDING)[apart].all()
        touched[(gap < 0) & np.isinf(touched)] = k / steps
        a, b = a.after(until / steps), b.after(until / steps)
    assert (touched[apart & np.isfinite(safe)] < 1.5).mean() > 0.05  # often the bound is more than 2/3 of the truth


@pytest.mark.parametrize("gravity", [0.0, -9.81])
def test_central_spheres_meet_exactly_then(gravity):
    rng = np.random.default_rng(1)
    n = 1000
    r = rng.uniform(0.01, 1, (n, 2))
    model, _ = balls(n, rng)
    model = model.replace(
        shape_position=jnp.zeros((2, 3)), shape_size=jnp.stack([r, r, r], -1), gravity=jnp.array([0.0, 0.0, gravity])
    )
    a, b = flights(model, n, rng)
    n_ba = unit(a.c - b.c)
    closing = rng.uniform(0.1, 30, n)
    a.u, b.u = a.u, a.u + n_ba * closing[:, None]  # head-on, whatever the spin: both fall alike
    gap = np.linalg.norm(a.c - b.c, axis=1) - r.sum(1)
    some = gap > 0
    point_a, point_b = a.c - n_ba * r[:, :1], b.c + n_ba * r[:, 1:]
    rows = near_rows(0, gap[:, None], n_ba[:, None], point_a[:, None], point_b[:, None])
    safe = np.asarray(safe_step(model, state_of(a, b), rows))
    np.testing.assert_allclose(safe[some], (gap / closing)[some], rtol=EXACT)


def test_a_ball_meets_a_plane_exactly_then():
    rng = np.random.default_rng(2)
    n = 1000
    model, _ = capsules_on_a_plane(n, rng)
    size = np.array(model.shape_size)
    size[:, 0, 1] = 0  # no length: a ball
    model = model.replace(shape_size=jnp.asarray(size), gravity=jnp.array([0.0, 0.0, -9.81]))
    a, b = flights(model, n, rng)
    a.c = a.c + np.array([0, 0, 3])
    up = np.broadcast_to([0.0, 0.0, 1.0], a.c.shape)
    low = a.c - up * size[:, 0, :1]
    rows = near_rows(0, low[:, None, 2], up[:, None], low[:, None], (low * (1, 1, 0))[:, None])
    safe = np.asarray(safe_step(model, state_of(a, b), rows))
    down, h, g = -a.u[:, 2], low[:, 2], 9.81
    assert (down < 0).any()
    assert (down > 0).any()
    np.testing.assert_allclose(safe, (np.sqrt(down**2 + 2 * g * h) - down) / g, rtol=EXACT)
    # a ceiling that the ball may not reach: |n.g| t^2/2 takes speed away
    above = near_rows(0, h[:, None], -up[:, None], (a.c + up * size[:, 0, :1])[:, None], (a.c + up)[:, None])
    rising = np.asarray(safe_step(model, state_of(a, b), above))
    enough = a.u[:, 2] > np.sqrt(2 * g * h)
    assert np.isinf(rising[~enough]).all()
    exact = (a.u[:, 2] - np.sqrt(np.maximum(a.u[:, 2] ** 2 - 2 * g * h, 0))) / g
    np.testing.assert_allclose(rising[enough], exact[enough], rtol=1e-9)  # the difference loses digits


def spheres_on_links(rng: np.random.Generator, topology: Topology, lanes: int, driven: tuple[int, ...]) -> Model:
    """A random forest, a ball on every link, and one plane, which may be another in every lane.

    driven: links with springs, damping, loss and motors of every kind at their joints.
    """
    model = random_model(rng, topology)
    n, owner = topology.n_links, np.repeat(np.arange(topology.n_links), np.diff(topology.v_start))
    floats = np.array([topology.joints[i] == "floating" for i in owner])
    forces = with_passive(rng, model).replace(
        motor_target=rng.normal(size=topology.nv), motor_effort=rng.uniform(0.3, 6, topology.nv)
    )
    kept = {name: np.where(np.isin(owner, driven), getattr(forces, name), getattr(model, name)) for name in FORCES}
    model = model.replace(**kept, armature=np.where(floats, 0, model.armature))
    shapes = [
        BareShape("sphere", (r, 0, 0), link=i, position=rng.normal(size=3) * 0.2)
        for i, r in enumerate(rng.uniform(0.02, 0.1, n))
    ]
    model = with_shapes(model, [*shapes, BareShape("plane")], tuple((i, n) for i in range(n)))
    position = np.broadcast_to(model.shape_position, (lanes, n + 1, 3))
    return jax.tree.map(jnp.asarray, model.replace(shape_position=position))


FORCES = (
    "damping", "loss", "stiffness", "rest", "motor_gain", "motor_kp", "motor_kd", "motor_effort", "motor_target",
)  # fmt: skip


def some_trees() -> Topology:
    """A pendulum of three links, a branching tree, a floating tree."""
    joints = ["revolute"] * 3 + ["revolute", "cylindrical", "planar"] + ["floating", "revolute", "universal"]
    parents = [-1, 0, 1, -1, 3, 3, -1, 6, 6]
    return Topology(tuple(map(str, range(9))), tuple(parents), tuple(joints))


def drawn(seed: int, links: int, **recipe: Any) -> Topology:
    return random_topology(np.random.default_rng(seed), Recipe(seed, links, **recipe))


TREES = {  # topologies, and which links' joints have forces of their own
    "pendulum, branching and floating": (some_trees(), (4, 5, 7)),
    "branching": (drawn(62, 5, branch=0.8, joints=("revolute", "spherical", "fixed", "prismatic")), ()),
    "floating": (drawn(63, 5, roots=2, floating=True, joints=("revolute", "universal")), ()),
    "driven": (drawn(64, 4, joints=("revolute", "cylindrical", "planar", "screw")), (0, 1, 2, 3)),
    "floating, driven": (drawn(65, 4, roots=2, floating=True, joints=("revolute", "universal")), (2, 3)),
}
QUICK = "floating, driven"


@jax.jit
def energy_bound(model: Model, state: State) -> Any:
    motion = link_motion(model, state)
    return motion.energy_root, motion.growth


@jax.jit
def flown(model, state, intervals):
    """q, v and t of all frames, in one step from each to the next."""
    move = scheme_named("rk4")

    def step(state, h):
        moved = move(model, state, h, None, None)
        after = State(moved.q, moved.v, state.t + h)
        return after, after

    _, later = jax.lax.scan(step, state, intervals)
    frames = jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), state, later)
    return tuple(jnp.moveaxis(x, 0, state.t.ndim) for x in (frames.q, frames.v, frames.t))


@pytest.mark.parametrize(
    "name", [name if name == QUICK else pytest.param(name, marks=pytest.mark.exhaustive) for name in TREES]
)
@pytest.mark.slow
def test_trees_never_touch_before(name):
    topology, driven = TREES[name]
    rng = np.random.default_rng(list(TREES).index(name))
    lanes, duration, frames = 340, 0.4, 120  # three trees a lane, nine links
    model = spheres_on_links(rng, topology, lanes, driven)
    q, v = random_state(rng, topology, (lanes,))
    slow = rng.choice([0.0, 0.2, 1.0, 3.0], (lanes, 1))
    state = State(jnp.asarray(q), jnp.asarray(v * slow), jnp.zeros(lanes))
    intervals = jnp.full(frames, duration / frames)  # as if the balls were not there
    run = State(*flown(model, state, intervals))

    # balls over time, and per lane a plane at a random distance below the first of them in a random direction
    poses = fk(model.replace(shape_position=model.shape_position[0]), run.q)
    at, r = np.asarray(model.shape_position)[0, :-1], np.asarray(model.shape_size)[:-1, 0]
    balls = np.asarray(poses.position) + np.einsum("lfnij,nj->lfni", np.asarray(poses.rotation), at)
    n = unit(rng.normal(size=(lanes, 3)))
    heights = np.einsum("lfni,li->lfn", balls, n) - r
    level = heights[:, 0].min(1) - 10 ** rng.uniform(-3, -0.3, lanes)
    gaps = heights - level[:, None, None]  # (lanes, frames, links)
    low = balls[:, 0] - r[:, None] * n[:, None]
    foot = low - gaps[:, 0, :, None] * n[:, None]
    links = topology.n_links
    rows = near_rows(np.arange(links), gaps[:, 0], np.broadcast_to(n[:, None], low.shape), low, foot)
    alone = jax.tree.map(lambda x: jnp.broadcast_to(x, (links, *x.shape)), rows)
    alone = alone._replace(active=jnp.broadcast_to(jnp.eye(links, dtype=bool)[:, None], (links, lanes, links)))
    safe = np.asarray(safe_step(model, state, alone)).T  # (lanes, links)

    t = np.asarray(run.t)[:, :, None]
    (root, growth), (later, _) = energy_bound(model, state), energy_bound(model, State(run.q, run.v, run.t))
    allowed = np.asarray(root)[:, None] + np.asarray(growth)[:, None] * t
    assert (np.asarray(later) <= allowed * (1 + 1e-6) + 1e-9).all()  # Runge-Kutta's own error again
    below = (gaps < -1e-7) & (t < safe[:, None])  # Runge-Kutta's own error at 2 ms
    assert not below.any(), (np.argwhere(below)[:5], gaps[below][:5])
    touches = (gaps < 0).any(1)
    assert touches.mean() > 0.05
    first = np.take_along_axis(t[..., 0], (gaps < 0).argmax(1), 1)
    ratio = safe[touches] / first[touches]
    assert np.median(ratio) > 0.03  # and they are of some use
    np.testing.assert_allclose(safe_step(model, state, rows), safe.min(1), rtol=EXACT)


BULLET, HALF = 1e-3, np.array([1.0, 0.7, 5e-4])  # radius, and half extents of a plate 1 mm thick [m]


def ball_to_box(c: np.ndarray, radius: float, half: np.ndarray) -> tuple[np.ndarray, ...]:
    """gap, normal (from the box to the ball), point on the ball, point on the box; centres c (n, 3), box at 0."""
    inside = np.all(abs(c) < half, axis=1)
    nearest = np.clip(c, -half, half)
    face = (half - abs(c)).argmin(1)
    rows = np.arange(len(c))
    out = np.zeros_like(c)
    out[rows, face] = np.where(c[rows, face] < 0, -1, 1)
    nearest[inside] = np.where(out != 0, out * half, c)[inside]
    distance = np.linalg.norm(c - nearest, axis=1)
    n = np.where(inside[:, None], out, (c - nearest) / np.maximum(distance, 1e-300)[:, None])
    gap = np.where(inside, -distance, distance) - radius
    return gap, n, c - n * radius, nearest


def bullet_model(gravity: float) -> Model:
    model = random_model(np.random.default_rng(0), Topology(("bullet",), (-1,), ("floating",)))
    model = model.replace(com=np.zeros((1, 3)), armature=np.zeros(6), gravity=np.array([0, 0, gravity]))
    shapes = [BareShape("sphere", (BULLET, 0, 0), link=0), BareShape("box", HALF)]
    return jax.tree.map(jnp.asarray, with_shapes(model, shapes, ((0, 1),)))


@pytest.mark.parametrize("aim", ["straight", "anywhere"])
def test_a_bullet_never_passes_a_plate_unseen(aim):
    rng = np.random.default_rng(11)
    n, model = 500, bullet_model(-9.81)
    target = rng.uniform(-1, 1, (n, 3)) * HALF
    way = np.tile([0.0, 0.0, -1.0], (n, 1)) if aim == "straight" else unit(rng.normal(size=(n, 3)))
    if aim == "anywhere":
        way[: n // 2, 2] *= 0.01  # half of them nearly along the plate
        way = unit(way)
    start = rng.uniform(0.01, 3, n)
    c, u = target - way * start[:, None], 1000 * way
    seen, passed = np.zeros(n, bool), np.zeros(n, bool)
    fall, steps = np.array([0, 0, -9.81]), 0
    while not (seen | passed).all():
        gap, normal, a, b = ball_to_box(c, BULLET, HALF)
        seen |= gap < 0
        q = np.concatenate([c, np.tile([1.0, 0, 0, 0], (n, 1))], 1)
        v = np.concatenate([np.zeros((n, 3)), u], 1)
        state = State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(n))
        h = np.asarray(longest_step(model, state, near_rows(0, gap[:, None], normal[:, None], a[:, None], b[:, None])))
        assert (h > 0).all()
        h = np.minimum(h, 1.0)[:, None]
        travel = u * h + fall * h * h / 2
        assert (-(travel * normal).sum(1) <= np.maximum(gap, 0) + HALF[2] + 1e-12).all()
        c, u = c + travel, u + fall * h
        passed |= ((c - target) * way).sum(1) > 3  # [m] beyond: the plate is behind
        steps += 1
        assert steps < 2000
    assert seen.all()


def spinning_cube(omega: float) -> tuple[Model, State]:
    """A cube of half extent 0.1 m, 1 m up, whose inertia lets it spin evenly."""
    model = random_model(np.random.default_rng(0), Topology(("cube",), (-1,), ("floating",)))
    model = model.replace(com=np.zeros((1, 3)), armature=np.zeros(6), gravity=np.array([0, 0, -9.81]))
    model = model.replace(inertia=0.004 * np.eye(3)[None])
    model = with_shapes(model, [BareShape("box", (0.1,) * 3, link=0), BareShape("plane")], ((0, 1),))
    state = State(jnp.array([0, 0, 1.0, 1, 0, 0, 0]), omega * jnp.array([0.6, 0.8, 0, 0, 0, 0]), jnp.array(0.0))
    return jax.tree.map(jnp.asarray, model), state


def cube_at(t: float, omega: float) -> tuple[np.ndarray, State]:
    """Its corners, and its state, at the time t."""
    turn = Rotation.from_rotvec(omega * t * np.array([0.6, 0.8, 0]))
    center = np.array([0, 0, 1 - 9.81 * t * t / 2])
    q = np.concatenate([center, np.roll(turn.as_quat(), 1)])
    v = np.array([0.6 * omega, 0.8 * omega, 0, 0, 0, -9.81 * t])
    return turn.apply(0.1 * CORNERS) + center, State(jnp.asarray(q), jnp.asarray(v), jnp.asarray(t))


@pytest.mark.parametrize("omega", [1.0, 40.0])
def test_repeated_safe_steps_converge_to_the_impact_from_below(omega):
    model, _ = spinning_cube(omega)
    t, gaps = 0.0, []
    for _ in range(60):
        corners, state = cube_at(t, omega)
        low = corners[corners[:, 2].argmin()]
        gaps.append(low[2])
        assert low[2] > -1e-15
        up = np.array([[0, 0, 1.0]])
        t += float(safe_step(model, state, near_rows(0, low[None, 2], up, low[None], low[None] * (1, 1, 0))))
    assert 0 <= gaps[-1] + 1e-15 < 1e-12
    times = np.linspace(0, t + 1e-3, 20001)
    lowest = np.array([cube_corner_height(x, omega) for x in times])
    k = (lowest < 0).argmax()
    lo, hi = times[k - 1], times[k]
    for _ in range(60):
        middle = (lo + hi) / 2
        lo, hi = (lo, middle) if cube_corner_height(middle, omega) < 0 else (middle, hi)
    assert abs(t - lo) < 1e-12


def cube_corner_height(t: float, omega: float) -> float:
    """Height of the lowest corner by Rodrigues' formula, written out apart from the library and from SciPy."""
    x, y = 0.6, 0.8
    c, s = np.cos(omega * t), np.sin(omega * t)
    row = np.array([-s * y, s * x, c])  # third row of the turn about (x, y, 0)
    return 1 - 9.81 * t * t / 2 - 0.1 * abs(row).sum()


def ball_scene(dtype: Any = float) -> tuple[Model, State]:
    """A ball of 0.1 m without gravity, and a plane."""
    model = random_model(np.random.default_rng(0), Topology(("ball",), (-1,), ("floating",)))
    model = model.replace(com=np.zeros((1, 3)), armature=np.zeros(6), gravity=np.zeros(3))
    model = with_shapes(model, [BareShape("sphere", (0.1, 0, 0), link=0), BareShape("plane")], ((0, 1),))
    state = State(jnp.array([0, 0, 1.0, 1, 0, 0, 0]), jnp.zeros(6), jnp.array(0.0))
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), (model, state))


def over_plane(gap: Any, dtype: Any = float) -> Proximities:
    return near_rows(0, [gap], [[0, 0, 1.0]], [[0, 0, gap]], [[0, 0, 0.0]], dtype)


def moving(state: State, up: float) -> State:
    return State(state.q, state.v.at[5].set(up), state.t)


@pytest.mark.parametrize(
    ("gap", "up", "g", "safe", "longest"),
    [
        (1.0, 0.0, 0.0, np.inf, np.inf),  # nothing moves
        (1.0, 2.0, 0.0, np.inf, np.inf),  # parting for ever
        (1.0, -2.0, 0.0, 0.5, 0.55),
        (0.0, -2.0, 0.0, 0.0, 0.05),  # touching, nearer
        (0.0, 0.0, 0.0, np.inf, np.inf),  # touching at rest, no weight
        (0.0, 0.0, -8.0, 0.0, np.sqrt(0.1 / 4)),  # touching at rest: weight moves it
        (0.0, 2.0, -8.0, 0.5, 0.25 + np.sqrt(0.0625 + 0.025)),  # touching, thrown up: until it is back
        (-0.3, -2.0, 0.0, 0.0, 0.05),  # overlapped: counts as touching
        (-0.3, 2.0, -8.0, 0.5, 0.25 + np.sqrt(0.0625 + 0.025)),
        (1e-300, -1e-300, 0.0, 1.0, np.inf),  # tiny numbers; 0.1/1e-300 is more than will ever pass
        (np.inf, -2.0, 0.0, np.inf, np.inf),
        (np.nan, -2.0, 0.0, 0.0, 0.0),  # nothing is known
        (1.0, np.nan, 0.0, 0.0, 0.0),
        (1.0, np.inf, 0.0, 0.0, 0.0),
    ],
)
def test_corner_cases(gap, up, g, safe, longest):
    model, state = ball_scene()
    model = model.replace(gravity=jnp.array([0, 0, g]))
    got = [float(f(model, moving(state, up), over_plane(gap))) for f in (safe_step, longest_step)]
    got[1] = np.inf if got[1] > 1e200 else got[1]
    np.testing.assert_allclose(got, [safe, longest], rtol=EXACT)


@pytest.mark.slow
def test_rows_that_are_not_there_are_not_read():
    model, state = ball_scene()
    rows = over_plane(1.0)
    normal, point_a, point_b = (jnp.concatenate([x, jnp.full((1, 3), jnp.nan)]) for x in rows[3:6])
    pair, active, gap = jnp.array([0, -1]), jnp.array([True, False]), jnp.array([1.0, jnp.nan])
    poison = Proximities(pair, active, gap, normal, point_a, point_b, rows.code, rows.needed)

    def time(v):
        return safe_step(model, State(state.q, v, state.t), poison)

    v = moving(state, -2.0).v
    assert float(time(v)) == 0.5
    slopes = jax.jacfwd(time)(v), jax.grad(time)(v)
    np.testing.assert_allclose(slopes, np.tile([0, 0, 0, 0, 0, 0.25], (2, 1)), atol=EXACT)  # d/dv (1/v) = -1/v^2


def test_no_rows_and_no_pairs_leave_time_free():
    model, state = ball_scene()
    empty = jax.tree.map(lambda x: x[:0] if x.ndim else x, over_plane(1.0))
    assert float(safe_step(model, state, empty)) == np.inf
    bare = with_shapes(model, [BareShape("plane")])
    assert float(safe_step(jax.tree.map(jnp.asarray, bare), state, empty)) == np.inf


def test_allowance_adds_to_the_gap():
    model, state = ball_scene()
    falling = moving(state, -2.0)
    assert float(safe_step(model, falling, over_plane(1.0), allowance=0.5)) == 0.75
    assert float(safe_step(model, falling, over_plane(1.0), allowance=-2.0)) == 0.0


def test_what_was_left_out_as_too_far_cannot_touch_before():
    model, state = ball_scene()
    assert float(undetected_step(model, moving(state, -2.0), 1.5)) == 0.75  # 1.5 m for the ball, 1.5 for the plane
    assert float(undetected_step(model, moving(state, np.nan), 1.5)) == 0.0
    model = model.replace(gravity=jnp.array([0, 0, -8.0]))
    np.testing.assert_allclose(undetected_step(model, state, jnp.array([[0.0], [1.0]])), [0, 0.5], rtol=EXACT)


def test_concave_ground_may_be_near_anywhere():
    # over a heightfield the ball's sideways speed counts as well as that along the normal
    model, state = ball_scene()
    field = BareShape("heightfield", (1, 1, 2), points=[[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
    ground = with_shapes(model, [BareShape("sphere", (0.1, 0, 0), link=0), field], ((0, 1),))
    ground = jax.tree.map(jnp.asarray, ground)
    sideways = State(state.q, state.v.at[3].set(-4.0), state.t)
    assert float(safe_step(model, sideways, over_plane(1.0))) == np.inf
    assert float(safe_step(ground, sideways, over_plane(1.0))) == 0.25
    falling = ground.replace(gravity=jnp.array([0, 0, -8.0]))
    np.testing.assert_allclose(safe_step(falling, state, over_plane(1.0)), 0.5, rtol=EXACT)
    np.testing.assert_allclose(longest_step(falling, state, over_plane(0.9)), 0.5, rtol=EXACT)


def test_damping_ends_the_parabola():
    # drag brings a ball that was thrown up back sooner: then only its energy counts
    model, state = ball_scene()
    model = model.replace(gravity=jnp.array([0, 0, -8.0]))
    dragged = model.replace(damping=jnp.full(6, 0.1))
    free, slow = (float(safe_step(m, moving(state, 2.0), over_plane(0.0))) for m in (model, dragged))
    assert free == 0.5
    assert slow == 0.0


@pytest.mark.slow
def test_batches_of_states_and_parameters_agree_with_one_by_one():
    rng = np.random.default_rng(4)
    model = spheres_on_links(rng, Topology(("a", "b"), (-1, 0), ("revolute", "revolute")), 3, ())
    links = 2
    q, v = random_state(rng, model.topology, (3,))
    mass = rng.uniform(0.5, 2, (3, links))
    gap, n = rng.uniform(0.1, 1, (3, links)), unit(rng.normal(size=(3, links, 3)))
    zero = np.zeros((3, links, 3))
    rows = near_rows(np.arange(links), gap, n, zero, zero)
    states = State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(3))
    together = safe_step(model.replace(mass=jnp.asarray(mass)), states, rows)
    assert together.shape == (3,)
    one = model.replace(shape_position=model.shape_position[0])
    mapped = jax.vmap(lambda state, m, r: safe_step(one.replace(mass=m), state, r))
    np.testing.assert_allclose(mapped(states, jnp.asarray(mass), rows), together, rtol=EXACT)
    # a lane that is not finite has no time, and the others keep theirs
    broken = State(states.q, states.v.at[1, 0].set(jnp.nan), states.t)
    lost = safe_step(model.replace(mass=jnp.asarray(mass)), broken, rows)
    np.testing.assert_array_equal(lost, jnp.where(jnp.arange(3) == 1, 0, together))


def test_single_precision_agrees_with_double():
    rng = np.random.default_rng(9)
    model, oracle = balls(1000, rng)
    a, b = flights(model, 1000, rng)
    gap, normal, point_a, point_b = (x[:, None] for x in oracle.slab(a, b))
    double = model, state_of(a, b), near_rows(0, gap, normal, point_a, point_b)
    single = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32) if x.dtype == jnp.float64 else x, double)
    got, wanted = np.asarray(safe_step(*single)), np.asarray(safe_step(*double))
    assert got.dtype == np.float32
    # 1e-3: what single precision gives away on principal moments; grazing lanes may differ by more, and to inf
    alike = np.isclose(got, wanted, rtol=1e-3, atol=1e-6)
    assert alike.mean() > 0.99
    assert (got <= wanted * (1 + 1e-4) + 1e-6).mean() > 0.999


def test_single_precision():
    model, state = ball_scene(jnp.float32)
    time = safe_step(model, moving(state, -2.0), over_plane(1.0, jnp.float32))
    assert time.dtype == jnp.float32
    assert float(time) == 0.5


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
@pytest.mark.slow
def test_derivatives_are_finite_at_rest(mode):
    model, state = ball_scene()
    model = model.replace(gravity=jnp.array([0, 0, -8.0]))

    def time(q, v, gap):
        return safe_step(model, State(q, v, state.t), over_plane(0.5)._replace(gap=gap[None]))

    slopes = mode(time, argnums=(0, 1, 2))(state.q, state.v, jnp.array(0.5))
    assert all(np.isfinite(x).all() for x in slopes)
    np.testing.assert_allclose(slopes[2], 1 / (8 * np.sqrt(2 * 0.5 / 8)), rtol=1e-9)  # d sqrt(2 d/g)
