#include "tests/simulation/cell/network.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

namespace leasehold::cell::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kCallTimeout = seconds(1);

}  // namespace

std::string_view name(Counted counted) {
  constexpr std::string_view kNames[] = {"joins",
                                         "renewed ceilings",
                                         "own beats found after a lost reply",
                                         "fences",
                                         "expiries",
                                         "calls lost",
                                         "replies lost",
                                         "calls that arrived after their timeout",
                                         "calls executed twice",
                                         "watches with a gap",
                                         "watches whose changes were compacted",
                                         "joins under a name in use",
                                         "parts that brokers took",
                                         "void parts dropped",
                                         "ledgers with a replacement",
                                         "revocations that ended",
                                         "mails",
                                         "requests for more during the pause after one",
                                         "broker restarts",
                                         "commits",
                                         "texts whose lease ended",
                                         "texts that moved from a silent host",
                                         "texts that ended",
                                         "schedules that settled"};
  return kNames[static_cast<unsigned>(counted)];
}

struct Network::Call {
  Machine& from;
  etcd::Transaction transaction;
  OnReply done;
  Action failed;
  bool has_ended = false;
};

Duration Network::between(std::int64_t least_ms, std::int64_t most_ms) {
  const auto range = static_cast<std::uint64_t>(most_ms - least_ms) * 1'000 + 1;
  return milliseconds(least_ms) +
         std::chrono::microseconds(static_cast<std::int64_t>(random_.below(range)));
}

void Network::at(Duration after, Machine* machine, Action action) {
  queue_.emplace(Turn(now_ + after, now_ + after, events_++), Event{machine, std::move(action)});
}

bool Network::step(TimePoint end) {
  if (queue_.empty() || std::get<0>(queue_.begin()->first) > end) return false;
  auto next = queue_.extract(queue_.begin());
  const auto [time, due, number] = next.key();
  now_ = time;
  Event event = std::move(next.mapped());
  if (event.machine && event.machine->stopped_until > now_) {
    const TimePoint later = event.machine->stopped_until;
    queue_.emplace(Turn(later, due, number), std::move(event));
  } else {
    event.action();
  }
  return true;
}

void Network::call(Machine& from, etcd::Transaction transaction, OnReply done, Action failed) {
  auto call = std::make_shared<Call>(
      Call{from, std::move(transaction), std::move(done), std::move(failed)});
  at(kCallTimeout, &from, [call] {
    if (std::exchange(call->has_ended, true)) return;
    call->failed();
  });
  Duration delay = between(1, 60);
  if (!is_calm && (one_in(25) || (from.is_cut && !one_in(30)))) {
    if (!one_in(3)) return count(Counted::LostCalls);
    delay = between(1'000, 15'000);  // held back somewhere on the way
    count(Counted::LateCalls);
  }
  at(delay, nullptr, [this, call] { arrive(call); });
  if (is_calm || !one_in(40)) return;
  count(Counted::RepeatedCalls);
  at(delay + between(0, 500), nullptr, [this, call] { arrive(call); });
}

void Network::arrive(const std::shared_ptr<Call>& call) {
  const etcd::TransactionReply reply = etcd_.execute(call->transaction);
  if (on_executed_) on_executed_();
  if (!is_calm && (call->from.is_cut || one_in(20))) return count(Counted::LostReplies);
  at(between(1, 60), &call->from, [call, reply] {
    if (std::exchange(call->has_ended, true)) return;
    call->done(reply);
  });
}

void Network::trace(const std::string& line) const {
  if (!running_schedule.is_traced) return;
  std::printf("%9.3f %s\n", static_cast<double>(now_.boottime_ns) / 1e9, line.c_str());
}

}  // namespace leasehold::cell::simulation
