#include "tools/cli/explain.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;

TEST_CASE("explain: an error as JSON has code, detail, next step and exit code") {
  const auto line =
      nlohmann::json::parse(cli::error_json({Errc::UnknownLease, "lease 9.9 \"gone\""}));

  CHECK(line.at("error").at("code") == "UnknownLease");
  CHECK(line.at("error").at("detail") == "lease 9.9 \"gone\"");
  CHECK(line.at("error").at("exit_code") == exit_code(Errc::UnknownLease));
  CHECK(line.at("error").at("retryable") == false);
  CHECK_FALSE(line.at("error").at("next").get<std::string>().empty());
}

TEST_CASE("explain: an interrupted wait as JSON has exit code 130 and is not retryable") {
  const auto line = nlohmann::json::parse(
      cli::interrupted_json({Errc::TimedOut, "interrupted; 1 lease is left"}));

  CHECK(line.at("error").at("detail") == "interrupted; 1 lease is left");
  CHECK(line.at("error").at("exit_code") == 130);
  CHECK(line.at("error").at("retryable") == false);
}

TEST_CASE("explain: wrong usage as JSON is one line with exit code 2") {
  const std::string text = cli::usage_json("no such verb\nVerbs: a, b");

  CHECK(text.find('\n') == std::string::npos);
  CHECK(nlohmann::json::parse(text).at("error").at("exit_code") == 2);
  CHECK(nlohmann::json::parse(text).at("error").at("detail") == "no such verb\nVerbs: a, b");
}
