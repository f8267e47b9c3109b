#include "tests/simulation/cell/scale/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tools/cell/decide/membership.hpp"
#include "tools/cell/decide/tenant_demand.hpp"
#include "tools/cell/decide/tenant_part.hpp"
#include "tools/gateway/decide/place.hpp"

namespace leasehold::cell::scale {
namespace {

using simulation::ModelledEtcd;

const CellKeys kKeys{CellName{"scale"}};
const TenantId kTenant{"tenant-000000"};
const HostName kHost{"host-00000"};
const Share kLimits{.concurrent = 8, .blocks = 4'096, .tokens_per_minute = 100'000};

/// etcd stores a change under its revision: 17 bytes, four numbers of the record, and the header of
/// an entry in a page of its file. Pages are two thirds full.
constexpr double kBytesOfChange = 17 + 4 * 9 + 16;
constexpr double kPageShare = 1.5;
/// Changes are kept for this long (`--auto-compaction-retention=5m`).
constexpr double kCompactionSeconds = 300;
/// Of a watch event, beyond key and value.
constexpr double kBytesOfEvent = 60;
constexpr int kSeconds = 60;

double stored(double bytes) {
  return (bytes + kBytesOfChange) * kPageShare;
}

/// What is written on behalf of one request of a tenant without a part: its first request takes a
/// part, and ten seconds later the part is returned.
struct Visit {
  int writes = 0;
  double bytes = 0;         // of the changes
  double mail_bytes = 0;    // of changes that hosts watch
  double ledger_bytes = 0;  // of the record while the part exists
};

double bytes_of_puts(const etcd::Transaction& call, Visit& visit) {
  double bytes = 0;
  for (const etcd::Operation& operation : call.success) {
    const auto* put = std::get_if<etcd::Put>(&operation);
    const auto* erased = std::get_if<etcd::Delete>(&operation);
    const std::string key = put ? put->key : erased ? erased->range.first : "";
    const double size = static_cast<double>(key.size() + (put ? put->value.size() : 0));
    if (!key.empty()) bytes += stored(size);
    if (kKeys.mail_of(kHost).contains(key)) visit.mail_bytes += size + kBytesOfEvent;
    if (put && key == kKeys.ledger(kTenant)) visit.ledger_bytes = stored(size);
  }
  return bytes;
}

void run_part(ModelledEtcd& etcd, TenantPart& part, Visit& visit) {
  for (int i = 0; i < 20; ++i) {
    part.confirmed(part.limit().revision, part.limit().share);
    const auto call = part.next_call();
    if (!call) return;
    if (!call->conditions.empty()) {
      ++visit.writes;
      visit.bytes += bytes_of_puts(*call, visit);
    }
    (void)part.replied(etcd.execute(*call));
  }
}

Visit visit() {
  ModelledEtcd etcd;
  const auto joined =
      etcd.execute({.conditions = {},
                    .success = {etcd::Put{kKeys.host(kHost), "{}"},
                                etcd::Put{kKeys.tenant(kTenant), text_of(CellPolicy{kLimits})}},
                    .failure = {}});
  Visit counted;
  TenantPart part(kKeys, kTenant);
  part.joined({kHost, joined.revision});
  TenantDemand demand;
  demand.seen(1, TimePoint{1});
  part.wants(demand.share());
  run_part(etcd, part, counted);
  demand.seen(0, TimePoint{1} + 2 * TenantDemand::kIdle);
  part.wants(demand.share());
  run_part(etcd, part, counted);
  return counted;
}

/// The largest record that a beat may have.
double bytes_of_beat() {
  return static_cast<double>(kKeys.host(kHost).size() + HostRecord::kMaxBytes);
}

double bytes_of_tenant() {
  const std::string hash(64, 'a');
  const CellKey key{.hash = hash, .tenant = kTenant, .name = "a key"};
  const auto policy = kKeys.tenant(kTenant).size() + text_of(CellPolicy{kLimits}).size();
  return stored(static_cast<double>(policy)) +
         stored(static_cast<double>(kKeys.key(api_key_id(hash)).size() + text_of(key).size()));
}

/// Writes in each second: beats by the phase of their host, and the writes of random visits.
class Minute {
 public:
  explicit Minute(const CellSize& size) : size_(size), writes_(kSeconds) {}

