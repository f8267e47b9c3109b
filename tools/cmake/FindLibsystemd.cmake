# libsystemd by pkg-config; defines Libsystemd::Libsystemd.
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBSYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
if(NOT TARGET Libsystemd::Libsystemd)
  add_library(Libsystemd::Libsystemd ALIAS PkgConfig::LIBSYSTEMD)
endif()
set(Libsystemd_FOUND TRUE)
