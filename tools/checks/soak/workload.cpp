#include "tools/checks/soak/workload.hpp"

#include <fmt/format.h>

#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::soak {
namespace {

/// Of every other tenant; a text takes about as long on an idle machine.
constexpr std::int64_t kShortLifetime_ms = 1000;

/// Long enough not to occur by chance. The first token, which all prompts share, is not included.
constexpr std::size_t kCanaryTokens = 10;

Result<Canary> canary_of(const TenantSpec& spec, const Tokenizer& tokenizer) {
  const auto tokens = TRY(tokenizer.encode(spec.prompt));
  if (tokens.size() <= kCanaryTokens) {
    return fail(Errc::UnsupportedModel,
                fmt::format("the prompt \"{}\" has only {} tokens; a canary needs more than 10",
                            spec.prompt, tokens.size()));
  }
  return Canary{spec.name, {tokens.begin() + 1, tokens.begin() + 1 + kCanaryTokens}};
}

}  // namespace

Result<Workload> make_workload(const Settings& settings) {
  const GgufFile file = TRY(GgufFile::open(settings.model_path));
  const Tokenizer tokenizer = TRY(Tokenizer::from_metadata(file));
  Workload workload;
  for (std::uint32_t i = 0; i < settings.tenants; ++i) {
    TenantSpec spec{.name = fmt::format("t{}", i),
                    .prompt = canary_words(settings.seed, i) + "Once upon a time",
                    .seed = settings.seed + i,
                    .max_tokens = settings.max_tokens * (2 + i % 3) / 4,
                    .is_resumable = i % 3 != 2};
    if (i % 2 == 1) spec.max_lifetime_ms = kShortLifetime_ms;
    workload.canaries.push_back(TRY(canary_of(spec, tokenizer)));
    workload.tenants.push_back(std::move(spec));
  }
  return workload;
}

}  // namespace leasehold::soak
