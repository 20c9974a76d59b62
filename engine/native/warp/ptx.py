"""From LLVM's text to PTX, the assembly language that NVIDIA's drivers compile for the GPU they drive."""

from __future__ import annotations

from ..machine import llvm

TRIPLE = "nvptx64-nvidia-cuda"
OLDEST = "sm_80"  # a GPU runs code for older ones


def ptx_of(text: str) -> str:
    """Return PTX of LLVM's text. No operation is contracted: each says how it rounds."""
    binding = llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(cpu=OLDEST, opt=2)
    module = binding.parse_assembly(text)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    module.verify()
    return machine.emit_assembly(module)
