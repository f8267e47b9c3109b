/// Full batches of long and short prompts: each sequence has the bits that it has alone, also when
/// one of them runs out of blocks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "common/random.hpp"
#include "tests/property/four_tenants.hpp"
#include "tests/support/generated_model.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kLongPrompt = 1024;
constexpr std::uint32_t kShortPrompt = 4;
constexpr std::uint32_t kTokens = 40;
constexpr std::uint32_t kContext = 1152;
constexpr std::uint32_t kMost = 64;
constexpr std::uint32_t kPerLease = 8;
constexpr std::uint32_t kFullBudget = 2000;  // no multiple of a block: chunks end inside blocks
/// KV blocks of an extent: a long prompt and 16 tokens. A longer answer needs another extent.
constexpr std::uint32_t kKvBlocks = kLongPrompt / KvLayout::kBlockTokens + 1;

const std::string& model_path() {
  static const GeneratedModel model({.name = "long context", .context = kContext});
  return model.path();
}

/// Long and short prompts alternate.
std::vector<TokenId> prompt(std::uint32_t i) {
  std::vector<TokenId> tokens;
  const std::uint32_t size = i % 2 == 0 ? kLongPrompt : kShortPrompt;
  for (std::uint32_t t = 0; t < size; ++t)
    tokens.push_back(static_cast<TokenId>(3 + random_at(i, t) % 509));
  return tokens;
}

std::string id(std::uint32_t i) {
  return "r" + std::to_string(i);
}

std::size_t extent_bytes() {
  static const std::size_t bytes = [] {
    const EngineRig rig({.model_path = model_path()});
    const std::uint64_t block = rig.engine().kv_block_size_bytes();
    return (kKvBlocks + record_block_count({kContext}, block)) * block;
  }();
  return bytes;
}

/// Runs these sequences together. The lease of `starved`, if any, never grows.
class FullBatch {
 public:
  FullBatch(std::vector<std::uint32_t> members, std::uint32_t threads,
            std::optional<std::uint32_t> starved = {})
      : rig_({.model_path = model_path(),
              .threads = threads,
              .limits = {.max_batch_size = kMost, .token_budget = kFullBudget},
              .extent_bytes = extent_bytes()}),
        members_(std::move(members)),
        starved_(starved) {
    for (const std::uint32_t i : members_) submit(i);
  }

  std::map<std::uint32_t, Run> run() {
    std::map<std::uint32_t, Run> runs;
    while (rig_.engine().scheduler().has_work()) {
      const StepReport report = rig_.step().value();
      largest_ = std::max(largest_, report.summary.emitted_tokens);
      for (const std::uint32_t i : members_) append_last_logits(rig_, id(i), runs[i]);
      for (const GrowthRequest& growth : rig_.engine().take_growth_requests()) {
        if (starved_ && growth.lease == leases_.at(tenant(*starved_))) {
          rig_.engine().deny_growth(growth);
        } else {
          rig_.grow(growth.lease);
        }
      }
    }
    return runs;
  }

  RequestOutcome& outcome(std::uint32_t i) { return rig_.outcome(id(i)); }
  /// Most tokens emitted by one step.
  std::uint32_t largest() const { return largest_; }

 private:
  /// Sequences share leases; the starved one has its own.
  std::string tenant(std::uint32_t i) const {
    return starved_ == i ? "starved" : "t" + std::to_string(i / kPerLease);
  }

  void submit(std::uint32_t i) {
    const std::string name = tenant(i);
    if (!leases_.contains(name)) leases_[name] = rig_.grant(name);
    REQUIRE(rig_.submit(rig_.request(name, leases_[name], id(i), prompt(i), kTokens)));
  }

  EngineRig rig_;
  std::vector<std::uint32_t> members_;
  std::optional<std::uint32_t> starved_;
  std::map<std::string, LeaseId> leases_;
  std::uint32_t largest_ = 0;
};

/// What each sequence computes when it runs alone.
const std::vector<Run>& serial() {
  static const std::vector<Run> runs = [] {
    std::vector<Run> all;
    for (std::uint32_t i = 0; i < kMost; ++i) {
      all.push_back(FullBatch({i}, 1).run().at(i));
      REQUIRE(all.back().size() == kTokens);
    }
    return all;
  }();
  return runs;
}

std::vector<std::uint32_t> members(std::uint32_t count) {
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

Run first_of(const Run& run, std::size_t count) {
  return {run.begin(), run.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

TEST_CASE("full batch: 32 and 64 sequences of 1024 and 4 tokens have the bits of serial runs") {
  for (std::uint32_t i = 1; i < kMost; ++i)
    REQUIRE_FALSE(same_bits(serial()[i], serial()[i - 1]));  // or equal bits would prove nothing
  for (const auto& [count, threads] : {std::pair{32u, 1u}, {64u, 2u}}) {
    FullBatch batch(members(count), threads);
    for (const auto& [i, run] : batch.run()) {
      CAPTURE(count, i);
      REQUIRE(same_bits(run, serial()[i]));
    }
    CHECK(batch.largest() == count);
  }
}

TEST_CASE("full batch: a sequence that runs out of blocks changes no bit of the others") {
  for (const std::uint32_t count : {32u, 64u}) {
    const std::uint32_t starved = count / 2;
    FullBatch batch(members(count), 1, starved);
    const auto runs = batch.run();
    const RequestOutcome& outcome = batch.outcome(starved);
    REQUIRE(outcome.completions.size() == 1);
    REQUIRE(outcome.completions[0].error);
    CHECK(outcome.completions[0].error->code == Errc::OutOfBlocks);
    CHECK(outcome.tokens.size() > 4);
    CHECK(outcome.tokens.size() < kTokens);
    CHECK(same_bits(runs.at(starved), first_of(serial()[starved], outcome.tokens.size())));
    for (const auto& [i, run] : runs) {
      CAPTURE(count, i);
      if (i != starved) REQUIRE(same_bits(run, serial()[i]));
    }
    CHECK(batch.largest() == count);
  }
}

}  // namespace leasehold::testing
