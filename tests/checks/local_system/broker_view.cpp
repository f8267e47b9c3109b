#include "tests/checks/local_system/broker_view.hpp"

#include <fmt/format.h>

#include <functional>

#include "ipc/client/all_pages.hpp"
#include "ipc/client/parse_message.hpp"

namespace leasehold {

Result<BrokerView> BrokerView::connect(const std::string& path) {
  return BrokerView(TRY(control::Client::connect(path)));
}

Result<wire::Json> BrokerView::call(const std::string& method, wire::Json params) {
  return TRY(client_.call(method, {.body = std::move(params)})).body;
}

Result<wire::StatusView> BrokerView::status() {
  return client::parse_message<wire::StatusView>(TRY(call("status", wire::Json::object())));
}

Result<std::vector<wire::LeaseView>> BrokerView::leases() {
  return client::all_pages<wire::LeaseView>(std::bind_front(&BrokerView::call, this));
}

Result<std::optional<LeaseId>> BrokerView::live_adapter_lease(const std::string& adapter) {
  const std::string part = adapter + "@";
  for (const wire::LeaseView& lease : TRY(leases())) {
    const bool is_it = lease.scope == wire::LeaseScope::Adapter && lease.part.starts_with(part);
    if (is_it && lease.state == LeaseState::Live) return std::optional(lease.lease);
  }
  return std::optional<LeaseId>();
}

Result<std::vector<wire::ExtentView>> BrokerView::extents() {
  return client::all_pages<wire::ExtentView>(std::bind_front(&BrokerView::call, this));
}

Result<std::vector<wire::TenantView>> BrokerView::tenants() {
  return client::all_pages<wire::TenantView>(std::bind_front(&BrokerView::call, this));
}

Result<std::vector<wire::WorkerView>> BrokerView::workers() {
  return client::parse_items<wire::WorkerView>(TRY(call("worker.list", wire::Json::object())));
}

Result<std::vector<events::StampedEvent>> BrokerView::events() {
  std::vector<events::StampedEvent> all;
  std::uint64_t after = 0;
  while (true) {
    const wire::Json reply = TRY(call("event.list", {{"after", after}, {"limit", 1000}}));
    const auto items = reply.find("items");
    if (items == reply.end() || !items->is_array()) {
      return fail(Errc::MalformedMessage, "the broker's reply has no list of events");
    }
    if (items->empty()) return all;
    for (const wire::Json& item : *items) all.push_back(TRY(events::from_json(item)));
    const auto sequence = items->back().find("sequence");
    if (sequence == items->back().end() || !sequence->is_number_unsigned()) {
      return fail(Errc::MalformedMessage, "an event has no sequence number");
    }
    after = sequence->get<std::uint64_t>();
  }
}

Result<UniqueFd> BrokerView::open_extent(ExtentId extent) {
  auto reply = TRY(client_.call(std::string(wire::ExtentOpen::kMethod),
                                {.body = wire::ExtentOpen{.extent = extent}.to_json()}));
  if (reply.fds.size() == 1) return std::move(reply.fds.front());
  return fail(
      Errc::MalformedMessage,
      fmt::format("the reply to extent.open has {} descriptors, expected 1", reply.fds.size()));
}

}  // namespace leasehold
