#include "broker/server/event_log.hpp"

namespace leasehold {
namespace {

constexpr const char* kStepsOwner = "(steps)";  // not a tenant: names of tenants have no brackets

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

Result<std::uint64_t> EventLog::append(events::Event event, TimePoint at) {
  Result<std::uint64_t> in_file = file_ ? file_->append(event, at) : 0;
  if (const auto* changed = std::get_if<events::LeaseStateChanged>(&event);
      changed != nullptr && changed->state == LeaseState::Revoked)
    ++revocations_.at(static_cast<std::size_t>(changed->reason));
  adapter_loads_ += std::holds_alternative<events::AdapterLoaded>(event) ? 1 : 0;
  adapter_evictions_ += std::holds_alternative<events::AdapterEvicted>(event) ? 1 : 0;
  Leases::value_type* lease = lease_of(event);
  add_to_owner(owner_of(event, lease), ++newest_);
  events_.emplace_hint(events_.end(), newest_, Entry{{std::move(event), at}, lease});
  if (events_.size() > capacity_) evict();
  return in_file;
}

EventLog::Leases::value_type* EventLog::lease_of(const events::Event& event) {
  std::string lease = lease_named_in(event);
  if (lease.empty()) return nullptr;
  const auto known = leases_.try_emplace(std::move(lease)).first;
  ++known->second.events;
  return &*known;
}

void EventLog::add_to_owner(std::string owner, std::uint64_t sequence) {
  auto& [name, sequences] = *of_owner_.try_emplace(std::move(owner)).first;
  owners_by_count_.erase({sequences.size(), name});
  sequences.push_back(sequence);
  owners_by_count_.emplace(sequences.size(), name);
}

std::string EventLog::owner_of(const events::Event& event, Leases::value_type* lease) {
  if (std::holds_alternative<events::BatchedDecodeStep>(event)) return kStepsOwner;
  std::string tenant = tenant_named_in(event);
  if (lease == nullptr) return tenant;
  if (!tenant.empty()) lease->second.tenant = std::move(tenant);
  return lease->second.tenant;
}

void EventLog::evict() {
  const auto most = of_owner_.find(std::string(owners_by_count_.rbegin()->second));
  auto& [name, sequences] = *most;
  owners_by_count_.erase({sequences.size(), name});
  const auto evicted = events_.find(sequences.front());
  sequences.pop_front();
  if (sequences.empty())
    of_owner_.erase(most);
  else
    owners_by_count_.emplace(sequences.size(), name);
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
