#include "broker/server/lease_waits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "broker/server/page.hpp"
#include "broker/server/views/lease_view.hpp"

namespace leasehold {
namespace {

/// True if `a` is to be named before `b`: revoked leases come before live ones, the oldest first.
bool is_older(const LeaseRecord& a, const LeaseRecord& b) {
  const bool is_revoked = a.is(LeaseState::Revoked);
  if (is_revoked != b.is(LeaseState::Revoked)) return is_revoked;
  return is_revoked && a.revoked_at() < b.revoked_at();
}

}  // namespace

Result<void> LeaseWaits::add(ConnectionId caller, wire::LeaseWait wait,
                             control::Responder& respond) {
  TRY(check_granted(wait.leases));
  if (wait.worker) add_revoked(*wait.worker, wait.leases);
  if (waits_.size() >= kMaxWaiting) {
    return fail(Errc::QueueFull,
                fmt::format("{} calls wait for leases already; repeat the call", kMaxWaiting));
  }
  const auto timeout = std::chrono::milliseconds(wait.timeout_ms);
  Wait& added =
      waits_.emplace_back(Wait{.caller = caller,
                               .message = std::move(wait),
                               .deadline = clock_.now() + timeout,
                               .respond = std::move(respond),
                               .timer = std::make_unique<boost::asio::steady_timer>(io_, timeout)});
  added.timer->async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    flush_();
    poll();
  });
  poll();
  return {};
}

Result<void> LeaseWaits::check_granted(const std::vector<LeaseId>& leases) const {
  for (const LeaseId lease : leases) {
    const LeaseRecord* newest = state_.leases.in_slot(lease.slot);
    if (newest != nullptr && lease.generation <= newest->id().generation) continue;
    return fail(Errc::UnknownLease,
                fmt::format("lease {} was never granted, or ended before the broker started; list "
                            "leases with `brokerctl leases`",
                            to_string(lease)));
  }
  return {};
}

/// The worker may be lost: its leases are then fenced when its process exits.
void LeaseWaits::add_revoked(const std::string& worker, std::vector<LeaseId>& leases) const {
  const std::set<LeaseId> named(leases.begin(), leases.end());
  for (const auto& [id, attached] : state_.workers.all()) {
    if (attached.name != worker) continue;
    for (const auto& [at, lease] : state_.leases.index().of(id).revoked) {
      const bool is_tenants = state_.leases.find_open(lease)->scope == wire::LeaseScope::Tenant;
      if (is_tenants && !named.contains(lease)) leases.push_back(lease);
    }
  }
}

/// A lease whose slot has another lease is over, because a slot is reused only after its memory has
/// returned.
bool LeaseWaits::is_over(LeaseId lease, bool until_free) const {
  const LeaseRecord& record = *state_.leases.in_slot(lease.slot);
  if (record.id() != lease) return true;
  if (!record.is(LeaseState::Fenced)) return false;
  return !until_free || record.memory_returned || record.quarantined_extents > 0;
}

bool LeaseWaits::is_done(Wait& wait) const {
  const std::vector<LeaseId>& leases = wait.message.leases;
  while (wait.first_open < leases.size() &&
         is_over(leases[wait.first_open], wait.message.until_free))
    ++wait.first_open;
  return wait.first_open == leases.size() || clock_.now() >= wait.deadline;
}

void LeaseWaits::poll() {
  for (auto wait = waits_.begin(); wait != waits_.end();) {
    if (!is_done(*wait)) {
      ++wait;
      continue;
    }
    Wait done = std::move(*wait);
    wait = waits_.erase(wait);
    done.respond(control::Payload{.body = reply_to(done), .fds = {}});
  }
}

control::Json LeaseWaits::reply_to(const Wait& wait) const {
  Page page(wait.message.leases.size());
  bool is_full = false;
  const LeaseRecord* oldest_open = nullptr;
  for (const LeaseId lease : wait.message.leases) {
    const LeaseRecord& record = *state_.leases.in_slot(lease.slot);
    if (!is_over(lease, wait.message.until_free)) {
      if (oldest_open == nullptr || is_older(record, *oldest_open)) oldest_open = &record;
    } else if (!is_full) {
      const wire::LeaseView view =
          record.id() == lease ? lease_view(state_, record)
                               : wire::LeaseView{.lease = lease, .state = LeaseState::Fenced};
      is_full = !page.add(view.to_json());
    }
  }
  control::Json reply{{"open", wait.message.leases.size() - page.size()}};
  reply["items"] = std::move(page).take();
  if (oldest_open != nullptr) reply["oldest_open"] = lease_view(state_, *oldest_open).to_json();
  return reply;
}

void LeaseWaits::forget(ConnectionId caller) {
  std::erase_if(waits_, [caller](const Wait& wait) { return wait.caller == caller; });
}

}  // namespace leasehold
