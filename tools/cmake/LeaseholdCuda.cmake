# Finds nvcc and enables CUDA only then. A machine without it builds everything else.
# LEASEHOLD_HAVE_CUDA says what was decided.
set(LEASEHOLD_HAVE_CUDA OFF)
if(LEASEHOLD_CUDA)
  find_program(LEASEHOLD_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
  if(LEASEHOLD_NVCC)
    set(CMAKE_CUDA_COMPILER "${LEASEHOLD_NVCC}")
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90a-real 90-virtual)
    # CMake 3.25 has no CUDA20 dialect for nvcc 13 and would hand it -std=c++23.
    set(CMAKE_CUDA_STANDARD 17)
    enable_language(CUDA)
    set(LEASEHOLD_HAVE_CUDA ON)
  endif()
endif()
message(STATUS "CUDA backend: ${LEASEHOLD_HAVE_CUDA}")
