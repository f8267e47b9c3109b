#include "tools/cli/explain.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;

TEST_CASE("explain: every error names a next step") {
  for (int i = 0; i < kErrcCount; ++i) {
    INFO(name(static_cast<Errc>(i)));
    CHECK(cli::next_step(static_cast<Errc>(i)).size() > 5);
  }
}

TEST_CASE("explain: a refused connection asks whether the broker runs") {
  const auto line = cli::explain("brokerctl", {Errc::ConnectionRefused, "nobody at /x"});

  CHECK(line.starts_with("brokerctl: nobody at /x (ConnectionRefused); next: "));
  CHECK(line.find("is leasehold-broker running?") != std::string::npos);
}

TEST_CASE("explain: another process cannot drive the terminal through an error") {
  const auto line = cli::explain("brokerctl", {Errc::BadRequest, "a\x1b[2Jb\nc"});

  CHECK(line.find('\x1b') == std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
}
