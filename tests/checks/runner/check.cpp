#include "tests/checks/runner/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/cli/table.hpp"

namespace leasehold::runner {
namespace {

std::uint64_t sum_of_states(const auto& pool) {
  return pool.free_bytes + pool.owned_bytes + pool.draining_bytes + pool.scrubbing_bytes +
         pool.retained_bytes + pool.quarantined_bytes;
}

}  // namespace

bool all_ok(const std::vector<Check>& checks) {
  return !checks.empty() && std::ranges::all_of(checks, &Check::ok);
}

std::string check_line(bool ok, std::string_view promise, std::string_view seen) {
  return fmt::format("{}  {} ({})\n", ok ? "ok    " : "FAILED", promise, seen);
}

wire::Json checks_json(const std::vector<Check>& checks) {
  wire::Json json = wire::Json::array();
  for (const Check& check : checks)
    json.push_back({{"promise", check.promise}, {"ok", check.ok}, {"seen", check.seen}});
  return json;
}

void Finding::wrong(std::string what) {
  if (wrong_++ == 0) first_ = std::move(what);
}

void Finding::sample(std::string error) {
  checked();
  if (!error.empty()) wrong(std::move(error));
}

Check Finding::check(std::uint64_t at_least) const {
  Check check{.promise = promise_,
              .ok = wrong_ == 0 && checked_ >= at_least,
              .seen = fmt::format("{} {}", checked_, unit_)};
  if (wrong_ > 0) check.seen += fmt::format("; {} wrong, the first: {}", wrong_, first_);
  if (checked_ < at_least) check.seen += ", too few to check";
  return check;
}

Check happened(std::string promise, std::string unit, std::uint64_t times) {
  Finding finding(std::move(promise), std::move(unit));
  finding.checked(times);
  return finding.check();
}

Check all_happened(std::string promise, const NamedCounts& counts) {
  Finding finding(std::move(promise), "kinds");
  for (const auto& [what, count] : counts)
    finding.sample(count > 0 ? "" : what + " never happened");
  return finding.check();
}

std::string text_error(const Text& text) {
  const auto& tokens = text.record.tokens;
  const auto differ = std::ranges::mismatch(tokens, text.undisturbed);
  if (differ.in1 != tokens.end()) return fmt::format("differs at {}", differ.in1 - tokens.begin());
  if (text.record.completed && tokens.size() != text.undisturbed.size())
    return fmt::format("was answered with {} of {} tokens", tokens.size(), text.undisturbed.size());
  return {};
}

std::string not_conserved(const wire::StatusView& status) {
  const std::uint64_t kv = sum_of_states(status) + status.held_bytes;
  const std::uint64_t swap = sum_of_states(status.swap);
  if (kv != status.capacity_bytes)
    return fmt::format("KV: {} of {} bytes", kv, status.capacity_bytes);
  if (swap != status.swap.capacity_bytes)
    return fmt::format("swap: {} of {} bytes", swap, status.swap.capacity_bytes);
  return {};
}

bool is_all_free(const wire::StatusView& status) {
  return status.capacity_bytes > 0 &&
         status.free_bytes + status.held_bytes == status.capacity_bytes &&
         status.swap.free_bytes == status.swap.capacity_bytes;
}

Check conserved(const Record& record) {
  Finding finding("no byte of either pool was lost or counted twice", "samples");
  for (const BrokerInstance& broker : record.brokers)
    for (const wire::StatusView& status : broker.samples) finding.sample(not_conserved(status));
  return finding.check();
}

Check all_free(const Record& record) {
  using cli::bytes_text;
  Check check{.promise = "all memory is free at the end", .seen = "no broker answered"};
  if (!record.last) return check;
  const wire::StatusView& last = *record.last;
  check.ok = is_all_free(last);
  check.seen = fmt::format("{} of {} free, {} held for its worker, of swap {} of {}",
                           bytes_text(last.free_bytes), bytes_text(last.capacity_bytes),
                           bytes_text(last.held_bytes), bytes_text(last.swap.free_bytes),
                           bytes_text(last.swap.capacity_bytes));
  return check;
}

}  // namespace leasehold::runner
