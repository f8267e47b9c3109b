/// Whole models against computations that share no code with ours.
///
/// An oracle file gives, per case, the prompt and for each greedy step the token and the five
/// largest logits. Activations of quantised oracles were quantised too, so their logits agree to a
/// tolerance; a step whose first two logits are closer than that may fall either way.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

using Json = nlohmann::json;

struct Top {
  TokenId token;
  float logit;
};
struct Step {
  TokenId token;
  std::vector<Top> top;
};
struct Case {
  std::vector<TokenId> prompt;
  std::vector<Step> steps;
};

std::vector<Case> read_oracle(const std::string& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file);
  std::vector<Case> cases;
  for (const Json& from : json.at("cases")) {
    Case one{.prompt = from.at("prompt"), .steps = {}};
    for (const Json& step : from.at("steps")) {
      Step to{.token = step.at("token"), .top = {}};
      for (const Json& top : step.at("top")) to.top.push_back({top.at(0), top.at(1)});
      one.steps.push_back(std::move(to));
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

/// Free-running greedy text.
std::vector<TokenId> run_freely(const std::string& model, const Case& one, KvType kv_type) {
  EngineRig rig({.model_path = model, .kv_type = kv_type});
  const LeaseId lease = rig.grant("oracle", 4);
  REQUIRE(rig.submit(
      rig.request("oracle", lease, "r", one.prompt, static_cast<std::uint32_t>(one.steps.size()))));
  rig.run();
  return rig.outcome("r").tokens;
}

struct Agreement {
  float worst_difference = 0.0f;
  int decided_steps = 0;  ///< Margin above the tolerance.
  int wrong_steps = 0;    ///< Decided, and ours differs.
};

/// Feeds the oracle's own tokens and compares logits at every step.
Agreement compare_forced(const std::string& model, const Case& one, float tolerance) {
  EngineRig rig({.model_path = model, .kv_type = KvType::F32});
  const LeaseId lease = rig.grant("oracle", 4);
  Agreement agreement;
  std::vector<TokenId> known = one.prompt;
  for (const Step& step : one.steps) {
    REQUIRE(rig.submit(rig.request("oracle", lease, "r", known, 1)));
    REQUIRE(rig.step());
    const std::span<const float> logits = rig.engine().last_logits(RequestId{"r"});
    REQUIRE(logits.size() == rig.config().n_vocab);
    for (const Top& top : step.top) {
      const float difference = std::abs(logits[static_cast<std::size_t>(top.token)] - top.logit);
      agreement.worst_difference = std::max(agreement.worst_difference, difference);
    }
    const bool decided = step.top[0].logit - step.top[1].logit > tolerance;
    const auto ours = std::ranges::max_element(logits) - logits.begin();
    agreement.decided_steps += decided ? 1 : 0;
    agreement.wrong_steps += decided && ours != step.token ? 1 : 0;
    known.push_back(step.token);
  }
  return agreement;
}

bool is_missing(const std::string& model, const std::string& name) {
  if (model.empty()) WARN("not checked, no test data: " << name);
  return model.empty();
}

void check_forced(const std::string& name, float tolerance) {
  const std::string model = test_data_path("models/" + name + ".gguf");
  if (is_missing(model, name)) return;
  for (const Case& one : read_oracle(test_data_path("models/" + name + ".json"))) {
    const Agreement agreement = compare_forced(model, one, tolerance);
    CAPTURE(name, agreement.worst_difference, agreement.decided_steps);
    CHECK(agreement.wrong_steps == 0);
    CHECK(agreement.worst_difference <= tolerance);
    CHECK(agreement.decided_steps > 0);
  }
}

}  // namespace

TEST_CASE("model: stories260K in f32 writes the oracle's whole text") {
  const std::string model = test_data_path("models/stories260K-f32.gguf");
  if (is_missing(model, "stories260K-f32")) return;
  for (const Case& one : read_oracle(test_data_path("models/stories260K-f32.json"))) {
    std::vector<TokenId> expected;
    for (const Step& step : one.steps) expected.push_back(step.token);
    CHECK(run_freely(model, one, KvType::F32) == expected);
  }
}

TEST_CASE("model: stories260K agrees with its oracle at every step, in every format") {
  check_forced("stories260K-f32", 0.0005f);
  check_forced("stories260K-f16", 0.03f);
  check_forced("stories260K-q8_0", 0.25f);
  check_forced("stories260K-q4_0", 0.25f);
}

TEST_CASE("model: the synthetic llama agrees with its oracle at every step") {
  check_forced("kq-llama-f32", 0.0005f);
  check_forced("kq-llama-f16", 0.07f);
  check_forced("kq-llama-q8_0", 0.6f);
}

TEST_CASE("model: our own model agrees with an independent fp32 computation at every step") {
  std::string oracle = own_model_path();
  oracle.replace(oracle.rfind(".gguf"), 5, ".json");
  for (const Case& one : read_oracle(oracle)) {
    const Agreement agreement = compare_forced(own_model_path(), one, 0.0005f);
    CAPTURE(agreement.worst_difference);
    CHECK(agreement.wrong_steps == 0);
    CHECK(agreement.worst_difference <= 0.0005f);
    CHECK(agreement.decided_steps > 0);
  }
}

}  // namespace leasehold::testing
