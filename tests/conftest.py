"""How tests run JAX: double precision, on the CPU, with one cache of compiled programs for all of them."""

import contextlib
import ctypes
import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jax
import pytest

# in the environment too, for the subprocesses of tests
SHARED = {
    "jax_platforms": os.environ.get("JAX_PLATFORMS", "cpu"),
    "jax_compilation_cache_dir": str(Path(__file__).parents[1] / ".cache" / "jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}
for name, value in SHARED.items():
    os.environ[name.upper()] = str(value)
    jax.config.update(name, value)

# Tests compile more than they run: XLA's older emitters without LLVM's optimisations compile three times as
# fast, and our own compiler six times as fast. Set XLA_FLAGS (empty, for the code users get) and this stays out of
# the way, as CI does for its last stage.
FAST = "0" if os.environ.get("XLA_FLAGS") is None else "2"
if jax.__version_info__[:2] == (0, 10):  # XLA aborts on flags that it does not know
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0")

os.environ.setdefault("CAROM_NATIVE_LEVEL", FAST)
os.environ.setdefault("CAROM_CACHE", str(Path(__file__).parents[1] / ".cache" / "native"))

jax.config.update("jax_enable_x64", True)  # here only: what runs outside chooses for itself

LARGE = 9 << 28  # bytes of a worker's memory

hypothesis.settings.register_profile(
    "carom",
    deadline=None,  # the first example of each shape compiles
    max_examples=30,
    derandomize="CI" in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("carom")


# a minute or more: first, or at the end a worker would wait for them
LONGEST = (
    "test_of_a_ball_after_three_bounces[reverse-float64-1e-09]", "test_code_of_a_page[derivatives]",
    "test_forty_windows", "test_every_robot_moves_as_in_pinocchio_or_is_refused_with_a_reason",
    "test_code_of_the_tour", "test_scenes_keep_their_promises[ragdoll]", "test_other_commands_work",
    "test_two_processes", "test_of_a_ball_after_three_bounces[forward-float64-1e-09]",
)  # fmt: skip
# dear, and close to others of the same test: by hand
BY_HAND = (
    r"test_export_inputs.py::test_(a_lift_is_where_it_is_told_to_be|pushes_in_the_axes_of_a_body)",
    r"test_reverse_mode_says_what_to_do\[step\]",
    r"test_programs\[(60|80|1[024]0)\]",
    r"test_longer_programs\[10[234]0\]",
    r"test_narrow_laws.py::test_(single_precision|derivative_of_the_gap)\[ellipsoid-ellipsoid\]",
    r"test_narrow_laws.py::test_single_precision\[hull-hull\]",
    r"test_no_point_and_no_joint_is_faster\[.*-seed5[25]-",
    r"test_tree_in_double_precision\[.*-seed12\]",
    r"test_(impulse.py::.*-seed403|matrix.py::.*-seed503)\]",
    r"test_scene_runs_as_with_xla\[(billiard_stroke|ragdoll|multi_01|hopper)\]",
    r"test_all_parameters_per_lane\[a state for each lane\]",
    r"test_derivatives_are_finite_for_shapes_without_size\[jacrev\]",
    r"test_exponential_and_logarithm_have_exact_derivatives\[1e-12\]",
    r"test_mixed_system\[.*-seed301\]",
    r"test_cradle_one_by_one\[\(1.0, 1.0, 1.0, 1.0, 1.0\)-1.0\]",
    r"test_kane_pendulum\[(newton|poisson)-",
    r"test_cradle_with_gaps\[",
    r"test_limit_of_a_random_tree\[.*-seed601\]",
    r"test_constrained_hybrid.py::.*\[torque\]",
    r"test_a_prism_on_its_face_loses_no_area\[(5|20)-box\]",
    r"test_envs.py::test_a_lane_is_the_same_bits_anywhere\[(.*-float32|weightlifter-tree-float64)\]",
    r"test_cone.py::test_(coulombs_law|a_stack_of_ten_boxes_stands)\[.*f32\]",
    r"test_no_point_and_no_joint_is_faster\[.*-seed54-",
    r"test_against_mujoco.py::.*-seed20[35]\]",
    r"test_tree_in_single_precision\[.*-seed15\]",
    r"test_matrix.py::.*-seed50[24]\]",
    r"test_mixed_system\[.*-seed302\]",
    r"test_narrow_laws.py::test_single_precision\[heightfield-sphere\]",
    r"test_narrow_gaps.py::.*\[(ellipsoid-ellipsoid|hull-hull|heightfield-box)-",
    r"test_free_bodies_never_touch_before\[tetrahedra\]",
    r"test_safe_step.py::test_single_precision_agrees_with_double",
    r"test_detect_lanes.py::test_single_precision_stays_single",
    r"test_a_block_stands_on_its_four_corners_in_any_yaw\[box-cube\]",
    r"test_planar.py::test_lanes\[float32\]",
    r"test_of_a_ball_after_three_bounces\[forward",
    r"test_dynamics_bench_runs_and_agrees|test_collision_bench_runs_and_agrees|test_envs_bench_and_its_engines",
    r"test_dynamics_derivatives.py::.*-seed621\]",
    r"test_compiled_in_tiles_and_batched_parameters",
    r"test_accelerations_of_every_joint|test_a_chain_falls_on_a_floor|test_maximal.py::test_runs_agree\[every_joint\]",
    r"test_turned_bodies_against_fcl\[(cylinder|capsule)\]",
    r"heightfield-ellipsoid|cylinder-cylinder-random-32",
    r"test_vmap_is_native_batch",
    r"test_scene_is_not_left_to_xla\[(simbench_666|dominoes|free_bodies|stack)\]",
    r"test_against_the_general_tree\[(17|60)\]",
    r"test_compiled_as_one_program\[chain",
    r"test_compiled_lanes\[float32\]",
    r"test_rims_that_cross",
    r"test_against_pinocchio.py::.*-seed25\]",
    r"test_derivative_by_the_state\[aba-random\]",
    r"engine/test_loops.py::test_(projection_and_impulses|single_precision)",
    r"test_no_point_and_no_joint_is_faster\[10links",
    r"test_large_meshes_take_seconds",
    r"test_both_detectors_agree_on_an_articulated_scene",
    r"test_cone.py::test_derivatives",
    r"test_readout_balances_forces",
    r"test_cradle_all_at_once",
    r"test_energy_of_an_impulse",
    r"test_forest.py::test_one_parameter_per_lane\[(gravity|axis|armature|stiffness)\]",
    r"test_the_public_functions_forward_derivative",
    r"test_trees_never_touch_before",
    # derivatives of whole steps compile for a minute
    r"test_islands.py::test_(what_lands_together|second_derivatives)|test_sleep.py::test_derivatives_do_not_sleep",
    r"test_joint_friction.py::test_(derivatives_of_|lanes_side_by_side)",
    r"test_derivative_by_the_state\[(aba|energy)-zero\]",
    r"test_scene_is_not_left_to_xla\[(chain_of_blocks|pyramid|rimless_wheel|multi_04|block_on_ramp|coin|tippe_top)\]",
    r"test_scene_is_not_left_to_xla\[billiard_stroke\]|test_scene_runs_as_with_xla\[five_bar\]",
    r"test_thin_bodies_strike_when_steps_a_thousandth_as_long_say_so\[kinds4|test_by_need.py::.*\[40\]",
    r"test_every_processor_has_the_bits_of_this_machine\[.*x86-64-v2",
    r"test_an_arm_that_leans_on_the_ground_and_sticks_stands\[7|test_faults.py::.*\[side by side",
    r"test_a_step_and_a_world_make_room|test_all_impacts_of_one_instant|test_a_log_has_a_largest_size",
    r"test_scene_runs_as_with_xla\[bouncing_ball\]|test_scene_is_not_left_to_xla\[humanoid\]",
    r"test_resting_models.py::.*\[microcollisions\]|test_scene_carries_the_friction\[cart_triple",
    r"test_scene_can_be_traced_as_it_is_played\[(?!ragdoll|rod_drop|simbench_666|stack|four_bar|pool_break|hopper)",
    r"test_scene_is_not_left_to_xla\[(simbench_bouncing|newtons_cradle|multi_0[25]|arm7|spinning_platter)\]",
    r"test_an_arm_that_leans_on_the_ground_and_sticks_stands\[-20|test_what_piles_up_is_stopped_without_bounce\[98\]",
    r"test_a_heavy_box_rides_down_a_slope_on_a_light_one\[100.0\]|test_reverse_derivatives",
    r"test_derivative_by_the_parameters\[energy\]|test_resolved.py::.*-seed902\]",
    r"test_thin_bodies_strike_when_steps_a_thousandth_as_long_say_so\[kinds0-100",
    r"test_scene_is_not_left_to_xla\[(?!ragdoll|pool_break|rod_drop|painleve_rod|four_bar|gear_pair|hexapod|hopper|swing)",
    r"test_thin_bodies_strike_when_steps_a_thousandth_as_long_say_so\[kinds[123]-.*-1e-05",
    r"test_more_random_programs\[5000[2468]0|test_derivative_of_the_gap\[(plane-box|capsule-capsule|sphere-box)",
    r"test_swapping_the_bodies_mirrors_the_row\[(sphere-box|capsule-capsule|box-box)",
    r"test_a_parameter_that_is_changed_changes_a_run\[(com|inertia|loop_quaternion|loop_damp|gap_band)",
    r"test_scenes_keep_their_promises\[(slider_crank|peaucellier|bennett|rolling_disc|multi_11|multi_13)",
    r"test_many_programs\[100000\]|test_lanes_and_derivatives_of_many\[300000\]|test_longer_programs\[1010\]",
    r"test_programs_of_special_numbers\[50000\]|test_programs\[(0|40)\]|test_start_bench_of_a_ball",
    r"test_every_processor_has_the_bits_of_this_machine\[.*x86-64-v3|test_what_was_prepared_is_what_the_driver",
    r"test_a_gpu_is_given_the_programs_of_a_cpu\[contacts|test_the_corners_of_a_face_are_kept_whatever_hovers\[0",
    r"test_agrees_with_an_integration_in_p_z_often\[(newton|poisson)",
    r"test_warp.py::test_more_random_programs\[5001|test_warp.py::test_random_programs\[False-(8|16|24)-",
    r"test_warp.py::test_library_scenes_have_the_bits_of_the_cpu\[(pool_break|ragdoll)",
    r"test_scene_can_be_traced_as_it_is_played\[(pool_break|stack|rod_drop|simbench_666)",
    r"test_scene_is_not_left_to_xla\[(pool_break|rod_drop|painleve_rod|gear_pair|swing)",
    r"test_a_derivative_goes_by_one_clock|test_inside_jit_and_forward_derivatives|test_many_damaged_mjcf_files",
    r"test_scene_runs_as_with_xla\[switched\]|test_a_lane_is_the_same_wherever_it_runs|test_policy_gradients_swing",
    r"test_whatever_a_world_is_told_it_stays_sound\[12.0-float64|test_whatever_is_typed_is_done_or_refused\[1\]",
    r"test_a_step_of_its_own_for_each_lane\[(lie_midpoint|semi_implicit)",
    r"test_impulse_is_a_force_over_the_step\[(rk4|semi_implicit)|test_derivative_by_the_parameters\[aba\]",
    r"test_stack_of_ten_stands|test_single.py::test_impact_in_a_step|test_lanes_side_by_side_report_the_same",
    r"test_whatever_is_typed_is_done_or_refused|test_many_damaged_urdf_files|test_whatever_becomes_of_a_scene.*\[0\]",
    r"test_warp.py::test_library_scenes_have_the_bits_of_the_cpu\[stack|test_many_longer_programs\[200000\]",
    r"test_a_control_that_holds_numbers|test_what_is_not_asked_for_changes_nothing|test_orders_wake_it",
    r"test_random_heaps.py::test_nothing_breaks\[float64\]|test_scene_is_not_left_to_xla\[ragdoll",
    r"test_memory_does_not_go_with_the_lanes|test_the_page_shows_what_its_address_says\[t=0.1",
    r"test_box_holds_on_a_slope|test_links_in_another_order|test_what_is_cut_comes_to_the_same\[0\]",
    r"test_every_processor_has_the_bits_of_this_machine\[bouncing_ball|test_a_live_world_makes_room",
    r"test_a_world_whose_ticks_are_used_up|test_a_walker_that_falls_gets_to_the_end",
    r"test_ticks_are_those_of_the_busiest|test_ten_thousand_links_take_seconds|test_derivatives_of_many_go_both_ways",
    r"test_library_scenes_have_the_bits_of_the_cpu|test_code_that_is_not_optimised|test_compiled_as_one_program\[free",
    r"test_forward_derivatives_are_differences\[stronge|test_safe_step.py::test_(batches_of_states|.*\[jacrev)",
    r"test_heaps_never_gain_energy_and_end_apart\[sequential|test_many.py::test_where_there_is_no_room",
    r"test_determine.py::test_(room_for_contacts|what_is_active)|test_links_answer_by_their_apparent",
    r"test_longer_programs\[1000\]|test_near_pairs_have_their_rows_and_far_pairs_a_bound\[None",
    r"test_matrix.py::test_lanes_are_single_scenes",
    r"test_exponential_and_logarithm_have_exact_derivatives\[1e-05|test_each_tree_of_a_forest|test_box_slides_on_a_slope",
    r"test_forest.py::test_one_parameter_per_lane\[mass|test_constrained_hybrid.py::.*\[constraint_force\]",
    r"test_against_mujoco.py::.*-seed204\]|test_warp.py::test_more_random_programs\[500000-warp|test_work_grows_linearly",
    r"test_impulse.py::.*-seed402\]|test_a_superball_bounces.*\[0.6\]|test_agrees_with_an_integration_in_p_z_often\[stronge",
)
# seen by CI, and not each time
SLOW = (
    r"test_programs\[[24]0\]", r"test_longer_programs\[1010\]",
    r"test_derivative_by_the_state\[(aba|energy|integrate_q)-zero\]",
    r"test_narrow_laws.py::test_rigid_motion_of_both_keeps_the_gap\[heightfield-box",
    r"test_an_arm_that_leans_on_the_ground_and_sticks_stands|test_an_arm_pushed_up_harder",
    r"test_a_load_below_the_bound_is_held_and_one_above_it_falls\[friction\]|test_a_box_pushes_a_rough_slider",
    r"test_a_linkage_with_one_stiff_joint|test_joint_friction.py::test_(single_precision|other_schemes|a_motor_against)",
    r"test_all_impacts_of_one_instant|test_the_log_grows_and_is_the_one_of_a_larger",
    r"test_thin_bodies_strike_when_steps_a_thousandth_as_long_say_so\[kinds[123]",
    r"test_a_rattleback_never_strikes_and_keeps_its_energy\[0.016",
    r"test_sliding_block_stops",
    r"test_stands_still\[100.0\]",
    r"test_programs\[0\]|test_longer_programs|test_a_thousand_bodies_compile_quickly|test_derivatives_know_no_cases",
    r"test_(cells_and_matrix_agree|first_set_is_nonzero|radii_may_be_shared).*\[(1|0.0-1|cells)\]",
    r"test_order\[(lie_midpoint|rk4|semi)|test_hybrid.py::.*-seed302\]|test_free_bodies_never_touch_before\[boxes\]",
    r"test_every_scene_compiles_and_is_the_same_each_time\[(hexapod|peaucellier|bennett|five_bar|slider_crank)\]",
    r"test_forward_derivatives|test_a_lane_is_the_same_bits_anywhere\[weightlifter-(planar|closed)",
    r"test_a_loop_closes_where_its_first_frame_is|test_a_tree_of_everything|test_a_superball_bounces.*\[1.0\]",
    r"test_by_need.py::.*\[40\]|test_no_end_of_a_whip|test_a_step_and_a_world_make_room|test_where_there_is_no_room",
    r"test_scene_carries_the_friction|test_a_disc_rolls_on_its_edge_in_the_longest_steps\[0.0\]",
    r"test_a_heavy_box_rides_down_a_slope_on_a_light_one|test_a_parameter_that_is_changed_changes_a_run\[(gap_band|mass)",
    r"test_nothing_is_compiled_again|test_what_piles_up_is_stopped_without_bounce",
    r"test_resolved.py::.*-seed90[23]\]|test_by_need.py::test_a_run_is_the_same|test_a_log_has_a_largest_size",
    r"test_a_superball_bounces.*\[0.6\]|test_a_load_below_the_bound_is_held_and_one_above_it_falls\[motor\]",
    r"test_a_parameter_that_is_changed_changes_a_run\[(rest_speed|com|loss|loop_position|loop_stiff)\]",
    r"test_a_bullet_strikes_a_door_of_a_millimetre_in_time\[straight\]|test_stands_still\[10000.0\]",
    r"test_a_heavy_ball_that_falls_on_a_light_one_is_stopped\[1000.0\]|test_a_rotor_spins_down_in_its_time",
    r"test_matrix.py::test_rows_of_many_contacts_are_the_dense_ones\[.*-seed501\]|test_what_is_sure_never_was_deeper",
    r"test_lanes_sleep_each_for_itself|test_what_turns_about_a_clock_does_not_sleep",
    r"test_orders_wake_it|test_a_world_asleep|test_a_crooked_stack|test_the_least_slope_starts",
    r"test_a_lane_that_needs_room_gets_it|test_by_need.py::test_near_pairs.*\[None\]",
    r"test_thin_bodies_strike.*\[kinds0|test_a_disc_rolls_on_its_edge_in_the_longest_steps\[1e-06\]",
    r"test_rollout.py::test_single_precision_stays_single\[(ragdoll|dominoes|stack)\]",
    r"test_a_parameter_that_is_changed_changes_a_run\[(shape_size|inertia|loop_quaternion|loop_damp)\]",
    r"test_joint_friction.py::test_(two_links_that_stick|a_joint_held_at_its_limit|a_free_body_brakes|steps_of_fixed)",
    r"test_joint_friction.py::test_(a_world_for_games|joints_of_several|a_motor_keeps|losses_that_are_traced)",
    r"test_a_box_that_topples.*\[0.0166|test_a_rattleback_is_of_order_2",
    r"test_a_heavy_ball_that_falls_on_a_light_one_is_stopped\[1000000.0\]|test_superball.py::test_its_books",
    r"test_against_mujoco.py::.*-seed204\]|test_no_point_and_no_joint_is_faster\[1links|test_a_twin_is_where_its",
    r"test_equalities_are_loops|test_nothing_is_driven_through_a_wall|test_a_plate_that_falls_any_way_up",
    r"test_a_step_gives_up_after|test_a_stiff_joint_over_a_floor|test_broad_phase_loses_no_pair_of_fifty",
    r"test_what_rests_comes_to_stand_still_and_sleeps|test_cli.py::test_run_leaves_a_recording",
    r"test_window.py::test_(a_world|where_events|equal_balls|a_bullet|what_is_deep|derivatives)",
    r"test_a_frame_takes_no_more_ticks_than_allowed|test_a_disc_goes_round_on_its_edge|test_pairs_take_the_smaller",
    r"test_lanes_in_blocks_are_the_same_alone|test_schemes.py::test_(order\[exact|lie_midpoint_runs|long_energy)",
)  # fmt: skip
# slow tests that share a program, a library or a page
EXPORTS = tuple(f"test_export{x}.py" for x in ("", "_changes", "_page"))
WORLDS = "test_live_changes.py", "test_live_growth.py", "test_sensors.py", "test_readouts.py"
TOGETHER = ("test_gradients.py", "test_pool_break.py", "test_site.py", *EXPORTS, *WORLDS)
PAIR = re.compile(r".*/test_narrow_(?:gaps|laws)\.py::\w+\[([a-z]+-[a-z]+)\b.*\]")


# what took more than 2.5 s on two busy cores (`pytest --durations=0`): slow, though nothing else says the same
LONG = frozenset(Path(__file__).with_name("slow.txt").read_text().splitlines())


@pytest.hookimpl(tryfirst=True)  # before marks are looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests first."""
    for item in items:
        if any(re.search(pattern, item.nodeid) for pattern in BY_HAND):
            item.add_marker(pytest.mark.exhaustive)
        if item.nodeid in LONG or any(re.search(pattern, item.nodeid) for pattern in SLOW):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: LONGEST.index(item.name) if item.name in LONGEST else len(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What shares programs goes to one worker: all tests of a pair of shapes, and of a file; slow tests (`--dist
    loadgroup`) one by one, but for some files.

    Not by marks `xdist_group`, which xdist 3.8 writes into names where pytest 9.2 does not look.
    """
    from xdist.scheduler import LoadScopeScheduling

    dist = config.getvalue("dist")
    if dist not in ("load", "loadgroup"):
        return None
    config.option.loadscopereorder = False

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if pair := PAIR.fullmatch(nodeid):
                return pair[1]
            file = nodeid.partition("::")[0]
            return file if dist == "load" or file.endswith(TOGETHER) else nodeid

    return Together(config, log)


@pytest.fixture(autouse=True)
def _room_for_the_next_test() -> Iterator[None]:
    """A worker's memory would grow to many gigabytes: of what was freed and kept, and of compiled programs.

    What is still needed of these comes back from the cache on disk. Commands in single precision switch the double one
    off: it is switched on again.
    """
    yield
    jax.config.update("jax_enable_x64", True)
    for step in (gc.collect, jax.clear_caches):
        if _resident() < LARGE:
            return
        step()
        with contextlib.suppress(OSError, AttributeError):  # not everybody's C library can
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def _resident() -> int:
    """Bytes of memory that this process holds; 0 where nobody says."""
    counts = Path("/proc/self/statm")
    return int(counts.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if counts.exists() else 0
