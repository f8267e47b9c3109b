#include "tools/checks/bench/prefix_hits.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "common/random.hpp"
#include "tools/checks/bench/statistics.hpp"
#include "tools/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kPrefixTimeout = std::chrono::minutes(10);
constexpr const char* kPrefixTenant = "prefix";
constexpr std::uint32_t kPrefixBlockTokens = 16;

std::uint32_t shared_tokens(std::uint32_t prompt_tokens) {
  return prompt_tokens * 3 / 4 / kPrefixBlockTokens * kPrefixBlockTokens;
}

void append_words(std::vector<std::int32_t>& prompt, std::size_t size, std::uint64_t seed) {
  SeededRandom random(seed);
  while (prompt.size() < size) {
    const auto word = static_cast<std::int32_t>(random.below(TenantPool::kPromptWords));
    prompt.push_back(TenantPool::kFirstPromptToken + word);
  }
}

/// Requests come in pairs: the second one begins like the first one.
std::vector<std::int32_t> prompt_of(std::uint32_t prompt_tokens, std::uint64_t request) {
  const bool is_second = request % 2 == 1;
  std::vector<std::int32_t> prompt;
  append_words(prompt, is_second ? shared_tokens(prompt_tokens) : prompt_tokens,
               request - (is_second ? 1 : 0));
  append_words(prompt, prompt_tokens, request);
  return prompt;
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
  TRY(pool.await_tokens(2ull * load.rounds, kPrefixTimeout));
  const std::vector<double> first_tokens_s = pool.take_first_tokens_s();
  std::vector<double> cold_s, warm_s;
  for (std::size_t i = 0; i < 2ull * load.rounds; ++i)
    (i % 2 == 0 ? cold_s : warm_s).push_back(first_tokens_s[i]);
  const double cold = median_of(cold_s);
  const double warm = median_of(warm_s);
  const double hit_share =
      static_cast<double>(shared_tokens(load.prompt_tokens)) / load.prompt_tokens;
  const double saved_share = (cold - warm) / cold;
  return nlohmann::json{{"hit_share", hit_share},
                        {"cold_s", cold},
                        {"warm_s", warm},
                        {"saved_share", saved_share},
                        {"of_ideal", saved_share / hit_share}};
}

}  // namespace leasehold::bench
