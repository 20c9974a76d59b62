"""Kim (2012) sections 1.1-1.5 as property tests: the component algebra against dense matrices.

Every law is tried over batch shapes (), (1,) and (3, 1, 2) and over samples that include zero and
near-zero rotations and rotations near pi. Equation numbers are Kim's.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from carom.engine.algebra.rotation import Quat, about
from carom.engine.algebra.spatial import ArticulatedInertia, Force, Motion, RigidInertia, Transform
from carom.engine.algebra.vec3 import Mat3, Sym3, Vec3, skew
from carom.engine.algebra.zero import ZERO

SHAPES = [(), (1,), (3, 1, 2)]
ANGLES = {"random": None, "zero": 0.0, "tiny": 1e-9, "small": 1e-3, "switch": 0.5, "near pi": np.pi - 1e-6}
EXACT = 1e-13  # a handful of f64 roundings on numbers of order one

laws = pytest.mark.parametrize("shape", SHAPES, ids=str)
angles = pytest.mark.parametrize("kind", ANGLES)


def draw(shape, *own, seed=0):
    """Random numbers (*shape, *own) that really differ."""
    x = np.random.default_rng([seed, *own, *shape]).normal(size=(*shape, *own))
    assert len(np.unique(x)) == x.size
    return x


def rotation_vectors(shape, kind):
    phi = draw(shape, 3, seed=1)
    if ANGLES[kind] is None:
        return phi
    return phi / np.linalg.norm(phi, axis=-1, keepdims=True) * ANGLES[kind]


def vec(a):
    return Vec3(*(jnp.asarray(a[..., k]) for k in range(3)))


def motion(a):
    return Motion(vec(a[..., :3]), vec(a[..., 3:]))


def force(a):
    return Force(vec(a[..., :3]), vec(a[..., 3:]))


def array(x):
    """Vec3, Quat, Motion, Force -> (..., n); Mat3 -> (..., 3, 3)."""
    if isinstance(x, Sym3):
        return array(x.full)
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(x)]
    out = np.stack(np.broadcast_arrays(*leaves), -1)
    return out.reshape((*out.shape[:-1], 3, 3)) if isinstance(x, Mat3) else out


def pose(shape, kind="random", seed=2):
    return Transform(Quat.exp(vec(rotation_vectors(shape, kind))).matrix(), vec(draw(shape, 3, seed=seed)))


def hat(w):
    z = np.zeros(w.shape[:-1])
    x, y, t = w[..., 0], w[..., 1], w[..., 2]
    return np.stack([np.stack(r, -1) for r in ((z, -t, y), (t, z, -x), (-y, x, z))], -2)


def blocks(a, b, c, d):
    return np.concatenate([np.concatenate([a, b], -1), np.concatenate([c, d], -1)], -2)


def Ad_matrix(T):
    """(7)"""
    R, p = array(T.R), array(T.p)
    return blocks(R, 0 * R, hat(p) @ R, R)


def ad_matrix(V):
    """(27)"""
    w, v = hat(array(V.w)), hat(array(V.v))
    return blocks(w, 0 * w, v, w)


def homogeneous(T):
    R, p = array(T.R), array(T.p)
    out = np.zeros((*p.shape[:-1], 4, 4))
    out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = R, p, 1
    return out


def times(A, x):
    return np.einsum("...ij,...j->...i", A, x)


def body(shape, seed=3):
    """A physical inertia: mass, centre of mass, principal moments that satisfy the triangle inequality."""
    m, c = np.abs(draw(shape, seed=seed)) + 0.5, draw(shape, 3, seed=seed + 1)
    d = np.abs(draw(shape, 3, seed=seed + 2)) + 0.1
    R = array(Quat.exp(vec(draw(shape, 3, seed=seed + 3))).matrix())
    Ic = np.einsum("...ij,...j,...kj->...ik", R, d.sum(-1, keepdims=True) - d, R)
    return RigidInertia.about_com(jnp.asarray(m), vec(c), Sym3.of(jnp.asarray(Ic))), m, c, Ic


def inertia_matrix(inertia):
    """The 6x6 matrix whose columns are the momenta of unit twists."""
    units = [motion(np.eye(6)[k]) for k in range(6)]
    columns = [array(inertia @ u) for u in units]
    return np.stack(np.broadcast_arrays(*columns), -1)


@laws
@angles
def test_exponential_of_rotation_is_the_matrix_exponential(shape, kind):
    phi = rotation_vectors(shape, kind)
    ours = array(Quat.exp(vec(phi)).matrix())
    theirs = np.array([expm(m) for m in hat(phi).reshape(-1, 3, 3)]).reshape(ours.shape)
    np.testing.assert_allclose(ours, theirs, atol=EXACT)


@laws
@angles
def test_logarithm_of_rotation_undoes_exponential(shape, kind):
    phi = rotation_vectors(shape, kind)
    phi = phi * np.minimum(1, 3 / np.linalg.norm(phi, axis=-1, keepdims=True).clip(1e-300)) if kind == "random" else phi
    q = Quat.exp(vec(phi))
    np.testing.assert_allclose(array(q.log()), phi, atol=1e-12)
    np.testing.assert_allclose(array(Quat(*(-x for x in jax.tree.leaves(q))).log()), phi, atol=1e-12)  # double cover


@laws
@angles
def test_exponential_of_screw_motion_is_the_matrix_exponential(shape, kind):
    w, v = rotation_vectors(shape, kind), draw(shape, 3, seed=5)
    ours = homogeneous(Transform.exp(Motion(vec(w), vec(v))))
    xi = np.zeros((*w.shape[:-1], 4, 4))
    xi[..., :3, :3], xi[..., :3, 3] = hat(w), v
    theirs = np.array([expm(m) for m in xi.reshape(-1, 4, 4)]).reshape(ours.shape)
    np.testing.assert_allclose(ours, theirs, atol=EXACT)


@laws
@angles
def test_logarithm_of_pose_undoes_exponential(shape, kind):
    w, v = rotation_vectors(shape, kind), draw(shape, 3, seed=5)
    w = w * np.minimum(1, 3 / np.linalg.norm(w, axis=-1, keepdims=True)) if kind == "random" else w
    xi = Transform.exp(Motion(vec(w), vec(v))).log()
    loose = 1e-9 if kind == "near pi" else 1e-12  # at pi the logarithm jumps; near it digits are lost
    np.testing.assert_allclose(array(xi), np.concatenate([w, v], -1), atol=loose)


@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-5, 0.4999, 0.5001, 1.0])
@pytest.mark.slow
def test_exponential_and_logarithm_have_exact_derivatives(size):
    """jvp and grad against central differences in the direction of a random tangent, also at zero angle."""
    w = np.array([0.6, -0.48, 0.64]) * size
    xi = np.concatenate([w, [0.3, -0.2, 0.5]])
    tangent = np.array([0.2, 0.7, -0.4, 0.1, -0.9, 0.3])

    def there_and_back(xi):
        T = Transform.exp(motion(xi))
        back = T.log()
        return jnp.stack(jax.tree.leaves((T, back)))

    _, rate = jax.jvp(there_and_back, (jnp.asarray(xi),), (jnp.asarray(tangent),))
    h = 1e-5
    numeric = (there_and_back(xi + h * tangent) - there_and_back(xi - h * tangent)) / (2 * h)
    np.testing.assert_allclose(rate, numeric, atol=1e-9)  # h^2 and rounding/h of the difference quotient
    np.testing.assert_allclose(rate[-6:], tangent, atol=1e-12)  # log after exp is the identity
    reverse = jax.grad(lambda x: there_and_back(x)[4])(jnp.asarray(xi))
    forward = jax.jacfwd(lambda x: there_and_back(x)[4])(jnp.asarray(xi))
    np.testing.assert_allclose(reverse, forward, atol=1e-14)
    second = jax.hessian(lambda x: there_and_back(x)[0])(jnp.asarray(xi))
    assert np.isfinite(second).all()


@laws
@angles
def test_quaternions_multiply_as_rotations_do(shape, kind):
    a, b = Quat.exp(vec(rotation_vectors(shape, kind))), Quat.exp(vec(draw(shape, 3, seed=7)))
    x = draw(shape, 3, seed=8)
    A, B = array(a.matrix()), array(b.matrix())
    np.testing.assert_allclose(array((a * b).matrix()), A @ B, atol=EXACT)
    np.testing.assert_allclose(array(a.rotate(vec(x))), times(A, x), atol=EXACT)
    np.testing.assert_allclose(array((a * a.conjugate()).matrix()), np.broadcast_to(np.eye(3), A.shape), atol=EXACT)
    again = Quat.from_matrix(a.matrix())
    np.testing.assert_allclose(array(again.matrix()), A, atol=1e-12)


@laws
def test_rotation_about_an_axis(shape):
    axis = draw(shape, 3, seed=9)
    axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
    angle = draw(shape, seed=10)
    R = array(about(vec(axis), jnp.asarray(angle)))
    np.testing.assert_allclose(R, array(Quat.exp(vec(axis * angle[..., None])).matrix()), atol=EXACT)


@laws
@angles
def test_poses_form_a_group(shape, kind):
    a, b = pose(shape, kind), pose(shape, seed=12)
    np.testing.assert_allclose(homogeneous(a @ b), homogeneous(a) @ homogeneous(b), atol=EXACT)
    np.testing.assert_allclose(homogeneous(a.inverse()), np.linalg.inv(homogeneous(a)), atol=EXACT)
    x = draw(shape, 3, seed=13)
    moved = times(homogeneous(a), np.concatenate([x, np.ones((*shape, 1))], -1))[..., :3]
    np.testing.assert_allclose(array(a @ vec(x)), moved, atol=EXACT)


@laws
@angles
def test_Ad_and_its_dual(shape, kind):
    """(6)-(8): Ad_T xi is T xi T^-1; the dual is the transpose; both respect composition."""
    T, S = pose(shape, kind), pose(shape, seed=14)
    V, F = draw(shape, 6, seed=15), draw(shape, 6, seed=16)
    np.testing.assert_allclose(array(T.Ad(motion(V))), times(Ad_matrix(T), V), atol=EXACT)
    xi = np.zeros((*shape, 4, 4))
    xi[..., :3, :3], xi[..., :3, 3] = hat(V[..., :3]), V[..., 3:]
    conjugated = homogeneous(T) @ xi @ np.linalg.inv(homogeneous(T))
    np.testing.assert_allclose(hat(array(T.Ad(motion(V)).w)), conjugated[..., :3, :3], atol=EXACT)
    np.testing.assert_allclose(array(T.Ad(motion(V)).v), conjugated[..., :3, 3], atol=EXACT)
    np.testing.assert_allclose(array(T.Ad_dual(force(F))), times(np.swapaxes(Ad_matrix(T), -1, -2), F), atol=EXACT)
    composed = T @ S
    assert isinstance(composed, Transform)
    np.testing.assert_allclose(array(composed.Ad(motion(V))), array(T.Ad(S.Ad(motion(V)))), atol=EXACT)
    np.testing.assert_allclose(
        array(motion(V).dot(T.Ad_dual(force(F)))), array(T.Ad(motion(V)).dot(force(F))), atol=EXACT
    )


@laws
def test_ad_and_its_dual(shape):
    """(26)-(29): ad by its matrix, its dual by the transpose, the Lie bracket's axioms, d/dt Ad_exp(tV) = ad_V."""
    V, W, U, F = (draw(shape, 6, seed=20 + k) for k in range(4))
    v, w, u = motion(V), motion(W), motion(U)
    np.testing.assert_allclose(array(v.ad(w)), times(ad_matrix(v), W), atol=EXACT)
    np.testing.assert_allclose(array(v.ad_dual(force(F))), times(np.swapaxes(ad_matrix(v), -1, -2), F), atol=EXACT)
    np.testing.assert_allclose(array(v.ad(w)), -array(w.ad(v)), atol=EXACT)
    jacobi = v.ad(w.ad(u)) + w.ad(u.ad(v)) + u.ad(v.ad(w))
    np.testing.assert_allclose(array(jacobi), 0, atol=10 * EXACT)
    _, rate = jax.jvp(lambda t: Transform.exp(v * t).Ad(w), (jnp.zeros(()),), (jnp.ones(()),))
    np.testing.assert_allclose(array(rate), array(v.ad(w)), atol=EXACT)


