#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/checks/bench/serve_bench.hpp"
#include "tests/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kSharesTimeout = std::chrono::minutes(15);
constexpr Duration kSharesPollInterval = std::chrono::milliseconds(200);
constexpr double kSharesTokens = 20'000;  // the fewest in the measured time
constexpr const char* kSharesTenant = "shares";
constexpr std::array<std::uint32_t, 4> kShareWeights = {1, 1, 2, 4};
constexpr std::array<std::uint32_t, 4> kSharesPromptTokens = {4, 40, 20, 10};
constexpr std::uint32_t kSharesTextTokens = 16;
// Concurrent requests of a tenant, so that some always wait.
constexpr std::uint32_t kSharesPools = 12;
constexpr const char* kSharesBatchSize = "4";

using Served = std::vector<double>;

/// Returns each tenant's tokens divided by its weight.
Result<Served> read_served(System& system) {
  Served served;
  for (const wire::TenantView& view : TRY(system.broker().tenants()))
    served.push_back(static_cast<double>(view.served.tokens) / view.policy.weight);
  return served;
}

double tokens_in(const Served& served) {
  return std::inner_product(served.begin(), served.end(), kShareWeights.begin(), 0.0);
}

/// Waits until this many tokens are counted.
Result<Served> await_served(System& system, double tokens) {
  const SystemClock clock;
  for (const TimePoint end = clock.now() + kSharesTimeout; clock.now() < end;) {
    Served served = TRY(read_served(system));
    if (tokens_in(served) >= tokens) return served;
    std::this_thread::sleep_for(kSharesPollInterval);
  }
  return fail(Errc::TimedOut, fmt::format("fewer than {} tokens were computed", tokens));
}

/// The index is 1 when all are equal, and 1/n when one of n has everything.
double jain_index(const Served& served) {
  const double sum = std::accumulate(served.begin(), served.end(), 0.0);
  const double squares = std::inner_product(served.begin(), served.end(), served.begin(), 0.0);
  return sum * sum / (static_cast<double>(served.size()) * squares);
}

}  // namespace

Result<nlohmann::json> measure_served_shares(const std::string& bin_dir,
                                             const std::string& model_path) {
  const auto system =
      TRY(System::start({.bin_dir = bin_dir,
                         .model_path = model_path,
                         .broker_options = {},
                         .worker_options = {"--max-batch-size", kSharesBatchSize}}));
  for (std::uint32_t i = 0; i < kShareWeights.size(); ++i)
    TRY(system->admit(fmt::format("{}-{}", kSharesTenant, i), kShareWeights[i]));
  std::deque<TenantPool> pools;
  for (std::uint32_t i = 0; i < kSharesPools; ++i) {
    pools.emplace_back(TenantPoolConfig{
        .broker_socket = system->broker_socket(),
        .clients = kShareWeights.size(),
        .max_tokens = kSharesTextTokens,
        .name = kSharesTenant,
        .prompt = [i](std::uint32_t client, std::uint64_t request) {
          const auto word =
              static_cast<std::int32_t>((i * 31 + request) % TenantPool::kPromptWords);
          return std::vector<std::int32_t>(kSharesPromptTokens[client],
                                           TenantPool::kFirstPromptToken + word);
        }});
    TRY(pools.back().await_running(kShareWeights.size(), kSharesTimeout));
  }
  const Served at_start = TRY(read_served(*system));
  const Served before = TRY(await_served(*system, tokens_in(at_start) + 1));
  Served served = TRY(await_served(*system, tokens_in(before) + kSharesTokens));
  std::ranges::transform(served, before, served.begin(), std::minus{});
  const auto [least, most] = std::ranges::minmax(served);
  return nlohmann::json{
      {"served", served}, {"jain_index", jain_index(served)}, {"widest_ratio", most / least}};
}

}  // namespace leasehold::bench
