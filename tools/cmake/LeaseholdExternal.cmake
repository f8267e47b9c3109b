# Code of other projects that every room would compile again: precompiled headers, and one library
# with the parts of Asio, Beast, fmt and JSON that are not specific to a caller.
#
#   leasehold::external                      Linked by every target through leasehold_settings
#   leasehold_precompile(TARGET HEADER)      Gives TARGET the precompiled header standard, network,
#                                            network_o0 (with UBSan), tests_o0 or tests_o1.
#   LEASEHOLD_PRECOMPILED                    The header of leasehold_library and leasehold_program
#                                            in this folder and those below: network, unless set
#
# Only presets that compile several sources together use precompiled headers. The others show that
# each source includes what it uses, and clang-tidy can use their compile commands.
set(LEASEHOLD_EXTERNAL "${CMAKE_SOURCE_DIR}/tools/cmake/external")
set(LEASEHOLD_PRECOMPILED network)
option(LEASEHOLD_PRECOMPILE "Use precompiled headers" OFF)

# The same definitions everywhere: gcc rejects a precompiled header made with other definitions.
add_library(leasehold_external STATIC
  "${LEASEHOLD_EXTERNAL}/asio.cpp" "${LEASEHOLD_EXTERNAL}/fmt.cpp" "${LEASEHOLD_EXTERNAL}/json.cpp")
add_library(leasehold::external ALIAS leasehold_external)
target_compile_features(leasehold_external PUBLIC cxx_std_23)
target_include_directories(leasehold_external PRIVATE "${CMAKE_SOURCE_DIR}")
target_link_libraries(leasehold_external PRIVATE Boost::headers nlohmann_json::nlohmann_json)
target_compile_definitions(leasehold_external PUBLIC
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
  $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>
  $<TARGET_PROPERTY:spdlog::spdlog,INTERFACE_COMPILE_DEFINITIONS>)
leasehold_compile_settings(leasehold_external)
set_target_properties(leasehold_external PROPERTIES UNITY_BUILD OFF)

function(leasehold_precompile target header)
  if(LEASEHOLD_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM leasehold_precompiled_${header})
  endif()
endfunction()

# leasehold_add_precompiled(NAME FILE OPTION…): compiles FILE with these options.
function(leasehold_add_precompiled name file)
  # A target needs a source; this one is empty.
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/precompiled/${name}.cpp" CONTENT "" @ONLY)
  add_library(leasehold_precompiled_${name} STATIC "${CMAKE_BINARY_DIR}/precompiled/${name}.cpp")
  leasehold_settings(leasehold_precompiled_${name})
  # clang records the times of its headers, which differ in another copy of the tree.
  target_compile_options(leasehold_precompiled_${name} PRIVATE
    ${ARGN} $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  target_precompile_headers(leasehold_precompiled_${name} PRIVATE
    "${LEASEHOLD_EXTERNAL}/${file}.hpp")
  set_target_properties(leasehold_precompiled_${name} PROPERTIES UNITY_BUILD OFF)
endfunction()

if(LEASEHOLD_PRECOMPILE)
  leasehold_add_precompiled(standard standard)
  leasehold_add_precompiled(network network)
  if(LEASEHOLD_SANITIZE MATCHES undefined)
    leasehold_add_precompiled(network_o0 network -O0)
  endif()
  if(LEASEHOLD_BUILD_TESTS)
    # Test programs are position-independent executables, compiled with less optimisation.
    leasehold_add_precompiled(tests_o0 tests -fPIE -O0 -DCATCH_CONFIG_FAST_COMPILE)
    leasehold_add_precompiled(tests_o1 tests -fPIE -O1 -DCATCH_CONFIG_FAST_COMPILE)
  endif()
endif()