@laws
@angles
def test_frame_changes_of_velocity_force_momentum_and_inertia(shape, kind):
    """(11), (13), (15), (21), (24): power and kinetic energy do not depend on the frame."""
    T = pose(shape, kind)  # {A} -> {B}
    Ia, *_ = body(shape)
    Va, Fa = motion(draw(shape, 6, seed=30)), force(draw(shape, 6, seed=31))
    Vb, Fb, Ib = T.inverse().Ad(Va), T.Ad_dual(Fa), T.inertia(Ia)
    scale = 50 * EXACT  # sums of a few dozen products
    np.testing.assert_allclose(array(Vb.dot(Fb)), array(Va.dot(Fa)), atol=scale)
    np.testing.assert_allclose(array(Vb.dot(Ib @ Vb)), array(Va.dot(Ia @ Va)), rtol=scale)
    np.testing.assert_allclose(array(Ib @ Vb), array(T.Ad_dual(Ia @ Va)), atol=scale)
    dense = np.swapaxes(Ad_matrix(T), -1, -2) @ inertia_matrix(Ia) @ Ad_matrix(T)
    np.testing.assert_allclose(inertia_matrix(Ib), dense, atol=scale)


@laws
def test_generalized_inertia_is_the_integral_over_the_mass(shape):
    """(20), (22): symmetric, positive definite, and the sum over point masses with the same m, c, Ic."""
    inertia, m, c, Ic = body(shape)
    I6 = inertia_matrix(inertia)
    np.testing.assert_allclose(I6, np.swapaxes(I6, -1, -2), atol=EXACT)
    assert (np.linalg.eigvalsh(I6) > 0).all()
    # six points c +- sqrt(3 J_k / m) e_k, each m/6, have second moment J = tr(Ic)/2 - Ic about c
    J = np.trace(Ic, axis1=-2, axis2=-1)[..., None, None] / 2 * np.eye(3) - Ic
    d, E = np.linalg.eigh(J)
    total = np.zeros((*shape, 6, 6))
    for k in range(3):
        for sign in (1, -1):
            r = c + sign * np.sqrt(3 * d[..., k] / m)[..., None] * E[..., :, k]
            G = np.concatenate([-hat(r), np.broadcast_to(np.eye(3), (*shape, 3, 3))], -1)
            total += np.swapaxes(G, -1, -2) @ G * (m / 6)[..., None, None]
    np.testing.assert_allclose(I6, total, atol=1e-12)


