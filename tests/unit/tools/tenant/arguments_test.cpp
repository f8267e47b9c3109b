#include "tools/tenant/arguments.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using namespace leasehold::tenant;

namespace {

int exit_code_of(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  REQUIRE_FALSE(arguments);
  REQUIRE_FALSE(arguments.error().text.empty());
  return arguments.error().exit_code;
}

}  // namespace

TEST_CASE("tenant arguments: everything that can be asked for arrives in the request") {
  const std::vector<std::string> words{
      "--tenant", "A",    "--prompt",     "Once",     "--max-tokens", "9", "--temperature", "0.5",
      "--seed",   "11",   "--ignore-eos", "--rebind", "--blocks",     "8", "--worker",      "w",
      "-o",       "json", "--request-id", "r1",       "--socket",     "/x"};

  const auto arguments = parse_arguments(words);

  REQUIRE(arguments);
  const SessionConfig& config = arguments->config;
  CHECK(config.tenant.value == "A");
  CHECK(config.request.prompt == "Once");
  CHECK(config.request.max_emitted_tokens == 9);
  CHECK(config.request.sampling.temperature == 0.5f);
  CHECK(config.request.sampling.seed == 11);
  CHECK(config.request.ignore_eos);
  CHECK(config.rebind);
  CHECK(config.blocks == 8);
  CHECK(config.worker == "w");
  CHECK(arguments->output == Output::Json);
  CHECK(config.request.request_id.value == "r1");
  CHECK(arguments->socket == "/x");
}

TEST_CASE("tenant arguments: an empty prompt is a prompt; none means stdin") {
  const auto empty = parse_arguments(std::vector<std::string>{"--tenant", "A", "--prompt", ""});
  const auto none = parse_arguments(std::vector<std::string>{"--tenant", "A"});

  REQUIRE(empty);
  REQUIRE(none);
  CHECK_FALSE(empty->prompt_from_stdin);
  CHECK(empty->config.request.prompt == "");
  CHECK(none->prompt_from_stdin);
}

TEST_CASE("tenant arguments: wrong usage ends with 2 and says why") {
  CHECK(exit_code_of({}) == 2);
  CHECK(exit_code_of({"--tenant", "A B"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--max-tokens", "0"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--temperature", "-1"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--temperature", "nan"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--seed", "x"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "--request-id", "a b"}) == 2);
  CHECK(exit_code_of({"--tenant", "A", "stray"}) == 2);
}
