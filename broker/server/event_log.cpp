#include "broker/server/event_log.hpp"

namespace leasehold {
namespace {

std::string text_of(const std::string& text) {
  return text;
}
std::string text_of(const LeaseId& lease) {
  return to_string(lease);
}

std::string tenant_named_in(const events::Event& event) {
  return std::visit(
      [](const auto& e) {
        if constexpr (requires { e.tenant; }) return std::string(e.tenant);
        return std::string();
      },
      event);
}

std::string lease_named_in(const events::Event& event) {
  return std::visit(
      [](const auto& e) {
        if constexpr (requires { e.lease; }) return text_of(e.lease);
        return std::string();
      },
      event);
}

}  // namespace

void EventLog::append(events::Event event, TimePoint at) {
  if (file_) {
    if (auto written = file_->append(event, at); !written) {
      file_error_ = std::move(written).error();
      file_.reset();
    }
  }
  std::string lease = lease_named_in(event);
  std::string tenant = owner_of(event, lease);
  kept_.take(tenant);
  of_tenant_[tenant].push_back(++newest_);
  events_.emplace(newest_, Entry{{std::move(event), at}, std::move(lease), std::move(tenant)});
  if (kept_.taken() > kept_.capacity()) evict();
}

std::string EventLog::owner_of(const events::Event& event, const std::string& lease) {
  std::string tenant = tenant_named_in(event);
  if (lease.empty()) return tenant;
  KnownLease& known = leases_[lease];
  ++known.events;
  if (!tenant.empty()) known.tenant = std::move(tenant);
  return known.tenant;
}

void EventLog::evict() {
  const std::string tenant = kept_.largest();
  std::deque<std::uint64_t>& sequences = of_tenant_.at(tenant);
  const auto evicted = events_.find(sequences.front());
  sequences.pop_front();
  if (sequences.empty()) of_tenant_.erase(tenant);
  kept_.give_back(tenant);
  const auto lease = leases_.find(evicted->second.lease);
  if (lease != leases_.end() && --lease->second.events == 0) leases_.erase(lease);
  events_.erase(evicted);
}

std::vector<NumberedEvent> EventLog::after(std::uint64_t after, std::size_t limit) const {
  std::vector<NumberedEvent> found;
  for (auto event = events_.upper_bound(after); event != events_.end() && found.size() < limit;
       ++event)
    found.push_back({event->first, event->second.stamped});
  return found;
}

}  // namespace leasehold
