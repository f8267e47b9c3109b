#include "tools/gateway/decide/place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

#include "common/checksum.hpp"
#include "common/random.hpp"
#include "common/utf8.hpp"
#include "tools/gateway/decide/host_identity.hpp"

namespace leasehold::gateway {
namespace {

// Shortens the name, because a client without a key chooses it and the log contains it.
std::string model_text(std::string_view model) {
  return model.empty() ? "a model" : fmt::format("the model '{}'", printable_excerpt(model));
}

/// Why no host takes a request: how many hosts passed each condition, and when the first of those
/// that refuse may be asked again.
struct Counts {
  std::uint32_t reported = 0;
  std::uint32_t serving = 0;
  std::uint32_t of_identity = 0;
  std::uint32_t ready = 0;
  std::optional<TimePoint> first_retry;
};

/// True if no host in the list reports the model, so that its name may be that of an adapter.
bool may_be_adapter(const HostTable& hosts, std::string_view model) {
  return std::ranges::none_of(hosts.ids(), [&](HostId id) {
    const HostReport* report = hosts.report(id);
    return report != nullptr && hosts.is_listed(id) && report->serves(model);
  });
}

/// True if a host with this report may compute the text. An adapter has the identity of its model.
bool has_identity(const HostReport& report, const PlaceQuery& query) {
  if (query.wanted == nullptr) return true;
  const bool is_any = query.model.empty() || !report.serves(query.model);
  const auto is_wanted = [&](const ServedModel& model) {
    return (is_any || model.id == query.model) && may_continue(*query.wanted, model.identity);
  };
  return std::ranges::any_of(report.models, is_wanted);
}

/// Adds the host to the counts. True if it can take the request.
bool can_take(const HostTable& hosts, HostId id, const PlaceQuery& query, bool as_adapter,
              TimePoint now, Counts& counts) {
  const HostReport* report = hosts.report(id);
  if (report == nullptr || !hosts.is_listed(id)) return false;
  ++counts.reported;
  const bool serves = as_adapter ? report->loads_adapters : report->serves(query.model);
  if (!serves || (query.needs_files && !report->keeps_files)) return false;
  ++counts.serving;
  if (!has_identity(*report, query)) return false;
  ++counts.of_identity;
  if (hosts.state(id, now) < (query.only_ready ? HostState::Ready : HostState::Late)) return false;
  if (std::ranges::find(query.without, id) != query.without.end()) return false;
  ++counts.ready;
  const TimePoint retry = hosts.refuses_until(id);
  if (retry <= now) return true;
  counts.first_retry = std::min(counts.first_retry.value_or(retry), retry);
  return false;
}

Error no_host(const PlaceQuery& query, const Counts& counts, TimePoint now) {
  const std::string model = model_text(query.model);
  if (counts.reported == 0)  // a host may yet serve it
    return {Errc::NoModelLoaded, "no host has reported its models yet; try again in a moment"};
  if (counts.serving == 0 && query.needs_files) {
    return {Errc::UnknownWorker,
            "no host keeps files and runs batches; the operator starts a worker with --batch-dir"};
  }
  if (counts.serving == 0) {
    return {Errc::UnknownWorker,
            fmt::format("no host serves {}; /v1/models lists those that are served", model)};
  }
  if (counts.of_identity == 0) {
    return {Errc::UnknownWorker,
            fmt::format("{} hosts serve {}, and none of them computes this text alike; its "
                        "identity is {}",
                        counts.serving, model, query.wanted->identity)};
  }
  if (counts.ready == 0) {
    return {Errc::NoModelLoaded,
            fmt::format("{} hosts serve {}, and none of them is ready for this request; try again "
                        "in a moment",
                        counts.of_identity, model)};
  }
  Error error{Errc::QueueFull,
              fmt::format("the {} ready hosts of {} accept no request now; try again in a moment",
                          counts.ready, model)};
  const auto wait =
      std::chrono::ceil<std::chrono::milliseconds>(counts.first_retry.value_or(now) - now);
  error.retry_after_ms = std::max<std::int64_t>(1, wait.count());
  return error;
}

/// True if one more request keeps the host within 1.25 times the mean of `count` hosts, which have
/// `total` requests with it.
bool has_room(std::uint64_t load, std::uint64_t total, std::uint64_t count) {
  return (load + 1) * count * 4 <= total * 5 + count * 4 - 1;  // load + 1 <= ceil(1.25 * mean)
}

}  // namespace

std::uint64_t placement_digest(std::string_view key, std::string_view prompt) {
  Checksum digest;
  digest.add(key.data(), key.size());
  digest.add("\0", 1);
  digest.add(prompt.data(), std::min(prompt.size(), kPlacedPromptBytes));
  return digest.value;
}

std::uint64_t placement_weight(std::uint64_t digest, std::string_view address) {
  return random_at(digest, Checksum::of(address.data(), address.size()));
}

bool may_continue(const WantedIdentity& wanted, std::string_view identity) {
  if (!wanted.any_arithmetic) return !identity.empty() && wanted.identity == identity;
  const auto [one, one_limits] = parts_of(wanted.identity);
  const auto [other, other_limits] = parts_of(identity);
  return one && other && one->content == other->content && one_limits == other_limits;
}

Result<HostId> place(const HostTable& hosts, const PlaceQuery& query, TimePoint now) {
  Counts counts;
  std::vector<HostId> able;
  std::uint64_t total = 1;  // the request itself
  const bool as_adapter = may_be_adapter(hosts, query.model);
  for (const HostId id : hosts.ids())
    if (can_take(hosts, id, query, as_adapter, now, counts)) able.push_back(id);
  if (able.empty()) return std::unexpected(no_host(query, counts, now));
  const auto state = [&](HostId id) { return hosts.state(id, now); };
  const HostState best_state = std::ranges::max(able | std::views::transform(state));
  std::erase_if(able, [&](HostId id) { return state(id) != best_state; });
  for (const HostId host : able) total += hosts.load(host, now);
  std::optional<HostId> best;
  std::uint64_t best_weight = 0;
  for (const HostId host : able) {
    if (!has_room(hosts.load(host, now), total, able.size())) continue;
    const std::uint64_t weight = placement_weight(query.digest, hosts.address(host));
    const bool is_better = !best || std::tie(weight, hosts.address(host)) >
                                        std::tie(best_weight, hosts.address(*best));
    if (is_better) std::tie(best, best_weight) = std::tuple(host, weight);
  }
  return *best;  // the least loaded host always has room
}

}  // namespace leasehold::gateway
