#include "tests/simulation/cell/scale/settlement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/random.hpp"
#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tools/cell/decide/part_schedule.hpp"

namespace leasehold::cell::scale {
namespace {

using simulation::ModelledEtcd;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Of Debian's etcd with three members on two loaded cores: 475 transactions a second.
constexpr Duration kWriteTakes = microseconds(2'100);
constexpr Duration kReadTakes = microseconds(300);
/// As the program waits for a confirmation before a write (TenantSteps).
constexpr Duration kConfirmTime = milliseconds(20);
constexpr Duration kBegin = milliseconds(200);  // in which all hosts get their first requests
constexpr Duration kEnd = std::chrono::seconds(9);
constexpr std::uint32_t kBlocksOfRequest = 16;

class Run {
 public:
  Run(std::uint64_t seed, int hosts);
  Settlement run();

 private:
  struct Host {
    PartOwner owner;
    TenantPart part;
    TenantDemand demand;
    PartSchedule schedule;
    std::uint64_t told = 0;   // revision of the limit that the broker has
    std::uint64_t timer = 0;  // only the newest one rings
    std::uint64_t waits = 0;  // for confirmations, so far
    bool is_busy = false;     // a call runs
    bool has_waited = false;  // for the confirmation
  };

  void at(Duration after, std::function<void()> action) {
    queue_.emplace(std::pair(now_ + after, events_++), std::move(action));
  }
  Duration between(std::uint64_t least_us, std::uint64_t most_us) {
    return microseconds(least_us + random_.below(most_us - least_us + 1));
  }
  void begin(Host& host);
  void set_timer(Host& host);
  void drive(Host& host);
  void wait_for_broker(Host& host);
  void tell_broker(Host& host);
  void send(Host& host, etcd::Transaction call);
  void execute(Host& host, const etcd::Transaction& call);
  void replied(Host& host, const etcd::TransactionReply& reply);
  void deliver_mails(etcd::Revision before);
  void deliver_mail(Host& host, const std::string& value);
  bool is_divided() const;

  SeededRandom random_;
  CellKeys keys_{CellName{"scale"}};
  TenantId tenant_{"t"};
  Share limits_;
  ModelledEtcd etcd_;
  std::vector<std::unique_ptr<Host>> hosts_;
  TimePoint now_;
  TimePoint etcd_is_free_;
  TimePoint last_change_;  // of an entry in the ledger or of a broker's limit
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> queue_;
  std::uint64_t events_ = 0;
  Settlement counted_;
};

Run::Run(std::uint64_t seed, int hosts) : random_(seed) {
  const auto requests = static_cast<std::uint32_t>(hosts) * (random_.below(2) == 0 ? 2u : 8u);
  limits_ = {.concurrent = requests,
             .blocks = requests * kBlocksOfRequest,
             .tokens_per_minute = 1'000'000};
  etcd_.execute({.conditions = {},
                 .success = {etcd::Put{keys_.tenant(tenant_), text_of(CellPolicy{limits_})}},
                 .failure = {}});
  for (int i = 0; i < hosts; ++i) {
    const HostName name{fmt::format("h{:02}", i)};
    const auto joined = etcd_.execute(
        {.conditions = {}, .success = {etcd::Put{keys_.host(name), "{}"}}, .failure = {}});
    hosts_.push_back(std::make_unique<Host>(
        Host{.owner = {name, joined.revision}, .part = TenantPart(keys_, tenant_)}));
  }
}

Settlement Run::run() {
  const auto begin_us = static_cast<std::uint64_t>(kBegin / microseconds(1));
  for (auto& host : hosts_) at(between(0, begin_us), [this, &host] { begin(*host); });
  while (!queue_.empty() && queue_.begin()->first.first < TimePoint{} + kEnd) {
    auto next = queue_.extract(queue_.begin());
    now_ = next.key().first;
    next.mapped()();
  }
  counted_.time = last_change_ - TimePoint{};
  counted_.is_divided = is_divided();
  return counted_;
}

bool Run::is_divided() const {
  std::vector<Claim> claims;
  for (const auto& host : hosts_)
    claims.push_back({host->part.limit().share, smaller(host->demand.share(), limits_)});
  const std::vector<Share> due = divide(limits_, claims);
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (hosts_[i]->part.limit().share != due[i]) return false;
  return true;
}

void Run::begin(Host& host) {
  host.part.joined(host.owner);
  host.demand.seen(1u << random_.below(4), now_);
  host.part.wants(host.demand.share());
  drive(host);
}

void Run::set_timer(Host& host) {
  const auto due = host.schedule.due_at(host.demand);
  const std::uint64_t timer = ++host.timer;
  if (!due) return;
  at(std::max(Duration::zero(), *due - now_), [this, &host, timer] {
    if (timer != host.timer) return;
    if (host.schedule.begin_step(now_)) host.part.look_again();
    drive(host);
  });
}

void Run::drive(Host& host) {
  if (host.is_busy) return;
  tell_broker(host);
  if (host.part.awaits_confirmation() && !host.has_waited) return wait_for_broker(host);
  host.has_waited = false;
  if (auto call = host.part.next_call()) return send(host, *std::move(call));
  tell_broker(host);
  host.schedule.stepped(host.part, false, now_, random_());
  set_timer(host);
}

void Run::wait_for_broker(Host& host) {
  const std::uint64_t wait = ++host.waits;
  at(kConfirmTime, [this, &host, wait] {
    if (wait != host.waits) return;
    host.has_waited = true;
    drive(host);
  });
}

/// No requests run that could delay the confirmation.
void Run::tell_broker(Host& host) {
  const BrokerLimit limit = host.part.limit();
  if (std::exchange(host.told, limit.revision) == limit.revision) return;
  last_change_ = now_;
  at(between(2'000, 20'000), [this, &host, limit] {
    host.part.confirmed(limit.revision, limit.share);
    ++host.waits;
    drive(host);
  });
}

void Run::send(Host& host, etcd::Transaction call) {
  host.is_busy = true;
  at(between(500, 1'500), [this, &host, call = std::move(call)] {
    etcd_is_free_ =
        std::max(etcd_is_free_, now_) + (call.conditions.empty() ? kReadTakes : kWriteTakes);
    at(etcd_is_free_ - now_, [this, &host, call] { execute(host, call); });
  });
}

void Run::execute(Host& host, const etcd::Transaction& call) {
  const etcd::Revision before = etcd_.revision();
  const etcd::TransactionReply reply = etcd_.execute(call);
  const bool is_write = !call.conditions.empty();
  counted_.reads += !is_write;
  counted_.refused += is_write && !reply.succeeded;
  if (is_write && reply.succeeded) {
    ++counted_.writes;
    last_change_ = now_;
    deliver_mails(before);
  }
  at(between(500, 1'500), [this, &host, reply] { replied(host, reply); });
}

void Run::replied(Host& host, const etcd::TransactionReply& reply) {
  host.is_busy = false;
  if (host.part.replied(reply)) drive(host);
}

void Run::deliver_mails(etcd::Revision before) {
  for (auto& host : hosts_) {
    const etcd::KeyRange mails = keys_.mail_of(host->owner.host);
    if (etcd_.changes_from(mails, {before.value + 1}).empty()) continue;
    for (const etcd::KeyValue& mail : etcd_.read(mails))
      at(between(1'000, 5'000), [this, &host, value = mail.value] { deliver_mail(*host, value); });
  }
  etcd_.compact(etcd_.revision());
}

void Run::deliver_mail(Host& host, const std::string& value) {
  if (value == kWantedMail) {
    host.schedule.wanted(host.part, now_);
    return set_timer(host);
  }
  host.part.look_again();
  drive(host);
}

}  // namespace

Settlement settle(std::uint64_t seed, int hosts) {
  return Run(seed, hosts).run();
}

}  // namespace leasehold::cell::scale