  void add_beats(int hosts) {
    const int every_s = static_cast<int>(CellConfig().ttl() / std::chrono::seconds(3));
    for (int host = 0; host < hosts; ++host)
      for (auto at = static_cast<int>(random_.below(static_cast<std::uint64_t>(every_s)));
           at < kSeconds; at += every_s)
        ++writes_[static_cast<std::size_t>(at)];
  }
  void add_visits(double per_s, int writes_each) {
    for (int i = 0; i < static_cast<int>(per_s * writes_each * kSeconds); ++i) add_one(kSeconds);
  }
  /// One write, within these seconds from the loss.
  void add_one(int within_s) { ++writes_[random_.below(static_cast<std::uint64_t>(within_s))]; }
  double busiest() const { return *std::ranges::max_element(writes_); }

 private:
  CellSize size_;
  SeededRandom random_{1};
  std::vector<int> writes_;
};

}  // namespace

Load load_of(const CellSize& size) {
  const Visit each = visit();
  const double requests_per_s = size.tenants * size.requests_per_hour / 3600;
  Minute calm(size);
  calm.add_beats(size.hosts);
  calm.add_visits(requests_per_s, each.writes);

  const int lost = static_cast<int>(size.hosts * size.lost_share);
  const double alive_parts = requests_per_s * 15;
  Minute loss(size);
  loss.add_beats(size.hosts - lost);
  loss.add_visits(requests_per_s, each.writes);
  // Two gateways may try to expire a host; it joins again within the minute; its texts move.
  for (int i = 0; i < lost * 3; ++i) loss.add_one(10);
  for (int i = 0; i < static_cast<int>(alive_parts * size.lost_share) * each.writes; ++i)
    loss.add_one(2);

  const double beats_per_s =
      size.hosts / std::chrono::duration<double>(CellConfig().ttl() / 3).count();
  const double history =
      kCompactionSeconds * (beats_per_s * stored(bytes_of_beat()) + requests_per_s * each.bytes);
  const double live = size.tenants * bytes_of_tenant() + size.hosts * stored(bytes_of_beat()) +
                      alive_parts * each.ledger_bytes;
  return {.writes_per_s = calm.busiest(),
          .loss_writes_per_s = loss.busiest(),
          .watch_bytes_per_s = requests_per_s / size.hosts * each.mail_bytes,
          .gateway_bytes_per_s = beats_per_s * (bytes_of_beat() + kBytesOfEvent),
          .etcd_mib = (live + history) / (1 << 20)};
}

double placement_ms(int hosts) {
  std::vector<std::string> addresses;
  for (int i = 0; i < hosts; ++i)
    addresses.push_back(fmt::format("10.{}.{}.{}:8000", i >> 16, i >> 8 & 255, i & 255));
  auto table = gateway::HostTable::create(std::move(addresses), std::chrono::seconds(2)).value();
  const TimePoint now{1'000'000'000};
  for (int i = 0; i < hosts; ++i)
    table.reported(gateway::HostId{static_cast<std::uint64_t>(i)},
                   {.name = "h", .models = {{"m", "identity"}}, .ready = true}, now);
  constexpr int kPlacements = 200;
  const std::clock_t begin = std::clock();
  for (int i = 0; i < kPlacements; ++i) {
    const auto digest = gateway::placement_digest("key", fmt::format("prompt {}", i));
    (void)gateway::place(table, {.model = "m", .digest = digest}, now);
  }
  return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / kPlacements;
}

}  // namespace leasehold::cell::scale
