#include "broker/server/event_log.hpp"

#include <algorithm>

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
  Leases::value_type* lease = lease_of(event);
  of_owner_[owner_of(event, lease)].push_back(++newest_);
  events_.emplace_hint(events_.end(), newest_, Entry{{std::move(event), at}, lease});
  if (events_.size() > capacity_) evict();
}

EventLog::Leases::value_type* EventLog::lease_of(const events::Event& event) {
  std::string lease = lease_named_in(event);
  if (lease.empty()) return nullptr;
  const auto known = leases_.try_emplace(std::move(lease)).first;
  ++known->second.events;
  return &*known;
}

std::string EventLog::owner_of(const events::Event& event, Leases::value_type* lease) {
  std::string tenant = tenant_named_in(event);
  if (lease == nullptr) return tenant;
  if (!tenant.empty()) lease->second.tenant = std::move(tenant);
  return lease->second.tenant;
}

void EventLog::evict() {
  const auto most = std::ranges::max_element(of_owner_, {},
                                             [](const auto& entry) { return entry.second.size(); });
  const auto evicted = events_.find(most->second.front());
  most->second.pop_front();
  if (most->second.empty()) of_owner_.erase(most);
  Leases::value_type* lease = evicted->second.lease;
  if (lease != nullptr && --lease->second.events == 0) leases_.erase(lease->first);
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
