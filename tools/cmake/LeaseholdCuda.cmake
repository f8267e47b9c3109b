# Finds CUDA. A machine without it builds everything else.
#   LEASEHOLD_HAVE_CUDA_HEADERS   cuda.h was found: build the code that calls the driver, and test it
#                                 on the fake driver (target leasehold::cuda_headers)
#   LEASEHOLD_HAVE_CUDA           nvcc was found and LEASEHOLD_CUDA is set: build the CUDA kernels
#
#   leasehold_cuda_settings(target)   Set C++20, the include root, and host compiler warnings
set(LEASEHOLD_HAVE_CUDA OFF)
set(LEASEHOLD_HAVE_CUDA_HEADERS OFF)
find_path(LEASEHOLD_CUDA_INCLUDE cuda.h HINTS /usr/local/cuda/include ENV CUDA_HOME
          PATH_SUFFIXES include)
if(LEASEHOLD_CUDA_INCLUDE)
  set(LEASEHOLD_HAVE_CUDA_HEADERS ON)
  add_library(leasehold_cuda_headers INTERFACE)
  add_library(leasehold::cuda_headers ALIAS leasehold_cuda_headers)
  target_include_directories(leasehold_cuda_headers SYSTEM INTERFACE "${LEASEHOLD_CUDA_INCLUDE}")
endif()
if(LEASEHOLD_CUDA AND LEASEHOLD_HAVE_CUDA_HEADERS)
  find_program(LEASEHOLD_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
  if(LEASEHOLD_NVCC)
    set(CMAKE_CUDA_COMPILER "${LEASEHOLD_NVCC}")
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90a-real 90-virtual)
    enable_language(CUDA)
    # CMake 3.25 does not know that nvcc 13 supports C++20, and would pass -std=c++23 of CXX. Declare
    # the one dialect that our kernels use.
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(LEASEHOLD_HAVE_CUDA ON)
  endif()
endif()
message(STATUS "CUDA headers: ${LEASEHOLD_HAVE_CUDA_HEADERS}, kernels: ${LEASEHOLD_HAVE_CUDA}")

function(leasehold_cuda_settings target)
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
  # Without -Wpedantic, which warns about line markers in nvcc's generated host code.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow,-ffp-contract=off>)
  if(LEASEHOLD_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
  endif()
endfunction()
