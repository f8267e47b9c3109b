#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/checks/demo/check_groups.hpp"

namespace leasehold::demo {
namespace {

/// Enough to include tokens after the revocation and the kill.
constexpr std::size_t kEnoughTokens = 64;

std::string comparison(const TenantRecord& observed, const TenantRecord& undisturbed) {
  const auto differ = std::ranges::mismatch(observed.tokens, undisturbed.tokens);
  const auto same = differ.in1 - observed.tokens.begin();
  return fmt::format("{} tokens, {} undisturbed, the first {} are equal", observed.tokens.size(),
                     undisturbed.tokens.size(), same);
}

Check same_text(const TenantResult& result, const std::string& promise) {
  const bool same = result.observed.tokens == result.undisturbed.tokens &&
                    result.observed.text == result.undisturbed.text;
  return {.promise = promise,
          .ok = same && result.observed.tokens.size() >= kEnoughTokens,
          .seen = comparison(result.observed, result.undisturbed)};
}

Check cut_short(const TenantResult& result) {
  const auto& observed = result.observed.tokens;
  const auto differ = std::ranges::mismatch(observed, result.undisturbed.tokens);
  return {.promise = fmt::format(
              "{} was killed in the middle; its tokens until then are those of the undisturbed run",
              result.spec.name),
          .ok = !observed.empty() && observed.size() < result.undisturbed.tokens.size() &&
                differ.in1 == observed.end(),
          .seen = comparison(result.observed, result.undisturbed)};
}

std::string ending(const TenantRecord& observed) {
  if (observed.failed) return *observed.failed;
  return observed.completed.value_or("no end");
}

}  // namespace

void check_texts(const Observation& seen, std::vector<Check>& checks) {
  for (const TenantResult& result : seen.results) {
    const std::string& name = result.spec.name;
    if (name == seen.killed) {
      checks.push_back(cut_short(result));
      continue;
    }
    checks.push_back(same_text(
        result, name == seen.revoked
                    ? fmt::format("{}'s text under two leases is that of the undisturbed run", name)
                    : fmt::format("{}'s tokens are those of the undisturbed run", name)));
    checks.push_back({.promise = fmt::format("{} completed its request", name),
                      .ok = result.observed.completed.has_value(),
                      .seen = ending(result.observed)});
  }
}

}  // namespace leasehold::demo
