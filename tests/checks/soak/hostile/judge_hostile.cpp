#include "tests/checks/soak/hostile/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::soak {
namespace {

using runner::Check;
using runner::Finding;

constexpr std::uint64_t kBytesPerMiB = 1 << 20;

Check judge_texts(const HostileRecord& record) {
  Finding texts("Every honest text equals the undisturbed one", "texts");
  std::uint64_t complete = 0;
  for (const runner::Text& text : record.texts) {
    const std::string wrong =
        text.record.failed ? "ended with " + *text.record.failed : runner::text_error(text);
    texts.sample(wrong.empty() ? "" : text.tenant + " " + wrong);
    complete += text.record.completed ? 1 : 0;
  }
  Check check = texts.check();
  check.ok = check.ok && complete > 0;
  check.seen += fmt::format(", {} complete", complete);
  return check;
}

Check judge_rebinds(const HostileRecord& record) {
  Finding rebinds("Every revoked honest tenant got one typed error and continued", "revocations");
  for (const HonestRevocation& revocation : record.revocations) {
    std::size_t reports = 0;
    for (const runner::Text& text : record.texts) {
      reports +=
          std::ranges::count(text.record.revocations, revocation.lease, &runner::Revocation::lease);
    }
    rebinds.sample(reports == 1 ? ""
                                : fmt::format("lease {} was reported {} times",
                                              to_string(revocation.lease), reports));
  }
  return rebinds.check();
}

Check judge_attacks(const HostileRecord& record) {
  Finding attacks("Every attack was made", "attacks");
  for (const std::string& expected : record.expected_attacks)
    attacks.sample(record.was_made(expected) ? "" : expected);
  return attacks.check();
}

Check judge_http(const HostileRecord& record) {
  Finding requests("Every request of the honest tenant over HTTP is answered", "requests");
  for (const HttpRequest& request : record.http_requests)
    requests.sample(request.is_answered ? "" : "one is not");
  return requests.check();
}

/// Replies of this kind to all attacks.
std::uint64_t replies(const HostileRecord& record, const std::string& kind) {
  std::uint64_t count = 0;
  for (const auto& [attack, outcome] : record.attacks) {
    const auto found = outcome.replies.find(kind);
    if (found != outcome.replies.end()) count += found->second;
  }
  return count;
}

/// Each grant and release writes to the journal.
Check judge_state_disk(const HostileRecord& record) {
  const DiskUse& disk = record.state_disk;
  const std::uint64_t refused = replies(record, "DiskFull");
  return {
      .promise = "The journal never fills its disk",
      .ok = refused == 0 && (disk.size_bytes == 0 || disk.peak_bytes < disk.size_bytes),
      .seen = disk.size_bytes == 0
                  ? "a small disk needs root; not checked"
                  : fmt::format("{} calls answered, {} refused with DiskFull, at most {:.1f} of "
                                "{} MiB used",
                                replies(record, "ok"), refused,
                                static_cast<double>(disk.peak_bytes) / kBytesPerMiB,
                                disk.size_bytes / kBytesPerMiB)};
}

Check judge_memory_of(const std::string& program, const MemoryUse& use, std::uint64_t most) {
  return {.promise = fmt::format("The {} grows by at most {} MiB", program, most / kBytesPerMiB),
          .ok = use.before_bytes > 0 && use.growth_bytes() <= most,
          .seen = fmt::format("{} MiB before, {} MiB at most", use.before_bytes / kBytesPerMiB,
                              use.peak_bytes / kBytesPerMiB)};
}

}  // namespace

void MemoryUse::see(std::uint64_t bytes, bool attacked) {
  if (!attacked) before_bytes = std::max(before_bytes, bytes);
  peak_bytes = std::max(peak_bytes, bytes);
}

std::uint64_t MemoryUse::growth_bytes() const {
  return peak_bytes - std::min(peak_bytes, before_bytes);
}

std::vector<Check> judge_hostile(const HostileRecord& record) {
  const bool is_free = record.last && runner::is_all_free(*record.last);
  return {
      {.promise = "The run ends, with the broker and the worker that it began with",
       .ok = record.failure.empty(),
       .seen = record.failure.empty() ? "both run" : record.failure},
      {.promise = "The worker never loses its broker",
       .ok = record.worker_kept_link,
       .seen = record.worker_kept_link ? "it did not" : "its log says it did"},
      judge_texts(record),
      judge_rebinds(record),
      judge_attacks(record),
      judge_http(record),
      judge_memory_of("worker", record.worker, kMaxWorkerGrowthBytes),
      judge_memory_of("broker", record.broker, kMaxBrokerGrowthBytes),
      judge_state_disk(record),
      {.promise = "All leased memory is free at the end",
       .ok = is_free,
       .seen = is_free ? "all" : "some is not"},
  };
}

}  // namespace leasehold::soak
