#include "tools/monitor/cell_hosts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/metrics/exposition.hpp"
#include "tools/cell/decide/silent_hosts.hpp"

namespace leasehold::monitor {
namespace {

using wire::Json;

constexpr std::string_view kStates[] = {"member", "draining", "silent"};

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

Json names_of(const std::vector<cell::OfferedModel>& models) {
  Json names = Json::array();
  for (const cell::OfferedModel& model : models) names.push_back(model.name);
  return names;
}

}  // namespace

void CellHosts::listed(const CellEntries& entries, TimePoint now) {
  slack_ = entries.config.slack();
  read_at_ = now;
  problems_.clear();
  const cell::AllParts parts = cell::parts_in(entries.ledgers);
  for (const Error& problem : parts.problems) problems_.push_back(problem.detail);
  const auto earlier = std::exchange(hosts_, {});
  for (const etcd::KeyValue& entry : entries.hosts) {
    const auto name = keys_.host_in(entry.key);
    if (!name) continue;
    auto record = cell::read_host(entry.key, entry.value);
    if (!record) {
      problems_.push_back(record.error().detail);
      continue;
    }
    const auto known = earlier.find(*name);
    const bool is_same = known != earlier.end() && known->second.beat == entry.modified;
    hosts_[*name] = {.incarnation = entry.created,
                     .beat = entry.modified,
                     .since = is_same ? known->second.since : now,
                     .record = *std::move(record),
                     .parts = parts.of({*name, entry.created})};
  }
}

/// As of the newest read: while etcd cannot be read, beats may arrive there.
std::string_view CellHosts::state_of(const Host& host) const {
  const bool has_ttl = host.record.ttl_ms > 0;
  if (has_ttl && read_at_ - host.since > cell::longest_silence(host.record, slack_))
    return "silent";
  return host.record.is_draining ? "draining" : "member";
}

Json CellHosts::to_json(TimePoint now) const {
  Json items = Json::array();
  for (const auto& [name, host] : hosts_) {
    items.push_back({{"host", name.value},
                     {"state", state_of(host)},
                     {"incarnation", host.incarnation.value},
                     {"beat_age_ms", (now - host.since) / std::chrono::milliseconds(1)},
                     {"ttl_ms", host.record.ttl_ms},
                     {"tenants", host.parts.tenants},
                     {"requests", host.parts.requests},
                     {"free_blocks", host.record.free_blocks},
                     {"models", names_of(host.record.models)},
                     {"doors", host.record.doors}});
  }
  return {{"items", std::move(items)}, {"problems", problems_}};
}

std::string CellHosts::metrics(TimePoint now) const {
  metrics::Exposition page;
  std::map<std::string_view, std::uint64_t> counts;
  std::vector<std::pair<TimePoint, const cell::HostName*>> oldest;
  for (const auto& [name, host] : hosts_) {
    ++counts[state_of(host)];
    oldest.emplace_back(host.since, &name);
  }
  for (const std::string_view state : kStates)
    page.gauge({"leasehold_monitor_cell_hosts",
                "Hosts of the cell; silent ones have stopped and should be expired"},
               static_cast<double>(counts[state]), {{"state", std::string(state)}});
  page.gauge({"leasehold_monitor_cell_problems", "Records of the cell that cannot be read"},
             static_cast<double>(problems_.size()));
  std::ranges::sort(oldest);
  oldest.resize(std::min(oldest.size(), kNamedHosts));
  const auto add = [&](const metrics::Name& name, const auto& value_of) {
    for (const auto& [since, host] : oldest)
      page.gauge(name, value_of(hosts_.at(*host)), {{"host", host->value}});
  };
  add({"leasehold_monitor_cell_host_beat_age_seconds",
       "Time since the newest beat of the host was first found"},
      [&](const Host& host) { return seconds(now - host.since); });
  add({"leasehold_monitor_cell_host_tenants", "Tenants of whose limits the host has a part"},
      [](const Host& host) { return static_cast<double>(host.parts.tenants); });
  add({"leasehold_monitor_cell_host_free_blocks", "KV blocks that the host can lease at once"},
      [](const Host& host) { return static_cast<double>(host.record.free_blocks); });
  return page.text();
}

}  // namespace leasehold::monitor
