# PCRE2 by pkg-config; defines PCRE2::PCRE2.
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
if(NOT TARGET PCRE2::PCRE2)
  add_library(PCRE2::PCRE2 ALIAS PkgConfig::PCRE2)
endif()
set(PCRE2_FOUND TRUE)
