// Observers that follow hosts by a watch, through outages of etcd and late transactions.
#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <utility>

#include "common/random.hpp"
#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tests/support/test_seed.hpp"
#include "tools/cell/decide/membership.hpp"
#include "tools/cell/decide/silent_hosts.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using simulation::ModelledEtcd;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const CellKeys kKeysOfCell{CellName{"c"}};
const HostName kBeating{"beats"};
const HostName kDying{"dies"};
constexpr Duration kStep = milliseconds(100);
constexpr Duration kHostTtl = seconds(30);
constexpr Duration kLastOutage = seconds(400);
constexpr Duration kEnd = seconds(600);

/// One schedule: a host that beats whenever etcd can be reached, one that is frozen, beats once
/// more at about the time of its expiry, and stops, and two observers.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : random_(seed) {
    for (std::uint64_t i = random_.below(4); i > 0; --i) {
      const Duration begin = up_to(kLastOutage - seconds(120));
      outages_.emplace_back(begin, begin + up_to(seconds(120)));
    }
    freezes_ = up_to(kLastOutage);
    last_beat_ = freezes_ + kHostTtl + up_to(seconds(4));
    for (Observer& observer : observers_) observer.rate_per_mille = 998 + random_.below(5);
  }

  void run() {
    for (; now_ < kEnd; now_ += kStep) {
      beat(beating_);
      if (now_ < freezes_) beat(dying_);
      if (now_ == last_beat_) beat_at_once(dying_);
      for (Observer& observer : observers_) observe(observer);
    }
  }
  bool was_fenced() const { return was_fenced_; }
  bool was_early() const { return was_early_; }
  bool has_expired() const { return etcd_.read(kKeysOfCell.hosts()).size() == 1; }

 private:
  struct Host {
    Membership membership;
    std::uint64_t beats = 0;
    Duration next{};
  };
  struct Observer {
    SilentHosts hosts{kKeysOfCell, seconds(1)};
    std::uint64_t rate_per_mille = 1000;  ///< Of its clock.
    Duration next_read{};
    bool has_listed = false;
    std::deque<std::pair<Duration, etcd::WatchEvent>> events = {};  // by their time
    std::deque<std::pair<Duration, Expiry>> expiries = {};          // on their way to etcd
  };

  Duration up_to(Duration most) {
    return kStep * static_cast<std::int64_t>(random_.below(most / kStep + 1));
  }
  bool is_up() const {
    return std::ranges::none_of(
        outages_, [&](const auto& outage) { return now_ >= outage.first && now_ < outage.second; });
  }
  TimePoint clock_of(const Observer& observer) const {
    return TimePoint{1} + now_ / 1000 * static_cast<std::int64_t>(observer.rate_per_mille);
  }
  TimePoint clock() const { return TimePoint{1} + now_; }

  void beat(Host& host) {
    if (now_ < host.next) return;
    host.next = now_ + (is_up() ? seconds(10) : Duration(milliseconds(500))) + up_to(seconds(1));
    beat_at_once(host);
  }
  void beat_at_once(Host& host) {
    if (!is_up()) return;
    const HostRecord record{.beat = {++host.beats}, .ttl_ms = kHostTtl / milliseconds(1)};
    const auto call = host.membership.next_call(record).value();
    host.membership.sent(record, clock());
    const auto change = host.membership.replied(execute(call)).value();
    was_fenced_ = was_fenced_ || (&host == &beating_ && change == MembershipChange::Fenced);
  }

  /// Every observer learns each change, at most a second later.
  etcd::TransactionReply execute(const etcd::Transaction& transaction) {
    const auto reply = etcd_.execute(transaction);
    if (!reply.succeeded) return reply;
    for (const etcd::Operation& operation : transaction.success) {
      etcd::WatchEvent event;
      if (const auto* put = std::get_if<etcd::Put>(&operation)) {
        event.entry = etcd_.read(etcd::KeyRange::one(put->key)).front();
      } else if (const auto* erased = std::get_if<etcd::Delete>(&operation)) {
        event = {.entry = {.key = erased->range.first, .modified = reply.revision},
                 .is_deleted = true};
      } else {
        continue;
      }
      for (Observer& observer : observers_) {
        const Duration last = observer.events.empty() ? now_ : observer.events.back().first;
        observer.events.emplace_back(std::max(last, now_ + up_to(seconds(1))), event);
      }
    }
    return reply;
  }

  void observe(Observer& observer) {
    while (!observer.events.empty() && observer.events.front().first <= now_) {
      observer.hosts.changed(observer.events.front().second, clock_of(observer));
      observer.events.pop_front();
    }
    while (!observer.expiries.empty() && observer.expiries.front().first <= now_) {
      const Expiry expiry = observer.expiries.front().second;
      observer.expiries.pop_front();
      if (is_up()) expire(observer, expiry);
    }
    if (now_ < observer.next_read || !is_up()) return;
    observer.next_read = now_ + seconds(1);
    if (!std::exchange(observer.has_listed, true))
      observer.hosts.listed(etcd_.read(kKeysOfCell.hosts()), clock_of(observer));
    observer.hosts.contacted(clock_of(observer));
    for (Expiry& expiry : observer.hosts.expired(clock_of(observer)))
      observer.expiries.emplace_back(now_ + up_to(seconds(2)), std::move(expiry));
  }

  void expire(Observer& observer, const Expiry& expiry) {
    const bool has_expired = execute(expiry.transaction).succeeded;
    observer.hosts.refused(expiry.host, clock_of(observer));
    if (has_expired && expiry.host == kDying)
      was_early_ = was_early_ || clock() < dying_.membership.ceiling();
  }

  SeededRandom random_;
  ModelledEtcd etcd_;
  Duration now_{};
  Duration freezes_{};    // the host that stops
  Duration last_beat_{};  // of the host that stops
  std::vector<std::pair<Duration, Duration>> outages_;
  Host beating_{Membership(kKeysOfCell, kBeating)};
  Host dying_{Membership(kKeysOfCell, kDying)};
  std::array<Observer, 2> observers_;
  bool was_fenced_ = false;
  bool was_early_ = false;
};

}  // namespace

TEST_CASE(
    "silent hosts: through outages a host that stops is expired late enough, and no other is") {
  const std::uint64_t first = testing::test_seed();
  for (std::uint64_t seed = first; seed < first + 100; ++seed) {
    INFO("SEED=" << seed);
    Schedule schedule(seed);
    schedule.run();
    REQUIRE_FALSE(schedule.was_fenced());
    REQUIRE_FALSE(schedule.was_early());
    REQUIRE(schedule.has_expired());
  }
}
