#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/utf8.hpp"
#include "tests/checks/demo/observation.hpp"

namespace leasehold::demo {
namespace {

/// The replacement character that decoders write for invalid UTF-8.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
/// The beginning of control tokens in every common template, such as <|im_end|>.
constexpr std::string_view kMarker = "<|";

/// Compares the text with the undisturbed one. The check passes if they are equal.
Check same_text(std::string promise, const TenantRecord& observed,
                const TenantRecord& undisturbed) {
  const auto differ = std::ranges::mismatch(observed.tokens, undisturbed.tokens);
  return {.promise = std::move(promise),
          .ok = observed.tokens == undisturbed.tokens && observed.text == undisturbed.text,
          .seen = fmt::format("{} tokens, {} undisturbed, the first {} are equal",
                              observed.tokens.size(), undisturbed.tokens.size(),
                              differ.in1 - observed.tokens.begin())};
}

Check cut_short(const TenantResult& result) {
  const auto& observed = result.observed.tokens;
  const auto& undisturbed = result.undisturbed.tokens;
  Check check = same_text(
      fmt::format(
          "{} was killed in the middle; its tokens until then are those of the undisturbed run",
          result.spec.name),
      result.observed, result.undisturbed);
  check.ok = !observed.empty() && observed.size() < undisturbed.size() &&
             std::ranges::equal(observed, std::span(undisturbed).first(observed.size()));
  return check;
}

std::string ending(const TenantRecord& observed) {
  if (observed.failed) return *observed.failed;
  return observed.completed.value_or("no end");
}

void judge_disturbed(const Observation& seen, std::vector<Check>& checks) {
  for (const TenantResult& result : seen.results) {
    const std::string& name = result.spec.name;
    if (name == seen.killed) {
      checks.push_back(cut_short(result));
      continue;
    }
    checks.push_back(same_text(
        name + (name == seen.revoked ? "'s text under two leases is that of the undisturbed run"
                                     : "'s tokens are those of the undisturbed run"),
        result.observed, result.undisturbed));
    checks.back().ok = checks.back().ok && result.observed.tokens.size() >= seen.enough_tokens;
    checks.push_back({.promise = name + " completed its request",
                      .ok = result.observed.completed.has_value(),
                      .seen = ending(result.observed)});
  }
}

/// A tenant's record accepts only the next position, so equal tokens mean that each token arrived
/// once.
void judge_recovered(const Observation& seen, std::vector<Check>& checks) {
  for (const TenantResult& result : seen.results) {
    const TenantRecord& recovered = result.recovered;
    Check check = same_text(
        result.spec.name + "'s text goes on after its worker was killed, each position once",
        recovered, result.undisturbed);
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

/// A revoked adapter ends its text once, which goes on under the tenant's own lease.
void judge_adapted(const Observation& seen, std::vector<Check>& checks) {
  for (const TenantResult& result : seen.results) {
    const TenantRecord& adapted = result.adapted;
    const bool is_revoked = result.spec.name == seen.adapter->tenant;
    const std::string which = is_revoked               ? "'s text under an adapter that is revoked"
                              : result.adapter.empty() ? "'s text beside adapters"
                                                       : "'s text under another adapter";
    Check check = same_text(result.spec.name + which + " is that of the undisturbed run", adapted,
                            result.adapter.empty() ? result.undisturbed : result.adapted_alone);
    check.ok = check.ok && adapted.completed && adapted.leases.size() == 1 &&
               adapted.revocations.size() == (is_revoked ? 1 : 0);
    check.seen += fmt::format("; {} leases, {} revocations, {}", adapted.leases.size(),
                              adapted.revocations.size(), ending(adapted));
    checks.push_back(std::move(check));
  }
}

/// The end of the text, for a reader of the report.
std::string end_of(std::string_view text) {
  constexpr std::size_t kShown_bytes = 40;
  std::string_view end = text.substr(text.size() - std::min(text.size(), kShown_bytes));
  while (!end.empty() && !is_utf8(end)) end.remove_prefix(1);
  return fmt::format("{} bytes, the last are {}", text.size(), wire::Json(end).dump());
}

void judge_answer(const Observation& seen, const TenantResult& result, std::vector<Check>& checks) {
  const std::string& text = result.observed.text;
  const std::string whose = result.spec.name + "'s answer ";
  checks.push_back({.promise = whose + "is text without control tokens",
                    .ok = !text.empty() && is_utf8(text) && !text.contains(kReplacement) &&
                          !text.contains(kMarker),
                    .seen = end_of(text)});
  if (result.spec.name == seen.killed) return;
  const std::string end = result.observed.completed.value_or("no end");
  checks.push_back({.promise = whose + "ends with the model's end token or at the token limit",
                    .ok = end == "EndOfSequence" || end == "MaxTokensReached",
                    .seen = end});
  if (result.expects.empty()) return;
  const bool found = text.contains(result.expects);
  checks.push_back({.promise = fmt::format("{}contains \"{}\"", whose, result.expects),
                    .ok = found,
                    .seen = found ? "it does" : "it does not"});
}

}  // namespace

void judge_texts(const Observation& seen, std::vector<Check>& checks) {
  judge_disturbed(seen, checks);
  judge_recovered(seen, checks);
  if (seen.adapter) judge_adapted(seen, checks);
  for (const TenantResult& result : seen.results)
    if (result.spec.chat) judge_answer(seen, result, checks);
}

}  // namespace leasehold::demo
