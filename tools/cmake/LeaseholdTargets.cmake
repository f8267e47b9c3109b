# One target per room. Every build setting is a property of a target.
#
#   leasehold_library(NAME SOURCES … LINKS …)
#       Static library, alias leasehold::NAME. A unity build (CMAKE_UNITY_BUILD) compiles several
#       sources together.
#   leasehold_compile_settings(TARGET)
#       Warnings, rounding and sanitizers, without include directories.
#   leasehold_program(NAME SOURCES … LINKS …)
#       Program in <build>/bin.
#       LEASEHOLD_OPTIMISE: more options for libraries and programs that use the precompiled header
#       network. A folder may set others than the preset.
#   leasehold_test(NAME LABEL … SOURCES … LINKS … [TIMEOUT seconds] [FAKE_CUDA] [OPTIMISED]
#                  [ENVIRONMENT NAME=value …])
#       Catch2 program with one ctest case per TEST_CASE. Always a unity build. The target tests_LABEL
#       builds all tests with that label. With FAKE_CUDA the test and its child processes load the
#       fake driver as libcuda.so.1; a test that controls the driver links leasehold::fake_cuda.

function(leasehold_settings target)
  target_compile_features(${target} PUBLIC cxx_std_23)
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC leasehold::external)
  leasehold_compile_settings(${target})
endfunction()

