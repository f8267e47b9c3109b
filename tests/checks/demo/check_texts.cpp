#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/checks/demo/check_groups.hpp"

namespace leasehold::demo {
namespace {

std::string comparison(const TenantRecord& observed, const TenantRecord& undisturbed) {
  const auto differ = std::ranges::mismatch(observed.tokens, undisturbed.tokens);
  const auto same = differ.in1 - observed.tokens.begin();
  return fmt::format("{} tokens, {} undisturbed, the first {} are equal", observed.tokens.size(),
                     undisturbed.tokens.size(), same);
}

Check same_text(const TenantRecord& observed, const TenantRecord& undisturbed,
                const std::string& promise) {
  return {.promise = promise,
          .ok = observed.tokens == undisturbed.tokens && observed.text == undisturbed.text,
          .seen = comparison(observed, undisturbed)};
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
        result.observed, result.undisturbed,
        name == seen.revoked
            ? fmt::format("{}'s text under two leases is that of the undisturbed run", name)
            : fmt::format("{}'s tokens are those of the undisturbed run", name)));
    checks.back().ok = checks.back().ok && result.observed.tokens.size() >= seen.enough_tokens;
    checks.push_back({.promise = fmt::format("{} completed its request", name),
                      .ok = result.observed.completed.has_value(),
                      .seen = ending(result.observed)});
  }
}

/// A tenant's record accepts only the next position, so equal tokens mean that each token arrived
/// once.
void check_recovery(const Observation& seen, std::vector<Check>& checks) {
  for (const TenantResult& result : seen.results) {
    const TenantRecord& recovered = result.recovered;
    Check check =
        same_text(recovered, result.undisturbed,
                  fmt::format("{}'s text goes on after its worker was killed, each position once",
                              result.spec.name));
    check.ok = check.ok && recovered.completed && recovered.leases.size() == 2;
    check.seen += fmt::format("; {} leases, {}", recovered.leases.size(), ending(recovered));
    if (recovered.completed && recovered.leases.size() == 1)
      check.seen += "; it ended before the kill, so raise --slow-motion-us or --max-tokens";
    checks.push_back(std::move(check));
  }
  if (!seen.reads_memory) return;  // memory of a device is not adopted
  checks.push_back({.promise = "the worker's successor adopted the memory of every text",
                    .ok = seen.adopted == seen.results.size(),
                    .seen = fmt::format("{} of {}", seen.adopted, seen.results.size())});
}

}  // namespace leasehold::demo
