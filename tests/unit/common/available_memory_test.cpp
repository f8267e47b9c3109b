#include "common/available_memory.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

TEST_CASE("available memory: read from the line of /proc/meminfo, in bytes") {
  CHECK(parse_available_memory("MemTotal:  900 kB\nMemFree: 7 kB\nMemAvailable:     12 kB\n") ==
        12u << 10);
}

TEST_CASE("available memory: a text without the line, or with another unit, is an error") {
  for (const char* text : {"", "MemTotal: 900 kB\n", "\nMemAvailable: kB\n",
                           "\nMemAvailable: 12 MB", "\nMemAvailable: 99999999999999999999 kB\n",
                           "\nMemAvailable: 18446744073709551615 kB\n", "\nMemAvailable:"}) {
    CAPTURE(text);
    CHECK(parse_available_memory(text).error().code == Errc::FileCorrupt);
  }
}

TEST_CASE("available memory: this machine has some") {
  CHECK(available_memory_bytes().value() > 1u << 20);
}
