"""Closed loops: joints in addition to those of the tree, held by constraint forces.

Constraints: `kinds.py`, `evaluation.py` (errors and rates), `jacobian.py`; springs and penalties: `active_forces.py`.
Systems of constraint forces: `proximal.py`; of floating bodies `kkt.py`, by `elimination.py` in `elimination_order.py`.
Dynamics with them, named as in `dynamics/`: `forward.py`, `inverse.py`, `hybrid.py`, `impulse.py`, `wrenches.py`,
`energy.py`; stabilisation: `projection.py`.
"""