@laws
@angles
def test_equation_of_motion_does_not_depend_on_the_frame(shape, kind):
    """(31): F = I V' - ad*_V I V in frame A, taken to B by (11), (13), (21), is the same equation there."""
    T = pose(shape, kind)
    Ia, *_ = body(shape)
    Va, Aa = motion(draw(shape, 6, seed=40)), motion(draw(shape, 6, seed=41))

    def wrench(inertia, V, A):
        return inertia @ A - V.ad_dual(inertia @ V)

    Ib, Vb, Ab = T.inertia(Ia), T.inverse().Ad(Va), T.inverse().Ad(Aa)
    there = T.Ad_dual(wrench(Ia, Va, Aa))
    np.testing.assert_allclose(array(wrench(Ib, Vb, Ab)), array(there), atol=1e-11)


@laws
def test_momentum_is_carried_along(shape):
    """(28), (30): in a frame that moves with the body, d/dt L = L' - ad*_V L keeps the inertial momentum."""
    V, L = motion(draw(shape, 6, seed=50)), force(draw(shape, 6, seed=51))

    def inertial(t):  # the body-frame momentum that solves L' = ad*_V L, seen from the inertial frame
        T = Transform.exp(V * t)
        return T.inverse().Ad_dual(L + V.ad_dual(L) * t)

    _, rate = jax.jvp(inertial, (jnp.zeros(()),), (jnp.ones(()),))
    np.testing.assert_allclose(array(rate), 0, atol=EXACT * 10)


