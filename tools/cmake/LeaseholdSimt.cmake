# Kernels compiled by the host's compiler, for the runner of tests/support/simt.
#
#   leasehold_simt_kernels(NAME SOURCES a.cu …)   object library leasehold_NAME, alias leasehold::NAME;
#                                                 who links it has the kernels in simt::find;
#                                                 the fake driver has them all
#   LEASEHOLD_HAVE_SIMT                           whether that runner is built: not for ThreadSanitizer,
#                                                 which is not told of fibers
#   LEASEHOLD_HAVE_FAKE_CUDA, LEASEHOLD_FAKE_CUDA_DIR
#                                                 whether a fake driver is built, and where to
#
# A .cu file is CUDA in another target, so a line of C++ that includes it is what is compiled.
set(LEASEHOLD_HAVE_SIMT OFF)
if(LEASEHOLD_BUILD_TESTS AND NOT LEASEHOLD_SANITIZE MATCHES "thread")
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
  # Each is a program of its own: names that one file keeps to itself may be another's, too.
  set_target_properties(leasehold_${name} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(leasehold_${name} PRIVATE
    -include "${CMAKE_SOURCE_DIR}/tests/support/simt/simt.hpp"
    -O2 -Wno-conversion -Wno-unknown-pragmas -fno-strict-aliasing)
  target_link_libraries(leasehold_${name} PUBLIC leasehold::simt ${arg_LINKS})
  set_property(GLOBAL APPEND PROPERTY LEASEHOLD_SIMT_KERNELS leasehold_${name})
endfunction()
