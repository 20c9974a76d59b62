"""Contacts of random bodies at one instant, and independent answers: NumPy and SciPy only.

A scene is rigid bodies, contacts between them, and their free velocities; `W`, `b` are what the contacts feel:
u = W p + b, all in the contact frames (t1, t2, n).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls, root

WIDTH = 6  # degrees of freedom of a free body: rotation, then translation, world axes, about its centre of mass
WORLD = -1


@dataclass(frozen=True)
class Body:
    mass: float
    inertia: NDArray  # (3, 3) about the centre of mass
    position: NDArray  # (3,)


@dataclass(frozen=True)
class Contact:
    a: int  # body, or WORLD
    b: int
    point: NDArray
    normal: NDArray  # from b to a


@dataclass(frozen=True)
class Scene:
    """J: (C, 3, n, 6).  Minv: (n, 6, 6).  V: (n, 6) free velocities.  mu, target: (C,).  trees: (C, 2)."""

    J: NDArray
    Minv: NDArray
    V: NDArray
    mu: NDArray
    target: NDArray
    trees: NDArray

    @property
    def C(self) -> int:
        return len(self.mu)

    @cached_property
    def Y(self) -> NDArray:
        """(C, 3, n, 6)."""
        return np.einsum("nij,cknj->ckni", self.Minv, self.J)

    @cached_property
    def W(self) -> NDArray:
        """(3 C, 3 C)."""
        return np.einsum("cinj,dknj->cidk", self.J, self.Y).reshape(3 * self.C, -1)

    @property
    def b(self) -> NDArray:
        """(3 C,) free relative velocities less the targets."""
        u = np.einsum("cknj,nj->ck", self.J, self.V)
        u[:, 2] -= self.target
        return u.ravel()

    def after(self, p: NDArray) -> NDArray:
        """Velocities (n, 6) after impulses (C, 3)."""
        return self.V + np.einsum("cknj,ck->nj", self.Y, p)

    def energy(self, V: NDArray) -> float:
        """Kinetic [J]."""
        return 0.5 * sum(v @ np.linalg.solve(m, v) for v, m in zip(V, self.Minv, strict=True))


def scene(bodies: list[Body], contacts: list[Contact], V: ArrayLike, mu: ArrayLike, target: ArrayLike = 0.0):
    n, C = len(bodies), len(contacts)
    J, trees = np.zeros((C, 3, n, WIDTH)), np.full((C, 2), n)
    for c, contact in enumerate(contacts):
        R = frame(contact.normal)
        for side, (body, sign) in enumerate(((contact.a, 1), (contact.b, -1))):
            if body != WORLD:
                trees[c, side] = body
                J[c, :, body, 3:] += sign * R
                J[c, :, body, :3] += sign * np.cross(contact.point - bodies[body].position, R)
    Minv = np.zeros((n, WIDTH, WIDTH))
    for i, body in enumerate(bodies):
        Minv[i, :3, :3], Minv[i, 3:, 3:] = np.linalg.inv(body.inertia), np.eye(3) / body.mass
    each = lambda x: np.broadcast_to(np.asarray(x, float), C).copy()  # noqa: E731
    return Scene(J, Minv, np.asarray(V, float), each(mu), each(target), trees)


def frame(normal: NDArray) -> NDArray:
    """(3, 3), rows t1, t2, n."""
    n = np.asarray(normal, float) / np.linalg.norm(normal)
    t = np.cross(np.eye(3)[np.argmin(np.abs(n))], n)
    t /= np.linalg.norm(t)
    return np.array([t, np.cross(n, t), n])


# -- scenes ---------------------------------------------------------------------------------------


def heap(rng: np.random.Generator, bodies: int, contacts: int, friction: float = 1.0, masses: float = 3.0) -> Scene:
    """Random bodies that touch anywhere, each other and the world, and move anyhow.

    masses: drawn between 1/masses and masses. friction: drawn between 0 and this.
    """

    def body() -> Body:
        half = rng.uniform(0.2, 1, 3)
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        mass = masses ** rng.uniform(-1, 1)
        return Body(mass, R @ box_inertia(mass, half) @ R.T, rng.uniform(-2, 2, 3))

    all_bodies = [body() for _ in range(bodies)]

    def contact() -> Contact:
        a, b = (int(k) for k in rng.choice(np.arange(WORLD, bodies), 2, replace=False))
        point = all_bodies[max(a, b)].position + rng.uniform(-0.7, 0.7, 3)
        return Contact(a, b, point, rng.normal(size=3))

    V = rng.normal(size=(bodies, WIDTH))
    return scene(all_bodies, [contact() for _ in range(contacts)], V, rng.uniform(0, friction, contacts))


def stack(boxes: int, half: float, mu: float, V: NDArray) -> Scene:
    """Cubes of 1 kg on each other and on the ground, four corners a face; V (boxes, 6)."""
    bodies = [Body(1.0, box_inertia(1.0, [half] * 3), np.array([0, 0, half * (2 * i + 1)])) for i in range(boxes)]
    corners = [np.array([x, y, 0]) for x in (-half, half) for y in (-half, half)]
    contacts = [
        Contact(i, i - 1, corner + np.array([0, 0, 2 * half * i]), np.array([0.0, 0, 1]))
        for i in range(boxes)
        for corner in corners
    ]
    return scene(bodies, contacts, V, mu)


def side_by_side(a: Scene, b: Scene) -> Scene:
    """Both, of which neither touches the other."""
    (m, n), rows = (len(a.V), len(b.V)), np.zeros((a.C + b.C, 3, len(a.V) + len(b.V), a.V.shape[1]))
    rows[: a.C, :, :m], rows[a.C :, :, m:] = a.J, b.J
    trees = [np.where(s.trees == len(s.V), m + n, s.trees + first) for s, first in ((a, 0), (b, m))]
    both = (np.concatenate(x) for x in ((a.Minv, b.Minv), (a.V, b.V), (a.mu, b.mu), (a.target, b.target), trees))
    return Scene(rows, *both)


def slope(degrees: float, mu: float, V: ArrayLike) -> Scene:
    """A cube of 1 kg on a slope that falls towards -x; V (6,)."""
    angle = np.radians(degrees)
    normal = np.array([-np.sin(angle), 0, np.cos(angle)])
    down = np.array([-np.cos(angle), 0, -np.sin(angle)])
    across = np.array([0.0, 1, 0])
    corners = [0.5 * (x * down + y * across - normal) for x in (-1, 1) for y in (-1, 1)]
    contacts = [Contact(0, WORLD, corner, normal) for corner in corners]
    return scene([Body(1.0, box_inertia(1.0, [0.5] * 3), np.zeros(3))], contacts, np.asarray(V)[None], mu)


def balls_on_board(force: NDArray, h: float, g: float) -> Scene:
    """references.md, SimBenchmark: its rolling scene at the first step. A force pulls the board under 25 balls."""
    board = Body(10.0, box_inertia(10.0, [10, 10, 0.5]), np.array([0, 0, 0.5]))
    up = np.array([0.0, 0, 1])
    contacts = [Contact(0, WORLD, np.array([x, y, 0.0]), up) for x in (-10, 10) for y in (-10, 10)]
    bodies = [board]
    for x in range(-4, 5, 2):
        for y in range(-4, 5, 2):
            bodies.append(Body(1.0, np.eye(3) * 0.1, np.array([x, y, 1.5])))
            contacts.append(Contact(len(bodies) - 1, 0, np.array([x, y, 1.0]), up))
    V = np.zeros((26, WIDTH))
    V[:, 5] = -g * h
    V[0, 3:] += np.asarray(force) * h / board.mass
    return scene(bodies, contacts, V, np.array([0.4] * 4 + [0.8] * 25))


def cradle(balls: int, target: ArrayLike = 0.0) -> Scene:
    """A row of equal balls that touch; the first comes in with 1 m/s. No friction."""
    bodies = [Body(1.0, np.eye(3) * 0.1, np.array([float(i), 0, 0])) for i in range(balls)]
    contacts = [Contact(i, i + 1, np.array([i + 0.5, 0, 0]), np.array([-1.0, 0, 0])) for i in range(balls - 1)]
    V = np.zeros((balls, WIDTH))
    V[0, 3] = 1
    return scene(bodies, contacts, V, 0.0, target)


def box_inertia(mass: float, half: NDArray | list) -> NDArray:
    x, y, z = np.asarray(half) ** 2
    return np.diag([y + z, x + z, x + y]) * mass / 3


# -- answers --------------------------------------------------------------------------------------


def frictionless(s: Scene) -> NDArray:
    """Velocities (n, 6) after the contacts of a scene without friction: nearest to V, in the metric of the masses, of
    all that close nowhere. min |L^T (v - V)| with J_n v >= target is a least-distance problem, solved by nnls on its
    dual (Lawson & Hanson, chapter 23): v - V = M^-1 J_n^T p, p = argmin p W p / 2 + p b, p >= 0."""
    n = 6 * len(s.V)
    L = np.zeros((n, n))  # M^-1 = L L^T
    for i, block in enumerate(s.Minv):
        L[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = np.linalg.cholesky(block)
    G = s.J[:, 2].reshape(s.C, n) @ L
    h = -s.b[2::3]  # G x >= h
    E, f = np.vstack([G.T, h]), np.append(np.zeros(n), 1.0)
    y, _ = nnls(E, f, maxiter=1000)
    r = E @ y - f
    return s.V + (L @ (-r[:n] / r[n])).reshape(s.V.shape)


def law_error(s: Scene, p: NDArray, u: NDArray) -> dict[str, float]:
    """How far impulses (C, 3) and relative velocities less targets (C, 3) are from each clause of Coulomb's law.

    Velocities in units of the largest free one, impulses in units of what their own K makes of it.
    """
    size = np.abs(s.b).max()
    k = np.array([np.trace(s.W[3 * c : 3 * c + 3, 3 * c : 3 * c + 3]) / 3 for c in range(s.C)])
    p, u = p * k[:, None] / size, u / size
    slip, pull = np.hypot(u[:, 0], u[:, 1]), np.hypot(p[:, 0], p[:, 1])
    limit = s.mu * p[:, 2]
    opposed = p[:, :2] * slip[:, None] + limit[:, None] * u[:, :2]  # vanishes where it slips, and where u_t = 0
    return {
        "pulls": max(0, -p[:, 2].min()),
        "closes": max(0, -u[:, 2].min()),
        "acts apart": float(np.minimum(np.abs(p[:, 2]), np.abs(u[:, 2])).max()),
        "outside the cone": max(0, (pull - limit).max()),
        "slips inside the cone": float(np.minimum(slip, np.maximum(limit - pull, 0)).max()),
        "not opposed": float(np.minimum(np.hypot(*opposed.T), slip).max()),
    }


def polished(s: Scene, p: NDArray) -> tuple[NDArray, float]:
    """Impulses (C, 3) that solve the law's equations near p, by SciPy's hybrid method, and what is left of them.

    Written out by behaviour: open p = 0, sticking u = 0, slipping u_n = 0 and p_t |u_t| + mu p_n u_t = 0. Which of them
    a contact shows is read from p; a solution that is none is not a root near by.
    """
    u = (s.W @ p.ravel() + s.b).reshape(-1, 3)
    size = np.abs(s.b).max()
    slip = np.hypot(u[:, 0], u[:, 1]) > 1e-6 * size
    closed = p[:, 2] > 1e-6 * np.abs(p).max()

    def equations(x: NDArray) -> NDArray:
        p = x.reshape(-1, 3)
        u = (s.W @ x + s.b).reshape(-1, 3)
        along = np.hypot(u[:, 0], u[:, 1])
        friction = p[:, :2] * along[:, None] + (s.mu * p[:, 2])[:, None] * u[:, :2]
        across = np.where(slip[:, None], friction, u[:, :2])
        return np.where(closed[:, None], np.column_stack([across, u[:, 2]]), p).ravel()

    found = root(equations, p.ravel(), tol=1e-13)
    return found.x.reshape(-1, 3), float(np.abs(equations(found.x)).max())
