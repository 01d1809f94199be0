"""NVIDIA GPUs: kernels from Imp, as PTX text.

    typed function --lowering/--> Imp with Grid regions --outline--> host Imp + kernels --codegen, target--> PTX

`lowering` writes what one GPU thread does for every operator; `outline` cuts the regions out of the function, which
leaves a host part that launches them; `codegen` prints a kernel as LLVM IR with the same code that the CPU uses and
`target` has LLVM's NVPTX back end make PTX of it. `emulator` executes PTX text without a GPU.
"""
