#include "tests/checks/bench/prefix_hits.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/random.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kPrefixTimeout = std::chrono::minutes(10);
constexpr const char* kPrefixTenant = "prefix";
constexpr std::uint32_t kPrefixBlockTokens = 16;

/// The part is cut to whole blocks, because only these are cached. A hit leaves at least one row to
/// compute.
std::uint32_t shared_tokens(std::uint32_t prompt_tokens) {
  return prompt_tokens * 3 / 4 / kPrefixBlockTokens * kPrefixBlockTokens;
}

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
std::vector<std::int32_t> prompt_of(std::uint32_t prompt_tokens, std::uint64_t request) {
  const std::size_t sizes[PromptKinds] = {prompt_tokens, prompt_tokens,
                                          shared_tokens(prompt_tokens), 1};
  const std::uint64_t kind = request % PromptKinds;
  std::vector<std::int32_t> prompt;
  if (kind == Warm) append_words(prompt, shared_tokens(prompt_tokens), request - Warm);
  append_words(prompt, sizes[kind], request);
  return prompt;
}

nlohmann::json json_of(const PrefixLoad& load, const std::array<double, PromptKinds>& median_s) {
  const double hit_share =
      static_cast<double>(shared_tokens(load.prompt_tokens)) / load.prompt_tokens;
  const double saved_s = median_s[Cold] - median_s[Warm];
  const double saved_share = saved_s / median_s[Cold];
  const double rows_s = median_s[SharedAlone] - median_s[OneToken];
  return {{"prompt_tokens", load.prompt_tokens},
          {"hit_share", hit_share},
          {"cold_s", median_s[Cold]},
          {"warm_s", median_s[Warm]},
          {"shared_alone_s", median_s[SharedAlone]},
          {"one_token_s", median_s[OneToken]},
          {"saved_share", saved_share},
          {"of_ideal", saved_share / hit_share},
          {"of_computed_rows", saved_s / rows_s}};
}

}  // namespace

Result<nlohmann::json> measure_prefix_hits(System& system, const PrefixLoad& load) {
  TRY(system.admit(std::string(kPrefixTenant) + "-0"));
  TenantPool pool({.broker_socket = system.broker_socket(),
                   .max_tokens = 1,
                   .name = kPrefixTenant,
                   .prompt = [tokens = load.prompt_tokens](std::uint32_t, std::uint64_t request) {
                     return prompt_of(tokens, request);
                   }});
  TRY(pool.await_tokens(std::uint64_t{PromptKinds} * load.rounds, kPrefixTimeout));
  const std::vector<double> first_tokens_s = pool.take_first_tokens_s();
  std::array<double, PromptKinds> median_s{};
  for (std::size_t kind = 0; kind < PromptKinds; ++kind) {
    std::vector<double> values;
    for (std::size_t round = 0; round < load.rounds; ++round)
      values.push_back(first_tokens_s[round * PromptKinds + kind]);
    median_s[kind] = median_of(std::move(values));
  }
  return json_of(load, median_s);
}

}  // namespace leasehold::bench
