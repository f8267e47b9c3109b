#include "tools/cli/table.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace leasehold::cli;

TEST_CASE("table: text is left-aligned, numbers right-aligned, without trailing blanks") {
  const Table table{.columns = {{"NAME"}, {"N", true}, {"X"}},
                    .rows = {{"a", "1", "-"}, {"longer", "100", ""}}};

  CHECK(render(table) ==
        "NAME      N  X\n"
        "a         1  -\n"
        "longer  100\n");
}

TEST_CASE("table: a micro sign is one column wide") {
  const Table table{.columns = {{"T", true}}, .rows = {{"1.0 µs"}, {"10.0 ms"}}};

  CHECK(render(table) == "      T\n 1.0 µs\n10.0 ms\n");
}

TEST_CASE("table: a time is a date in UTC") {
  CHECK(utc_text(0) == "1970-01-01T00:00:00Z");
  CHECK(utc_text(1'795'545'000) == "2026-11-24T18:30:00Z");
  CHECK(utc_text(std::numeric_limits<std::int64_t>::max()) == "-");
}

TEST_CASE("table: bytes and times use a readable unit") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(256u << 20) == "256 MiB");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(nanoseconds_text(-1) == "-");
  CHECK(nanoseconds_text(0) == "0 ns");
  CHECK(nanoseconds_text(12'340) == "12.3 µs");
  CHECK(nanoseconds_text(2'000'000'000) == "2.0 s");
}
