#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/checks/demo/check_groups.hpp"

namespace leasehold::demo {
namespace {

/// Past the revocation and the kill: what comes after them is what is judged.
constexpr std::size_t kEnoughTokens = 64;

std::string comparison(const TenantRecord& told, const TenantRecord& undisturbed) {
  const auto differ = std::ranges::mismatch(told.tokens, undisturbed.tokens);
  const auto same = differ.in1 - told.tokens.begin();
  return fmt::format("{} tokens, {} undisturbed, the first {} the same", told.tokens.size(),
                     undisturbed.tokens.size(), same);
}

Check same_text(const Story& story, const std::string& promise) {
  const bool same =
      story.told.tokens == story.undisturbed.tokens && story.told.text == story.undisturbed.text;
  return {.promise = promise,
          .ok = same && story.told.tokens.size() >= kEnoughTokens,
          .seen = comparison(story.told, story.undisturbed)};
}

Check cut_short(const Story& story) {
  const auto& told = story.told.tokens;
  const auto differ = std::ranges::mismatch(told, story.undisturbed.tokens);
  return {.promise = fmt::format("{} was killed in the middle, and was right until then",
                                 story.actor.name),
          .ok = !told.empty() && told.size() < story.undisturbed.tokens.size() &&
                differ.in1 == told.end(),
          .seen = comparison(story.told, story.undisturbed)};
}

std::string ending(const TenantRecord& told) {
  if (told.failed) return *told.failed;
  return told.completed.value_or("no ending at all");
}

}  // namespace

void check_texts(const Observation& seen, std::vector<Check>& checks) {
  for (const Story& story : seen.stories) {
    const std::string& name = story.actor.name;
    if (name == seen.killed) {
      checks.push_back(cut_short(story));
      continue;
    }
    checks.push_back(same_text(
        story, name == seen.revoked
                   ? fmt::format("{}'s text across two leases is its undisturbed text", name)
                   : fmt::format("{}'s tokens are those of the undisturbed run", name)));
    checks.push_back({.promise = fmt::format("{} ended with an answer", name),
                      .ok = story.told.completed.has_value(),
                      .seen = ending(story.told)});
  }
}

}  // namespace leasehold::demo
