/// Compares small random models of every family with a plain computation in doubles, and bit by bit
/// with themselves in other batches.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "common/random.hpp"
#include "tests/model/matrix.hpp"
#include "tests/support/engine_rig.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/plain_model.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kFamilyTokens = 80;  // more than 64, the context before yarn scaling

std::vector<TokenId> text(std::uint64_t seed) {
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < kFamilyTokens; ++i)
    tokens.push_back(static_cast<TokenId>(3 + random_at(seed, i) % 509));
  return tokens;
}

/// The settings of a rig.
struct RigSettings {
  bool reference = false;
  std::uint32_t threads = 1;
  std::uint32_t token_budget = 256;
  std::uint32_t background = 0;
};

/// The logits after the text, computed with the settings.
std::vector<float> logits(const std::string& path, const RigSettings& way) {
  EngineRig rig({.model_path = path,
                 .reference = way.reference,
                 .threads = way.threads,
                 .kv_type = KvType::F32,
                 .limits = {.token_budget = way.token_budget}});
  const LeaseId lease = rig.grant("tenant", 2);
  for (std::uint32_t i = 0; i < way.background; ++i)
    REQUIRE(rig.submit(rig.request("tenant", lease, fmt::format("c{}", i), text(100 + i), 8)));
  REQUIRE(rig.submit(rig.request("tenant", lease, "ours", text(7), 1)));
  while (rig.outcome("ours").tokens.empty()) {
    REQUIRE(rig.step());
    const auto last = rig.engine().last_logits(RequestId{"ours"});
    if (!rig.outcome("ours").tokens.empty()) return {last.begin(), last.end()};
  }
  return {};
}

}  // namespace

TEST_CASE("model: every family agrees with a computation in doubles") {
  const Family family = GENERATE(from_range(std::begin(kFamilies), std::end(kFamilies)));
  const GeneratedModel model(family);
  PlainModel plain(model.path());
  PlainModel::Vector expected;
  for (const TokenId token : text(7)) expected = plain.next(token);
  const std::vector<float> ours = logits(model.path(), {});
  REQUIRE(ours.size() == expected.size());
  double worst = 0;
  double spread = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    worst = std::max(worst, std::abs(ours[i] - expected[i]));
    spread = std::max(spread, std::abs(expected[i]));
  }
  INFO(family.name << ": off by " << worst << " of " << spread);
  CHECK(spread > 1);
  CHECK(worst < 1e-5 * spread);
}

TEST_CASE(
    "model: every family has the same bits alone and in batches, whole "
    "and in chunks") {
  const Family family = GENERATE(from_range(std::begin(kFamilies), std::end(kFamilies)));
  const GeneratedModel model(family);
  INFO(family.name);
  const std::vector<float> alone = logits(model.path(), {});
  CHECK(same_bits(logits(model.path(), {.reference = true}), alone));
  CHECK(same_bits(logits(model.path(), {.threads = 2, .token_budget = 7}), alone));
  CHECK(same_bits(logits(model.path(), {.threads = 2, .background = 5}), alone));
  CHECK(same_bits(logits(model.path(), {.token_budget = 23, .background = 3}), alone));
}

}  // namespace leasehold::testing
