#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <set>
#include <span>

#include "common/lease_ended.hpp"
#include "tools/checks/soak/judge_checks.hpp"

namespace leasehold::soak {
namespace {

using Chapter = std::span<const demo::Told>;

bool is(const demo::Told& told, std::string_view event) {
  return told.event == event;
}

bool is_end(const demo::Told& told) {
  return is(told, "completed") || is(told, "failed");
}

std::size_t count(Chapter chapter, std::string_view event) {
  return static_cast<std::size_t>(
      std::ranges::count_if(chapter, [&](const demo::Told& told) { return is(told, event); }));
}

/// From each `acquired` to the next.
std::vector<Chapter> chapters(const std::vector<demo::Told>& told) {
  std::vector<Chapter> all;
  for (std::size_t begin = 0; begin < told.size(); ++begin) {
    if (!is(told[begin], "acquired")) continue;
    std::size_t end = begin + 1;
    while (end < told.size() && !is(told[end], "acquired")) ++end;
    all.push_back({&told[begin], end - begin});
  }
  return all;
}

/// Somebody other than its holder ended it.
bool was_taken(const LeaseStory& story) {
  return story.revoked && story.reason != RevokeReason::Released &&
         story.reason != RevokeReason::HolderGone;
}

bool says_over(std::string_view code) {
  const auto known = errc_from_name(code);
  return known && is_lease_ended(*known);
}

/// The lease that these words name, if they name one.
std::optional<LeaseId> lease_in(std::string_view detail) {
  constexpr std::string_view kBefore = "lease ";
  for (auto at = detail.find(kBefore); at != detail.npos; at = detail.find(kBefore, at + 1)) {
    const std::string_view rest = detail.substr(at + kBefore.size());
    const auto lease = LeaseId::parse(rest.substr(0, rest.find_first_not_of("0123456789.")));
    if (lease) return *lease;
  }
  return std::nullopt;
}

/// A refusal or a failure because the lease is over: this one, unless the words name another.
bool gives_as_cause(const demo::Told& told, LeaseId lease) {
  const bool in_words = is(told, "retry") || is(told, "failed");
  return in_words && says_over(told.why) && lease_in(told.detail).value_or(lease) == lease;
}

/// How often the holder was told that this lease is over. The end of the stream is told by one
/// line, and the next says what the tenant does about it: that is no second telling. An answer to
/// `renew` or `release` has no line, for it tells nothing unasked: an operation on a lease that is
/// over is refused as often as it is tried.
std::size_t tellings(Chapter chapter, LeaseId lease) {
  std::size_t tellings = 0;
  bool was_end = false;
  for (const demo::Told& told : chapter) {
    const bool is_end_of_stream = is(told, "revoked") && told.lease == lease;
    if (is_end_of_stream || (gives_as_cause(told, lease) && !was_end)) ++tellings;
    was_end = is_end_of_stream;
  }
  return tellings;
}

/// What is wrong with what the holder was told of this lease; empty when nothing is.
std::string hearing(Chapter chapter, const LeaseStory* story, bool was_killed) {
  const LeaseId lease = *chapter.front().lease;
  const std::size_t times = tellings(chapter, lease);
  if (times > 1) return fmt::format("was told {} times of lease {}", times, to_string(lease));
  const auto foreign = std::ranges::any_of(
      chapter, [&](const demo::Told& told) { return is(told, "revoked") && told.lease != lease; });
  if (foreign) return fmt::format("was told of another lease under {}", to_string(lease));
  // Who never submitted heard it as the refusal of the attempt; who was killed may not have read.
  const bool must_hear = story != nullptr && was_taken(*story) && !was_killed &&
                         count(chapter, "submitted") > 0 && count(chapter, "completed") == 0;
  // Whose worker or connection died heard that instead, as a retry or a failure.
  const bool heard = times > 0 || count(chapter, "retry") + count(chapter, "failed") > 0;
  if (must_hear && !heard) return fmt::format("was never told of lease {}", to_string(lease));
  return {};
}

const LeaseStory* story_of(const Case& all, const TenantLife& tenant, Chapter chapter) {
  const LeaseId lease = *chapter.front().lease;
  const auto life = life_of(all.lives, lease, tenant.tenant, chapter.front().at);
  return life ? &all.lives[*life].leases.at(lease) : nullptr;
}

demo::Check heard_once(const Case& all) {
  Finding finding("every live holder heard exactly once of each lease that was taken from it",
                  "leases held");
  for (const TenantLife& tenant : all.history.tenants) {
    for (const Chapter chapter : chapters(tenant.record.told)) {
      finding.looked();
      const std::string wrong = hearing(chapter, story_of(all, tenant, chapter), tenant.was_killed);
      if (!wrong.empty()) finding.wrong(fmt::format("{} {}", tenant.tenant, wrong));
    }
  }
  return finding.check();
}

/// What the holder's program wrote is one side; this is what was handed to its socket.
demo::Check sent_once(const Case& all) {
  Finding finding("no stream was sent the end of its lease twice", "ends of leases sent");
  for (const BrokerLife& life : all.history.brokers) {
    std::set<std::pair<std::string, LeaseId>> sent;
    for (const events::StampedEvent& stamped : life.events) {
      const auto* ended = std::get_if<events::RequestCompletedEvent>(&stamped.event);
      if (ended == nullptr || !(ended->reason == "Revoked" || says_over(ended->reason))) continue;
      finding.looked();
      if (sent.emplace(ended->request.value, ended->lease).second) continue;
      finding.wrong(fmt::format("{} of lease {}", ended->tenant, to_string(ended->lease)));
    }
  }
  return finding.check(0);
}

demo::Check ended_once(const Case& all) {
  Finding finding("every tenant that was not killed ended once, and with a reason", "tenants");
  for (const TenantLife& tenant : all.history.tenants) {
    finding.looked();
    const auto& told = tenant.record.told;
    const auto ends = std::ranges::count_if(told, is_end);
    const bool once = tenant.was_killed ? ends <= 1 : ends == 1;
    const bool last = ends == 0 || is_end(told.back());
    if (once && last) continue;
    finding.wrong(fmt::format("{} ended {} times{}", tenant.tenant, ends,
                              last ? "" : " and went on afterwards"));
  }
  return finding.check();
}

/// SIGKILL is the ladder's; 1 is the exit code of what nobody foresaw.
demo::Check no_crash(const Case& all) {
  Finding finding("no process ended by a crash", "ends that nobody caused");
  for (const OwnEnd& end : all.history.ends) {
    finding.looked();
    const bool by_signal = end.status > 128 && end.status != 128 + SIGKILL;
    if (end.status != 1 && !by_signal) continue;
    finding.wrong(fmt::format("{} ended with {}", end.program, end.status));
  }
  return finding.check(0);
}

/// Whole when it was answered, a beginning otherwise.
demo::Check same_texts(const Case& all) {
  Finding finding("every text is the undisturbed one, or its beginning when it was cut off",
                  "tokens");
  for (const TenantLife& tenant : all.history.tenants) {
    const auto& tokens = tenant.record.tokens;
    finding.looked(tokens.size());
    const auto differ = std::ranges::mismatch(tokens, tenant.undisturbed);
    if (differ.in1 != tokens.end()) {
      finding.wrong(fmt::format("{} differs at {}", tenant.tenant, differ.in1 - tokens.begin()));
    } else if (tenant.record.completed && tokens.size() != tenant.undisturbed.size()) {
      finding.wrong(fmt::format("{} was answered with {} of {} tokens", tenant.tenant,
                                tokens.size(), tenant.undisturbed.size()));
    }
  }
  return finding.check();
}

}  // namespace

void judge_holders(const Case& all, std::vector<demo::Check>& checks) {
  checks.push_back(heard_once(all));
  checks.push_back(sent_once(all));
  checks.push_back(ended_once(all));
  checks.push_back(same_texts(all));
  checks.push_back(no_crash(all));
}

}  // namespace leasehold::soak
