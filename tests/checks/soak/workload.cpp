#include "tests/checks/soak/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::soak {
namespace {

/// Lifetime of leases for every second tenant; a text takes about this long on an idle machine.
constexpr std::int64_t kShortLifetime_ms = 1000;

/// Long enough not to occur by chance.
constexpr std::ptrdiff_t kCanaryTokens = 10;

/// The canary begins where the prompt differs from the published text, or after the first token,
/// which is the same in all prompts.
Result<Canary> canary_of(const runner::TenantSpec& spec, const Tokenizer& tokenizer) {
  const auto published = TRY(tokenizer.encode(kPublishedText));
  const auto tokens = TRY(tokenizer.encode(spec.prompt));
  const auto begin = std::ranges::mismatch(tokens, published).in1;
  if (tokens.end() - begin < kCanaryTokens) {
    return fail(Errc::UnsupportedModel,
                fmt::format("the prompt \"{}\" has only {} tokens of its own; a canary needs {}",
                            spec.prompt, tokens.end() - begin, kCanaryTokens));
  }
  return Canary{spec.name, {begin, begin + kCanaryTokens}};
}

runner::TenantSpec standard_tenant(const Settings& settings, std::uint32_t i) {
  const bool reads_published = i % 4 < 2;
  runner::TenantSpec spec{.name = fmt::format("t{}", i),
                          .prompt = (reads_published ? kPublishedText : "") +
                                    canary_words(settings.seed, i) + "Once upon a time",
                          .seed = settings.seed + i,
                          .max_tokens = settings.max_tokens * (2 + i % 3) / 4,
                          .is_resumable = i % 3 != 2};
  if (i % 2 == 1) spec.max_lifetime_ms = kShortLifetime_ms;
  return spec;
}

/// `number`: must be greater than the number of every standard tenant.
runner::TenantSpec tenant_of_tier(const Settings& settings, std::uint32_t number, wire::Tier tier) {
  return {.name = std::string(wire::name(tier)),
          .prompt = canary_words(settings.seed, number) + "Once upon a time",
          .seed = settings.seed + number,
          .max_tokens = settings.max_tokens,
          .is_resumable = tier == wire::Tier::Scavenger,
          .tier = tier};
}

/// Memory for two leases of each standard tenant, which has both while its text moves, for the
/// tight tenant's lease, and for one published text on each worker.
std::uint32_t large_lease_extents(const Settings& settings) {
  return 2 * settings.tenants + 1 + settings.workers;
}

}  // namespace

Result<Workload> make_workload(const Settings& settings) {
  const GgufFile file = TRY(GgufFile::open(settings.model_path));
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  Workload workload;
  for (std::uint32_t i = 0; i < settings.tenants; ++i)
    workload.tenants.push_back(standard_tenant(settings, i));
  for (const wire::Tier tier : {wire::Tier::Guaranteed, wire::Tier::Scavenger}) {
    const auto number = static_cast<std::uint32_t>(workload.tenants.size());
    workload.tenants.push_back(tenant_of_tier(settings, number, tier));
  }
  for (const runner::TenantSpec& spec : workload.tenants)
    workload.canaries.push_back(TRY(canary_of(spec, tokenizer)));
  workload.large_lease_extents = large_lease_extents(settings);
  return workload;
}

}  // namespace leasehold::soak
