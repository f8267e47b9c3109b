#include "tools/client/broker_view.hpp"

#include "tools/cli/all_pages.hpp"
#include "tools/cli/answer.hpp"

namespace leasehold::demo {
namespace {

Result<wire::Json> items_of(const wire::Json& reply) {
  const auto items = reply.find("items");
  if (items == reply.end() || !items->is_array()) {
    return fail(Errc::MalformedMessage, "the broker's answer has no list of items");
  }
  return *items;
}

}  // namespace

Result<BrokerView> BrokerView::connect(const std::string& path) {
  return BrokerView(TRY(control::Client::connect(path)));
}

Result<wire::Json> BrokerView::ask(const std::string& method) {
  return ask(method, wire::Json::object());
}

Result<wire::Json> BrokerView::ask(const std::string& method, wire::Json params) {
  return TRY(client_.call(method, {.body = std::move(params)})).body;
}

template <class View>
Result<std::vector<View>> BrokerView::list(const std::string& method) {
  const wire::Json reply = TRY(ask(method));
  std::vector<View> views;
  for (const wire::Json& item : TRY(items_of(reply))) {
    views.push_back(TRY(cli::read_answer<View>(item)));
  }
  return views;
}

Result<wire::StatusView> BrokerView::status() {
  const wire::Json reply = TRY(ask("status"));
  return cli::read_answer<wire::StatusView>(reply);
}

Result<std::vector<wire::LeaseView>> BrokerView::leases() {
  return cli::all_pages<wire::LeaseView>(
      [this](const std::string& method, const wire::Json& params) { return ask(method, params); });
}

Result<std::vector<wire::ExtentView>> BrokerView::extents() {
  return cli::all_pages<wire::ExtentView>(
      [this](const std::string& method, const wire::Json& params) { return ask(method, params); });
}

Result<std::vector<wire::WorkerView>> BrokerView::workers() {
  return list<wire::WorkerView>("worker.list");
}

Result<std::vector<events::StampedEvent>> BrokerView::events() {
  std::vector<events::StampedEvent> all;
  std::uint64_t after = 0;
  while (true) {
    const wire::Json reply = TRY(ask("event.list", {{"after", after}, {"limit", 1000}}));
    const wire::Json items = TRY(items_of(reply));
    if (items.empty()) return all;
    for (const wire::Json& item : items) all.push_back(TRY(events::from_json(item)));
    const auto sequence = items.back().find("sequence");
    if (sequence == items.back().end() || !sequence->is_number_unsigned()) {
      return fail(Errc::MalformedMessage, "an event has no sequence number");
    }
    after = sequence->get<std::uint64_t>();
  }
}

Result<UniqueFd> BrokerView::open_extent(ExtentId extent) {
  auto reply = TRY(client_.call(std::string(wire::ExtentOpen::kMethod),
                                {.body = wire::ExtentOpen{.extent = extent}.to_json()}));
  if (reply.fds.size() == 1) return std::move(reply.fds.front());
  return fail(Errc::MalformedMessage, "extent.open must answer with one descriptor");
}

}  // namespace leasehold::demo