function(leasehold_compile_settings target)
  # -ffp-contract=off: float operations round one by one, in the order of the source.
  # C++ only: nvcc passes flags on in another way (leasehold_cuda_settings).
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -Wno-sign-conversion -Wno-missing-field-initializers -Wnon-virtual-dtor -ffp-contract=off>)
  # By default gcc spends a fifth of its time on garbage collection. Only with precompiled headers:
  # clang-tidy reads the commands of presets without precompiled headers, and rejects the option.
  if(LEASEHOLD_PRECOMPILE)
    target_compile_options(${target} PRIVATE
      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:--param=ggc-min-heapsize=1000000>)
  endif()
  if(LEASEHOLD_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(LEASEHOLD_SANITIZE)
    # A UBSan finding ends the program; a message on stderr alone would not fail the test.
    target_compile_options(${target} PRIVATE -fsanitize=${LEASEHOLD_SANITIZE}
                           -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${LEASEHOLD_SANITIZE})
  endif()
endfunction()

# Sets `result` to the sources, ordered by the libraries of other projects that they include, so that
# few units of a unity build compile each library.
function(leasehold_order_sources result)
  set(keyed "")
  foreach(source IN LISTS ARGN)
    get_filename_component(path "${source}" ABSOLUTE)
    set(key "")
    foreach(include CLI/ boost/beast/ boost/asio/ nlohmann/json.hpp spdlog/)
      set(lines "")
      if(EXISTS "${path}")
        file(STRINGS "${path}" lines REGEX "^#include <${include}" LIMIT_COUNT 1)
      endif()
      if(lines)
        string(APPEND key 0)
      else()
        string(APPEND key 1)
      endif()
    endforeach()
    list(APPEND keyed "${key} ${source}")
  endforeach()
  list(SORT keyed)
  list(TRANSFORM keyed REPLACE "^[01]+ " "")
  set(${result} "${keyed}" PARENT_SCOPE)
endfunction()

# A mutant changes one source. With LEASEHOLD_MUTANTS a unity build compiles the sources that
# tests/mutants/*.patch change one by one, so that a mutant does not compile their neighbours again.
set(LEASEHOLD_MUTANTS OFF CACHE STRING
    "Compile the sources that mutants change one by one: OFF, ON, or CI (those of tests/mutants/run --ci)")
set(LEASEHOLD_MUTATED_SOURCES "")
if(LEASEHOLD_MUTANTS)
  file(GLOB patches "${CMAKE_SOURCE_DIR}/tests/mutants/*.patch")
  foreach(patch IN LISTS patches)
    file(STRINGS "${patch}" only_in_all REGEX "^Runs: --all$")
    if(LEASEHOLD_MUTANTS STREQUAL "CI" AND only_in_all)
      continue()
    endif()
    file(STRINGS "${patch}" changed REGEX "^[+][+][+] b/.*[.]cpp$")
    list(TRANSFORM changed REPLACE "^[+][+][+] b" "${CMAKE_SOURCE_DIR}")
    list(APPEND LEASEHOLD_MUTATED_SOURCES ${changed})
  endforeach()
endif()
function(leasehold_compile_mutated_alone)
  foreach(source IN LISTS ARGN)
    get_filename_component(path "${source}" ABSOLUTE)
    if(path IN_LIST LEASEHOLD_MUTATED_SOURCES)
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# With UBSan, clang takes twice as long to compile a room with optimisation as without it. Rooms that
# mostly wait, for sockets and disks or for events to decide on, and that no fuzz target is about, go
# without (LEASEHOLD_WAITS; also in the folders below).
function(leasehold_optimise target)
  if(LEASEHOLD_WAITS AND LEASEHOLD_SANITIZE MATCHES undefined)
    leasehold_precompile(${target} network_o0)
    target_compile_options(${target} PRIVATE -O0)
  else()
    leasehold_precompile(${target} ${LEASEHOLD_PRECOMPILED})
    if(LEASEHOLD_PRECOMPILED STREQUAL network)
      target_compile_options(${target} PRIVATE ${LEASEHOLD_OPTIMISE})
    endif()
  endif()
endfunction()

function(leasehold_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  leasehold_order_sources(sources ${arg_SOURCES})
  leasehold_compile_mutated_alone(${sources})
  add_library(leasehold_${name} STATIC ${sources})
  add_library(leasehold::${name} ALIAS leasehold_${name})
  leasehold_settings(leasehold_${name})
  leasehold_optimise(leasehold_${name})
  target_link_libraries(leasehold_${name} PUBLIC ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS})
endfunction()

function(leasehold_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  leasehold_order_sources(sources ${arg_SOURCES})
  add_executable(${name} ${sources})
  leasehold_settings(${name})
  leasehold_optimise(${name})
  # As libraries: the precompiled header is for both.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_link_libraries(${name} PRIVATE ${arg_LINKS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()

function(leasehold_test name)
  cmake_parse_arguments(arg "FAKE_CUDA;OPTIMISED" "LABEL;TIMEOUT" "SOURCES;LINKS;DEPENDS;ENVIRONMENT" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  # Arithmetic is about ten times slower with a sanitizer, and twenty times under an emulator.
  if(LEASEHOLD_SANITIZE OR CMAKE_CROSSCOMPILING)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
  endif()
  add_executable(${name} ${arg_SOURCES})
  leasehold_settings(${name})
  # Compile time dominates, except for tests that compute much.
  set(optimise -O0)
  if(arg_OPTIMISED OR arg_LABEL MATCHES "^(contract|long|model|property|tsan)$")
    set(optimise -O1)
  endif()
  target_compile_options(${name} PRIVATE ${optimise})
  target_compile_definitions(${name} PRIVATE CATCH_CONFIG_FAST_COMPILE)
  string(REPLACE "-O" "tests_o" precompiled ${optimise})
  leasehold_precompile(${name} ${precompiled})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  if(NOT TARGET tests_${arg_LABEL})
    add_custom_target(tests_${arg_LABEL})
  endif()
  add_dependencies(tests_${arg_LABEL} ${name})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} leasehold::test_paths leasehold::temporary_directory Catch2::Catch2WithMain)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
  set(environment ${arg_ENVIRONMENT})
  if(arg_FAKE_CUDA)
    add_dependencies(${name} leasehold_fake_cuda)
    set_target_properties(${name} PROPERTIES BUILD_RPATH "${LEASEHOLD_FAKE_CUDA_DIR}")
    list(APPEND environment "LD_LIBRARY_PATH=${LEASEHOLD_FAKE_CUDA_DIR}")
  endif()
  leasehold_discover_tests(${name} "${arg_LABEL}" ${arg_TIMEOUT} "${environment}")
endfunction()

# One ctest case per TEST_CASE. Catch's own script splits names at a semicolon, and the halves, which
# match no test, pass.
function(leasehold_discover_tests name label timeout environment)
  set(listing "${CMAKE_CURRENT_BINARY_DIR}/${name}_cases.cmake")
  add_custom_command(TARGET ${name} POST_BUILD BYPRODUCTS "${listing}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -DPROGRAM=$<TARGET_FILE:${name}>
            "-DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}" "-DPREFIX=${label}/${name}: "
            -DLABEL=${label} -DTIMEOUT=${timeout} "-DENVIRONMENT=${environment}"
            "-DLISTING=${listing}"
            -P "${CMAKE_SOURCE_DIR}/tools/cmake/list_cases.cmake")
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake")
  file(WRITE "${include}" "if(EXISTS \"${listing}\")\n  include(\"${listing}\")\nelse()\n"
       "  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
endfunction()
