#include "common/machine/available_memory.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

TEST_CASE("machine memory: read from the lines of /proc/meminfo, in bytes") {
  const auto memory =
      parse_machine_memory("MemTotal:  900 kB\nMemFree: 7 kB\nMemAvailable:     12 kB\n");
  REQUIRE(memory);
  CHECK(memory->total_bytes == 900u << 10);
  CHECK(memory->available_bytes == 12u << 10);
}

TEST_CASE("machine memory: a text without a line, or with another unit, is an error") {
  for (const char* text :
       {"", "MemTotal: 900 kB\n", "MemAvailable: 900 kB\n", "MemTotal: 9 kB\nMemAvailable: kB\n",
        "MemTotal: 9 kB\nMemAvailable: 12 MB",
        "MemTotal: 9 kB\nMemAvailable: 99999999999999999999 kB",
        "MemTotal: 9 kB\nMemAvailable: 18446744073709551615 kB\n",
        "MemTotal: 9 kB\nMemAvailable:"}) {
    CAPTURE(text);
    CHECK(parse_machine_memory(text).error().code == Errc::FileCorrupt);
  }
}

TEST_CASE("machine memory: this machine has some") {
  const MachineMemory memory = machine_memory().value();
  CHECK(memory.available_bytes > 1u << 20);
  CHECK(memory.total_bytes >= memory.available_bytes);
}

TEST_CASE("machine memory: a control group's limit counts where it is lower, and is named") {
  const MachineMemory machine{.total_bytes = 8ull << 30, .available_bytes = 3ull << 30};
  const GroupMemory group{
      .limit_bytes = 26 << 20, .available_bytes = 20 << 20, .limit_file = "/g/memory.max"};
  const MachineMemory memory = limited_by(machine, group);
  CHECK(memory.total_bytes == 26 << 20);
  CHECK(memory.available_bytes == 20 << 20);
  const auto refused = check_fits_machine("--capacity", 512 << 20, memory);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().detail ==
        "--capacity is 536870912 bytes, but this control group has 27262976 bytes of memory, "
        "20971520 of them available; set --capacity to less than 26MiB, or raise /g/memory.max");
  CHECK(limited_by(machine, std::nullopt).total_bytes == machine.total_bytes);
  CHECK(limited_by(machine, GroupMemory{.limit_bytes = 9ull << 30, .available_bytes = 1 << 30})
            .limit_file.empty());
}

TEST_CASE("available memory: the kernel limits pages in mode 2, or if its mode is unknown") {
  CHECK_FALSE(kernel_limits_pages("0\n"));
  CHECK_FALSE(kernel_limits_pages("1\n"));
  CHECK(kernel_limits_pages("2\n"));
  CHECK(kernel_limits_pages(""));
}

TEST_CASE("machine memory: a promise beyond it is refused with both figures and what to set") {
  const MachineMemory memory{.total_bytes = 8ull << 30, .available_bytes = 3ull << 30};
  CHECK(check_fits_machine("--capacity", 8ull << 30, memory));
  const auto refused = check_fits_machine("--capacity", 1ull << 50, memory);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::BadRequest);
  for (const char* part : {"--capacity is 1125899906842624 bytes", "8589934592 bytes of memory",
                           "3221225472 of them available", "set --capacity to less than 8192MiB"})
    CHECK(refused.error().detail.find(part) != std::string::npos);
}
