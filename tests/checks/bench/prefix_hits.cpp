#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/random.hpp"
#include "tests/checks/bench/serve_bench.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kPrefixTimeout = std::chrono::minutes(10);
constexpr const char* kPrefixTenant = "prefix";
constexpr std::uint32_t kPrefixBlockTokens = 16;
constexpr std::uint32_t kPrefixPromptTokens = 480;
constexpr std::size_t kPrefixRounds = 5;

/// The part is cut to whole blocks, because only these are cached. A hit leaves at least one row to
/// compute.
constexpr std::uint32_t kSharedTokens =
    kPrefixPromptTokens * 3 / 4 / kPrefixBlockTokens * kPrefixBlockTokens;

/// The requests of a round, in this order.
enum PromptKind : std::size_t { Cold, Warm, SharedAlone, OneToken, PromptKinds };

void append_words(std::vector<std::int32_t>& prompt, std::size_t size, std::uint64_t seed) {
  SeededRandom random(seed);
  while (prompt.size() < size) {
    const auto word = static_cast<std::int32_t>(random.below(TenantPool::kPromptWords));
    prompt.push_back(TenantPool::kFirstPromptToken + word);
  }
}

/// The warm prompt begins like the cold one of its round; all other text is new.
std::vector<std::int32_t> prompt_of(std::uint64_t request) {
  constexpr std::size_t kSizes[PromptKinds] = {kPrefixPromptTokens, kPrefixPromptTokens,
                                               kSharedTokens, 1};
  const std::uint64_t kind = request % PromptKinds;
  std::vector<std::int32_t> prompt;
  if (kind == Warm) append_words(prompt, kSharedTokens, request - Warm);
  append_words(prompt, kSizes[kind], request);
  return prompt;
}

nlohmann::json json_of(const std::array<double, PromptKinds>& median_s) {
  constexpr double kHitShare = double{kSharedTokens} / kPrefixPromptTokens;
  const double saved_s = median_s[Cold] - median_s[Warm];
  const double saved_share = saved_s / median_s[Cold];
  const double rows_s = median_s[SharedAlone] - median_s[OneToken];
  return {{"prompt_tokens", kPrefixPromptTokens},
          {"hit_share", kHitShare},
          {"cold_s", median_s[Cold]},
          {"warm_s", median_s[Warm]},
          {"shared_alone_s", median_s[SharedAlone]},
          {"one_token_s", median_s[OneToken]},
          {"saved_share", saved_share},
          {"of_ideal", saved_share / kHitShare},
          {"of_computed_rows", saved_s / rows_s}};
}

}  // namespace

Result<nlohmann::json> measure_prefix_hits(System& system) {
  TRY(system.admit(std::string(kPrefixTenant) + "-0"));
  TenantPool pool(
      {.broker_socket = system.broker_socket(),
       .max_tokens = 1,
       .name = kPrefixTenant,
       .prompt = [](std::uint32_t, std::uint64_t request) { return prompt_of(request); }});
  TRY(pool.await_tokens(PromptKinds * kPrefixRounds, kPrefixTimeout));
  const std::vector<double> first_tokens_s = pool.take_first_tokens_s();
  std::array<double, PromptKinds> median_s{};
  for (std::size_t kind = 0; kind < PromptKinds; ++kind) {
    std::vector<double> values;
    for (std::size_t round = 0; round < kPrefixRounds; ++round)
      values.push_back(first_tokens_s[round * PromptKinds + kind]);
    median_s[kind] = median_of(std::move(values));
  }
  return json_of(median_s);
}

}  // namespace leasehold::bench
