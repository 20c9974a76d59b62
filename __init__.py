"""Carom: event-exact, impulse-based simulation of rigid and articulated bodies, batched with JAX.

The public face. Names are looked up on first use (PEP 562), so that `import carom` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    # describe a scene
    "SceneBuilder": "scenes.builder",
    "SceneSpec": "scenes.spec",
    "BodySpec": "scenes.spec",
    "Fixed": "scenes.joint_specs",
    "Revolute": "scenes.joint_specs",
    "Prismatic": "scenes.joint_specs",
    "Screw": "scenes.joint_specs",
    "Cylindrical": "scenes.joint_specs",
    "Universal": "scenes.joint_specs",
    "Planar": "scenes.joint_specs",
    "Spherical": "scenes.joint_specs",
    "Floating": "scenes.joint_specs",
    "Motor": "scenes.joint_specs",
    "Distance": "scenes.loop_specs",
    "Spring": "scenes.loop_specs",
    "Rolling": "scenes.loop_specs",
    "Gear": "scenes.loop_specs",
    "Driven": "scenes.loop_specs",
    "Sphere": "collision.shapes",
    "Plane": "collision.shapes",
    "Box": "collision.shapes",
    "Capsule": "collision.shapes",
    "Cylinder": "collision.shapes",
    "Ellipsoid": "collision.shapes",
    "ConvexHull": "collision.shapes",
    "Mesh": "collision.shapes",
    "Heightfield": "collision.shapes",
    "load": "scenes.sources",
    "save_scene": "scenes.sources",
    "import_urdf": "scenes.formats.urdf",
    "import_mjcf": "scenes.formats.mjcf",
    "FileError": "scenes.formats.errors",
    "ChainSpec": "scenes.chains.spec",
    "ChainJoint": "scenes.chains.spec",
    "Ground": "scenes.chains.spec",
    # compile it
    "compile_scene": "scenes.compile",
    "SceneError": "scenes.compiling.check",
    "SceneWarning": "scenes.compiling.check",
    "Model": "engine.model",
    "State": "engine.state",
    # ask what is near what
    "detect": "collision.detect",
    "Proximities": "collision.proximities",
    "cast_rays": "collision.queries.rays",
    # ask what an impact does
    "resolve_impact": "contact.resolve",
    "register_law": "contact.registration",
    "register_resting_law": "contact.registration",
    "collision_matrix": "contact.matrix",
    # let time pass
    "rollout": "integrators.rollout",
    "Options": "integrators.options",
    "step": "integrators.advance",
    "tile": "integrators.rollout",
    "Rollout": "integrators.rollout",
    "Stats": "integrators.rollout",
    "Events": "integrators.recording",
    "Code": "engine.results",
    "SimulationError": "engine.results",
    "SimulationWarning": "engine.results",
    "state_hash": "integrators.snapshots",
    "model_hash": "integrators.snapshots",
    "Live": "scenes.live.world",
    "Trigger": "scenes.live.triggers",
    "Character": "scenes.live.character",
    "DebugLines": "scenes.live.debug",
    "Contact": "scenes.live.touching",
    "Hit": "scenes.live.asking",
    # ship it without Python
    "export_library": "scenes.export.library",
    "export_page": "scenes.export.page",
    # tasks for learners
    "make_env": "scenes.envs.registry",
    "Environment": "scenes.envs.environment",
    "AutoReset": "scenes.envs.wrappers",
    "NormalizeObservation": "scenes.envs.wrappers",
    "Task": "scenes.envs.scene_task",
    "register_task": "scenes.envs.registry",
    "register_envs": "scenes.envs.registration",
    # planar chains
    "Chain": "engine.planar.model",
    "ChainState": "engine.planar.model",
    "ChainDrive": "engine.planar.model",
    "chain_state": "engine.planar.angles",
    "chain_angles": "engine.planar.angles",
    "chain_angular": "engine.planar.angles",
    "chain_accelerations": "engine.planar.accelerations",
    "chain_impulses": "engine.planar.accelerations",
    "chain_force_jacobian": "engine.planar.sensitivity",
    "chain_torque_jacobian": "engine.planar.sensitivity",
    "chain_torques": "engine.planar.sensitivity",
    "chain_energy": "engine.planar.energy",
    "chain_momentum": "engine.planar.energy",
    "chain_rollout": "integrators.planar.rollout",
    "stack_chains": "scenes.chains.batch",
    "chain_twin": "scenes.chains.twin",
    # keep what came of it
    "record": "scenes.running",
    "replay": "scenes.replaying",
    "Recording": "scenes.recordings.recording",
    "read_recording": "scenes.recordings.file",
    "write_recording": "scenes.recordings.file",
    "save_checkpoint": "scenes.recordings.checkpoint",
    "load_checkpoint": "scenes.recordings.checkpoint",
    # run many with other numbers
    "sweep": "scenes.sweeps.shards",
    "Sweep": "scenes.sweeps.result",
    # ask for its dynamics
    "fk": "engine.dynamics.kinematics",
    "site_poses": "engine.dynamics.sites",
    "site_velocities": "engine.dynamics.sites",
    "integrate_q": "engine.dynamics.kinematics",
    "rnea": "engine.dynamics.rnea",
    "aba": "engine.dynamics.aba",
    "crba": "engine.dynamics.crba",
    "hybrid": "engine.dynamics.hybrid",
    "rnea_derivatives": "engine.dynamics.derivatives.inverse",
    "aba_derivatives": "engine.dynamics.derivatives.forward",
    "hybrid_derivatives": "engine.dynamics.derivatives.hybrid",
    "close_loops": "engine.loops.projection",
    "closed": "engine.loops.jacobian",
    "constrained": "engine.loops.forward",
    "constrained_inverse": "engine.loops.inverse",
    "constrained_hybrid": "engine.loops.hybrid",
    "joint_wrenches": "engine.dynamics.wrenches",
    "loop_wrenches": "engine.loops.wrenches",
    "impulse_response": "engine.dynamics.impulse",
    "passive_forces": "engine.dynamics.passive",
    "motor_forces": "engine.dynamics.passive",
    "energy": "engine.loops.energy",
    "momentum": "engine.dynamics.energy",
    "jacobian": "engine.dynamics.jacobian",
}

if TYPE_CHECKING:  # the same table once more, as type checkers read it
    from .collision.detect import detect as detect
    from .collision.proximities import Proximities as Proximities
    from .collision.queries.rays import cast_rays as cast_rays
    from .collision.shapes import Box as Box
    from .collision.shapes import Capsule as Capsule
    from .collision.shapes import ConvexHull as ConvexHull
    from .collision.shapes import Cylinder as Cylinder
    from .collision.shapes import Ellipsoid as Ellipsoid
    from .collision.shapes import Heightfield as Heightfield
    from .collision.shapes import Mesh as Mesh
    from .collision.shapes import Plane as Plane
    from .collision.shapes import Sphere as Sphere
    from .contact.matrix import collision_matrix as collision_matrix
    from .contact.registration import register_law as register_law
    from .contact.registration import register_resting_law as register_resting_law
    from .contact.resolve import resolve_impact as resolve_impact
    from .engine.dynamics.aba import aba as aba
    from .engine.dynamics.crba import crba as crba
    from .engine.dynamics.derivatives.forward import aba_derivatives as aba_derivatives
    from .engine.dynamics.derivatives.hybrid import hybrid_derivatives as hybrid_derivatives
    from .engine.dynamics.derivatives.inverse import rnea_derivatives as rnea_derivatives
    from .engine.dynamics.energy import momentum as momentum
    from .engine.dynamics.hybrid import hybrid as hybrid
    from .engine.dynamics.impulse import impulse_response as impulse_response
    from .engine.dynamics.jacobian import jacobian as jacobian
    from .engine.dynamics.kinematics import fk as fk
    from .engine.dynamics.kinematics import integrate_q as integrate_q
    from .engine.dynamics.passive import motor_forces as motor_forces
    from .engine.dynamics.passive import passive_forces as passive_forces
    from .engine.dynamics.rnea import rnea as rnea
    from .engine.dynamics.sites import site_poses as site_poses
    from .engine.dynamics.sites import site_velocities as site_velocities
    from .engine.dynamics.wrenches import joint_wrenches as joint_wrenches
    from .engine.loops.energy import energy as energy
    from .engine.loops.forward import constrained as constrained
    from .engine.loops.hybrid import constrained_hybrid as constrained_hybrid
    from .engine.loops.inverse import constrained_inverse as constrained_inverse
    from .engine.loops.jacobian import closed as closed
    from .engine.loops.projection import close_loops as close_loops
    from .engine.loops.wrenches import loop_wrenches as loop_wrenches
    from .engine.model import Model as Model
    from .engine.planar.accelerations import chain_accelerations as chain_accelerations
    from .engine.planar.accelerations import chain_impulses as chain_impulses
    from .engine.planar.angles import chain_angles as chain_angles
    from .engine.planar.angles import chain_angular as chain_angular
    from .engine.planar.angles import chain_state as chain_state
    from .engine.planar.energy import chain_energy as chain_energy
    from .engine.planar.energy import chain_momentum as chain_momentum
    from .engine.planar.model import Chain as Chain
    from .engine.planar.model import ChainDrive as ChainDrive
    from .engine.planar.model import ChainState as ChainState
    from .engine.planar.sensitivity import chain_force_jacobian as chain_force_jacobian
    from .engine.planar.sensitivity import chain_torque_jacobian as chain_torque_jacobian
    from .engine.planar.sensitivity import chain_torques as chain_torques
    from .engine.results import Code as Code
    from .engine.results import SimulationError as SimulationError
    from .engine.results import SimulationWarning as SimulationWarning
    from .engine.state import State as State
    from .integrators.advance import step as step
    from .integrators.options import Options as Options
    from .integrators.planar.rollout import chain_rollout as chain_rollout
    from .integrators.recording import Events as Events
    from .integrators.rollout import Rollout as Rollout
    from .integrators.rollout import Stats as Stats
    from .integrators.rollout import rollout as rollout
    from .integrators.rollout import tile as tile
    from .integrators.snapshots import model_hash as model_hash
    from .integrators.snapshots import state_hash as state_hash
    from .scenes.builder import SceneBuilder as SceneBuilder
    from .scenes.chains.batch import stack_chains as stack_chains
    from .scenes.chains.spec import ChainJoint as ChainJoint
    from .scenes.chains.spec import ChainSpec as ChainSpec
    from .scenes.chains.spec import Ground as Ground
    from .scenes.chains.twin import chain_twin as chain_twin
    from .scenes.compile import compile_scene as compile_scene
    from .scenes.compiling.check import SceneError as SceneError
    from .scenes.compiling.check import SceneWarning as SceneWarning
    from .scenes.envs.environment import Environment as Environment
    from .scenes.envs.registration import register_envs as register_envs
    from .scenes.envs.registry import make_env as make_env
    from .scenes.envs.registry import register_task as register_task
    from .scenes.envs.scene_task import Task as Task
    from .scenes.envs.wrappers import AutoReset as AutoReset
    from .scenes.envs.wrappers import NormalizeObservation as NormalizeObservation
    from .scenes.export.library import export_library as export_library
    from .scenes.export.page import export_page as export_page
    from .scenes.formats.errors import FileError as FileError
    from .scenes.formats.mjcf import import_mjcf as import_mjcf
    from .scenes.formats.urdf import import_urdf as import_urdf
    from .scenes.joint_specs import Cylindrical as Cylindrical
    from .scenes.joint_specs import Fixed as Fixed
    from .scenes.joint_specs import Floating as Floating
    from .scenes.joint_specs import Motor as Motor
    from .scenes.joint_specs import Planar as Planar
    from .scenes.joint_specs import Prismatic as Prismatic
    from .scenes.joint_specs import Revolute as Revolute
    from .scenes.joint_specs import Screw as Screw
    from .scenes.joint_specs import Spherical as Spherical
    from .scenes.joint_specs import Universal as Universal
    from .scenes.live.asking import Hit as Hit
    from .scenes.live.character import Character as Character
    from .scenes.live.debug import DebugLines as DebugLines
    from .scenes.live.touching import Contact as Contact
    from .scenes.live.triggers import Trigger as Trigger
    from .scenes.live.world import Live as Live
    from .scenes.loop_specs import Distance as Distance
    from .scenes.loop_specs import Driven as Driven
    from .scenes.loop_specs import Gear as Gear
    from .scenes.loop_specs import Rolling as Rolling
    from .scenes.loop_specs import Spring as Spring
    from .scenes.recordings.checkpoint import load_checkpoint as load_checkpoint
    from .scenes.recordings.checkpoint import save_checkpoint as save_checkpoint
    from .scenes.recordings.file import read_recording as read_recording
    from .scenes.recordings.file import write_recording as write_recording
    from .scenes.recordings.recording import Recording as Recording
    from .scenes.replaying import replay as replay
    from .scenes.running import record as record
    from .scenes.sources import load as load
    from .scenes.sources import save_scene as save_scene
    from .scenes.spec import BodySpec as BodySpec
    from .scenes.spec import SceneSpec as SceneSpec
    from .scenes.sweeps.result import Sweep as Sweep
    from .scenes.sweeps.shards import sweep as sweep

__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
