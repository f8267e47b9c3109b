# Build options. Only presets set them.
option(LEASEHOLD_BUILD_TESTS "Build the test programs" ON)
option(LEASEHOLD_WARNINGS_AS_ERRORS "Treat every compiler warning as an error" OFF)
option(LEASEHOLD_CUDA "Build the CUDA backend when nvcc is found" ON)
set(LEASEHOLD_SANITIZE "" CACHE STRING "Sanitizers, as given to -fsanitize= (empty for none)")
set(LEASEHOLD_OPTIMISE "" CACHE STRING "Compile options of targets with the precompiled header network")
option(LEASEHOLD_FUZZ "Build the libFuzzer targets" OFF)

# Whether the CPU that the build is for has the SIMD paths; other CPUs use plain C++.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(LEASEHOLD_X86_64 ON)
else()
  set(LEASEHOLD_X86_64 OFF)
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# mold links the test programs several times faster than the default linker. A compiler for another
# CPU does not find it.
find_program(LEASEHOLD_MOLD mold)
if(LEASEHOLD_MOLD AND NOT CMAKE_CROSSCOMPILING)
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=mold>)
endif()

find_program(LEASEHOLD_CCACHE ccache)
if(LEASEHOLD_CCACHE)
  # ccache caches units with precompiled headers only with these settings.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${LEASEHOLD_CCACHE}")
endif()
