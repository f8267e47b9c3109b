#include "tests/checks/gpu_check/answers.hpp"

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace leasehold::gpu_check;

namespace {

Json line(Verdict verdict) {
  return to_json({.what = "a line", .measured = "something", .verdict = verdict});
}

Json stage(const std::string& name, Json numbers, Json lines) {
  return {{"stage", name}, {"state", "ended"}, {"numbers", std::move(numbers)}, {"lines", lines}};
}

/// The answer about kills, which has one number.
Json kills(Json numbers, Json lines) {
  return answers_from(Json::array({stage("kills", std::move(numbers), std::move(lines))})).at(1);
}

const Json kNumbers{{"kills_in_kernel", {{"kills", 10}}}};

}  // namespace

TEST_CASE("gpu-check: the answers keep their order, whatever the order of the stages") {
  const Json answers = answers_from(Json::array({stage("speed", Json::object(), Json::array()),
                                                 stage("bits", Json::object(), Json::array())}));
  std::vector<std::string> order;
  for (const Json& one : answers) order.push_back(one.at("stage"));
  CHECK(order == std::vector<std::string>{"bits", "kills", "clocks", "bandwidth", "speed"});
  CHECK(answers.at(1).at("state") == "not run");
  CHECK(answers.at(1).at("verdict") == "unknown");
}

TEST_CASE("gpu-check: an answer has the worst verdict of its stage's lines") {
  const Json lines = Json::array({line(Verdict::Pass), line(Verdict::Measured)});
  CHECK(kills(kNumbers, lines).at("verdict") == "right");
  CHECK(kills(kNumbers, Json::array({line(Verdict::Fail), line(Verdict::Unknown)})).at("verdict") ==
        "WRONG");
  CHECK(kills(kNumbers, Json::array({line(Verdict::Missed), line(Verdict::Pass)})).at("verdict") ==
        "missed");
}

TEST_CASE("gpu-check: an answer without one of its numbers is unknown and names it") {
  const Json lines = Json::array({line(Verdict::Pass)});
  const Json without = kills(Json::object(), lines);
  CHECK(without.at("verdict") == "unknown");
  CHECK(without.at("missing") == Json::array({"/kills_in_kernel"}));
  CHECK(kills({{"kills_in_kernel", Json::object()}}, lines).at("missing").size() == 1);
  const Json complete = kills(kNumbers, lines);
  CHECK(complete.at("missing").empty());
  CHECK(complete.at("numbers") == kNumbers);
}

TEST_CASE("gpu-check: a stage that failed is wrong even without a wrong line") {
  Json failed = stage("kills", kNumbers, Json::array({line(Verdict::Pass)}));
  failed["state"] = "failed";
  CHECK(answers_from(Json::array({failed})).at(1).at("verdict") == "WRONG");
}
