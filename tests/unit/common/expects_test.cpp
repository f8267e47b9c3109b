#include "common/expects.hpp"

#include <catch2/catch.hpp>

#include "common/hex.hpp"
#include "tests/support/child_process.hpp"

using namespace leasehold;

TEST_CASE("expects: a broken condition aborts and prints the condition and its place") {
  const auto end = testing::run_in_child([] {
    expects(false, "the slot is free");
    return 0;
  });
  CHECK(end.killed_by == SIGABRT);
  CHECK(end.error_output.find("expects violated: the slot is free") != std::string::npos);
  CHECK(end.error_output.find("expects_test.cpp") != std::string::npos);
}

TEST_CASE("expects: a condition that holds does nothing") {
  expects(true, "never printed");
  ensures(true, "never printed");
}

TEST_CASE("hex: two lower-case digits per byte, high half first") {
  const std::uint8_t bytes[] = {0x00, 0x0f, 0xA5, 0xff};
  CHECK(to_hex(bytes) == "000fa5ff");
  CHECK(to_hex({}).empty());
}
