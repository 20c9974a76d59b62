"""What a world's bodies are made of, changed while it runs; and poses between two frames."""

import numpy as np
import pytest

import carom
from carom.scenes.live.between import between

G = 9.81


@pytest.fixture(scope="module")
def world():
    """A block that slides, and a ball that bounces."""
    b = carom.SceneBuilder(gravity=(0, 0, -G))
    b.add_plane(name="ground", friction=0.25, restitution=1.0)
    b.add_body("block", [carom.Box(half_extents=(0.2, 0.2, 0.1))], position=(0, 0, 0.1), linear_velocity=(2, 0, 0))
    b.add_body("ball", [carom.Sphere(radius=0.1, restitution=0.5)], position=(3, 3, 0.6))
    return carom.Live(b, dt=1 / 60)


def slowing(world):
    """[m/s^2] of the block, sliding."""
    before = world.velocity("block")[3]
    for _ in range(6):
        world.step()
    return (before - world.velocity("block")[3]) / 0.1


def test_friction_is_that_of_the_frames_to_come(world):
    """A block slows down by mu g, mu the geometric mean of both."""
    world.reset()
    mu = np.sqrt(0.25 * np.asarray(world.model.friction)[world._parts.bodies.owners.index("block")])
    assert slowing(world) == pytest.approx(mu * G, rel=1e-4)
    world.set_material("block", friction=0.01)
    assert slowing(world) == pytest.approx(np.sqrt(0.25 * 0.01) * G, rel=1e-4)
    world.set_material("ground", friction=0.0)
    assert slowing(world) == pytest.approx(0, abs=1e-4)


def test_restitution_is_the_smaller_one(world):
    world.reset()
    world.set_material("ball", restitution=0.8)
    drop = np.sqrt(2 * G * 0.5)
    while world.velocity("ball")[5] <= 0:
        world.step()
    bounce = [c for c in world.contact_events() if "ball" in (c.a, c.b)]
    assert bounce
    height, speed = world.pose("ball")[2] - 0.1, world.velocity("ball")[5]
    assert np.sqrt(speed**2 + 2 * G * height) == pytest.approx(0.8 * drop, rel=1e-4)


def test_what_the_law_does_not_read_is_refused_and_changes_nothing(world):
    world.reset()
    world.set_material("ground", tangential_restitution=0.5)
    with pytest.raises(ValueError, match="does not read"):
        world.set_material("ball", tangential_restitution=0.5)
    assert not np.asarray(world.model.pair_tangential_restitution).any()
    world.set_material("ball", restitution=0.3)
    world.step()
    world.reset()


def test_it_is_an_input_reset_undoes_it_and_a_save_does_not_hold_it(world):
    world.reset()
    world.step()
    start, save = world.hash(), world.save_state()
    world.step()
    usual = world.hash()
    world.load_state(save)
    world.set_material("block", friction=0.9)
    world.step()
    assert world.hash() != usual
    world.load_state(save)
    assert world.hash() == start
    world.reset()
    world.step()
    world.step()
    assert world.hash() == usual


def test_who_sleeps_wakes(world):
    """A block that lies on the flat sleeps; on ice it still does not move."""
    world.reset()
    for _ in range(240):
        world.step()
    assert world.velocity("block")[3] == 0
    assert world._now.asleep.some
    world.set_material("ground", friction=0.0)
    assert not world._now.asleep.some


@pytest.mark.parametrize(
    ("body", "given", "said"),
    [
        ("blok", {"friction": 1.0}, "body is 'blok'"),
        ("block", {"friction": -1.0}, "friction is -1"),
        ("block", {"restitution": 1.5}, "restitution is 1.5"),
    ],
)
def test_what_is_no_material_is_refused(world, body, given, said):
    before = world.model
    with pytest.raises(ValueError, match=said):
        world.set_material(body, **given)
    assert world.model is before


def test_what_the_law_does_not_read_is_refused(world):
    world.reset()
    world.set_material("ground", tangential_restitution=0.5)  # the other shape has none, nor has the pair
    before = world.model
    with pytest.raises(ValueError, match="use law='chatterjee_ruina'"):
        world.set_material("block", tangential_restitution=0.5)
    assert world.model is before


def test_poses_between_frames(world):
    world.reset()
    np.testing.assert_array_equal(world.poses(0.0), world.poses())
    before = world.poses()
    world.step()
    np.testing.assert_array_equal(world.poses(1.0), world.poses())
    np.testing.assert_allclose(world.poses(0.0), before, atol=1e-15)
    np.testing.assert_allclose(world.poses(0.25)[:, :3], 0.75 * before[:, :3] + 0.25 * world.poses()[:, :3], rtol=1e-12)
    world.teleport("ball", position=(9, 9, 9))
    ball = world.bodies.index("ball")
    np.testing.assert_array_equal(world.poses(0.5)[ball, :3], (9, 9, 9))
    with pytest.raises(ValueError, match="alpha is 2"):
        world.poses(2)


def test_attitudes_turn_evenly_by_the_shorter_way():
    """Against exact turns about random axes, up to almost half a turn, and from q to -q."""
    rng = np.random.default_rng(5)
    axis = rng.normal(size=(50, 3))
    axis /= np.linalg.norm(axis, axis=-1, keepdims=True)
    angle = np.concatenate([[0, 1e-9, 1e-5], rng.uniform(0, 3.1, 47)])[:, None]

    def turned(part):
        return np.concatenate([np.zeros((50, 3)), np.cos(part * angle / 2), np.sin(part * angle / 2) * axis], -1)

    for sign in (1, -1):
        after = turned(1) * np.array([1, 1, 1, sign, sign, sign, sign])
        for part in (0, 0.3, 0.9, 1):
            np.testing.assert_allclose(between(turned(0), after, part), turned(part), atol=1e-12)
