# Compiles CUDA kernels with the host compiler, for the runner in tests/support/simt.
#
#   leasehold_simt_kernels(NAME SOURCES a.cu …)   Object library leasehold_NAME, alias leasehold::NAME.
#                                                 A program that links it finds its kernels with
#                                                 simt::find. The fake driver links all of them.
#   LEASEHOLD_HAVE_SIMT                           Whether the runner is built. Not with
#                                                 ThreadSanitizer, which does not support its fibers.
#   LEASEHOLD_HAVE_FAKE_CUDA, LEASEHOLD_FAKE_CUDA_DIR
#                                                 Whether the fake driver is built, and its folder
#
# A .cu file is CUDA in another target, so each one is included in a generated C++ file.
option(LEASEHOLD_EMULATED_CARD "Build the tests that run kernels for cards on the CPU" ON)
set(LEASEHOLD_HAVE_SIMT OFF)
if(LEASEHOLD_BUILD_TESTS AND LEASEHOLD_EMULATED_CARD AND NOT LEASEHOLD_SANITIZE MATCHES "thread")
  set(LEASEHOLD_HAVE_SIMT ON)
endif()
set(LEASEHOLD_HAVE_FAKE_CUDA OFF)
if(LEASEHOLD_HAVE_SIMT AND LEASEHOLD_HAVE_CUDA_HEADERS)
  set(LEASEHOLD_HAVE_FAKE_CUDA ON)
endif()
set(LEASEHOLD_FAKE_CUDA_DIR "${CMAKE_BINARY_DIR}/fake_cuda")

function(leasehold_simt_kernels name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  set(wrappers "")
  foreach(source IN LISTS arg_SOURCES)
    get_filename_component(path "${source}" ABSOLUTE)
    file(RELATIVE_PATH include "${CMAKE_SOURCE_DIR}" "${path}")
    string(REPLACE "/" "_" flat "${include}")
    set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/simt/${flat}.cpp")
    file(CONFIGURE OUTPUT "${wrapper}" CONTENT "#include \"${include}\"\n" @ONLY)
    list(APPEND wrappers "${wrapper}")
  endforeach()
  add_library(leasehold_${name} OBJECT ${wrappers})
  add_library(leasehold::${name} ALIAS leasehold_${name})
  leasehold_settings(leasehold_${name})
  # No unity build: different kernels use the same local names.
  set_target_properties(leasehold_${name} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(leasehold_${name} PRIVATE
    -include "${CMAKE_SOURCE_DIR}/tests/support/simt/simt.hpp"
    -O2 -Wno-conversion -Wno-unknown-pragmas -fno-strict-aliasing)
  target_link_libraries(leasehold_${name} PUBLIC leasehold::simt ${arg_LINKS})
  set_property(GLOBAL APPEND PROPERTY LEASEHOLD_SIMT_KERNELS leasehold_${name})
endfunction()