@laws
def test_shift_of_origin(shape):
    """`at` and `from_point` are Ad and its duals for a pure translation; rigid and articulated agree."""
    r = vec(draw(shape, 3, seed=60))
    inertia, *_ = body(shape, seed=61)
    V, F = motion(draw(shape, 6, seed=62)), force(draw(shape, 6, seed=63))
    eye = Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    T = Transform(eye, r)  # origin -> point
    np.testing.assert_allclose(array(V.at(r)), array(T.inverse().Ad(V)), atol=EXACT)
    np.testing.assert_allclose(array(F.from_point(r)), array(T.inverse().Ad_dual(F)), atol=EXACT)
    moved = inertia.from_point(r)
    np.testing.assert_allclose(array(moved @ V), array((inertia @ V.at(r)).from_point(r)), atol=1e-12)
    general = inertia.as_articulated().from_point(r)
    np.testing.assert_allclose(array(general @ V), array(moved @ V), atol=1e-12)


@laws
def test_articulated_inertia_against_dense(shape):
    a = draw(shape, 6, 6, seed=70)
    a = a @ np.swapaxes(a, -1, -2)
    j = jnp.asarray(a)
    H = Mat3(*(j[..., i, 3 + k] for i in range(3) for k in range(3)))
    IA = ArticulatedInertia(Sym3.of(j[..., :3, :3]), H, Sym3.of(j[..., 3:, 3:]))
    V, U, s = draw(shape, 6, seed=71), draw(shape, 6, seed=72), draw(shape, seed=73)
    np.testing.assert_allclose(array(IA @ motion(V)), times(a, V), atol=1e-12)
    updated = IA - ArticulatedInertia.outer(force(U), jnp.asarray(s))
    dense = a - s[..., None, None] * U[..., :, None] * U[..., None, :]
    np.testing.assert_allclose(array(updated @ motion(V)), times(dense, V), atol=1e-12)
    np.testing.assert_allclose(array(IA.A.inverse()), np.linalg.inv(a[..., :3, :3]), rtol=1e-8, atol=1e-10)


def test_zero_absorbs_and_vanishes():
    v, x = Vec3(1.0, 2.0, 3.0), jnp.arange(3.0)
    assert ZERO + v is v
    assert v + ZERO is v
    assert v - ZERO is v
    assert v * ZERO is ZERO
    assert ZERO * v is ZERO
    assert x * ZERO is ZERO
    assert ZERO * x is ZERO
    assert np.float64(2) * ZERO is ZERO
    assert isinstance(np.float64(2) * v, Vec3)
    assert ZERO + x is x
    assert x + ZERO is x
    assert (ZERO - x == -x).all()
    assert x - ZERO is x
    assert v.cross(ZERO) is ZERO
    assert ZERO.cross(v) is ZERO
    assert v.dot(ZERO) is ZERO
    assert jax.tree.leaves(ZERO) == []
    assert jax.jit(lambda z: z)(ZERO) is ZERO
    product = (skew(v) @ Vec3(0.0, 0.0, 1.0), v.cross(Vec3(0.0, 0.0, 1.0)))
    assert [float(k) for k in jax.tree.leaves(product[0])] == [float(k) for k in jax.tree.leaves(product[1])]
