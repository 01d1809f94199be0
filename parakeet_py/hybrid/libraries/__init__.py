"""NVIDIA's libraries, which do on CUDA devices what they do better than kernels of ours: cuBLAS, cuFFT, cuSOLVER."""
