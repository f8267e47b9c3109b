#include "tools/cli/broker_address.hpp"

#include <catch2/catch.hpp>

using namespace leasehold::cli;

TEST_CASE("broker address: --socket wins over the environment") {
  CHECK(broker_address("/a/b.sock", {.broker = "/c", .runtime_dir = "/d"}) == "/a/b.sock");
}

TEST_CASE("broker address: LEASEHOLD_BROKER wins over the runtime directory") {
  CHECK(broker_address(std::nullopt, {.broker = "/c", .runtime_dir = "/d"}) == "/c");
}

TEST_CASE("broker address: the user's runtime directory, else the system's") {
  CHECK(broker_address(std::nullopt, {.runtime_dir = "/d"}) == "/d/leasehold/broker.sock");
  CHECK(broker_address(std::nullopt, {}) == "/run/leasehold/broker.sock");
}
