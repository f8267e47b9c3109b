# The core of prometheus-cpp by pkg-config; defines PrometheusCpp::Core. The package's own CMake
# file also requires its server.
find_package(PkgConfig REQUIRED)
pkg_check_modules(PROMETHEUS_CPP REQUIRED IMPORTED_TARGET prometheus-cpp-core)
if(NOT TARGET PrometheusCpp::Core)
  add_library(PrometheusCpp::Core ALIAS PkgConfig::PROMETHEUS_CPP)
endif()
set(PrometheusCpp_FOUND TRUE)
