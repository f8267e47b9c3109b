#include "tools/monitor/broker_reader.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/log.hpp"
#include "common/machine/confined.hpp"
#include "ipc/client/all_pages.hpp"
#include "ipc/client/parse_message.hpp"
#include "ipc/control/transport/client.hpp"
#include "tools/monitor/broker_metrics.hpp"

namespace leasehold::monitor {
namespace {

using control::Json;

constexpr Duration kCallTimeout = std::chrono::seconds(2);

/// Each read opens a connection, because the broker closes idle ones.
class Connection {
 public:
  static Result<Connection> open(const std::string& socket) {
    return Connection(TRY(control::Client::connect(socket)));
  }
  Result<Json> operator()(const std::string& method, Json params) {
    auto reply = TRY(broker_.call(method, {.body = std::move(params)}, kCallTimeout));
    const auto total = reply.body.find("total");
    const bool is_counted = total != reply.body.end() && total->is_number_unsigned();
    total_ = is_counted ? total->get<std::uint64_t>() : 0;
    return std::move(reply.body);
  }
  /// The "total" of the last reply, which was a page of a list; 0 if the reply has none.
  std::uint64_t total() const { return total_; }

 private:
  explicit Connection(control::Client broker) : broker_(std::move(broker)) {}
  control::Client broker_;
  std::uint64_t total_ = 0;
};

/// The increase of a counter that starts again at 0 when the broker restarts.
std::uint64_t added(std::uint64_t now, std::uint64_t before) {
  return now < before ? now : now - before;
}

}  // namespace

BrokerReader::BrokerReader(std::string socket, const Clock& clock)
    : socket_(std::move(socket)),
      clock_(&clock),
      state_(clock, [this] { return make_state(); }),
      text_(clock, [this] { return make_text(); }),
      leases_(clock, [this] { return ask_leases(); }),
      extents_(clock, [this] { return ask_extents(); }),
      events_(clock, [this] { return ask_events(); }),
      requests_(clock, [this] { return ask_requests(); }) {}

Result<BrokerState> BrokerReader::ask_state() const {
  Connection broker = TRY(Connection::open(socket_));
  BrokerState state;
  const Json none = Json::object();
  const Json status = TRY(broker("status", none));
  state.status = TRY(client::parse_message<wire::StatusView>(status));
  state.audit = TRY(client::parse_message<wire::StatusOfAudit>(status)).audit;
  state.metrics = TRY(broker("metrics.read", none));
  const Json workers = TRY(broker("worker.list", none));
  state.workers = TRY(client::parse_items<wire::WorkerView>(workers));
  state.tenants = TRY(client::all_pages<wire::TenantView>(broker));
  // broker_metrics throws if the metrics have another structure.
  TRY(catch_request_errors([&]() -> Result<std::string> { return broker_metrics(state); },
                           Errc::MalformedMessage));
  return state;
}

void BrokerReader::count_tenants(BrokerState& state) {
  std::map<TenantId, wire::TenantServed> totals;
  for (const wire::TenantView& tenant : state.tenants) {
    const wire::TenantServed& now = tenant.served;
    const wire::TenantServed& before = totals_[tenant.policy.tenant];
    wire::TenantServed since = now;
    since.tenant = tenant.policy.tenant;
    since.tokens = added(now.tokens, before.tokens);
    since.preemptions = added(now.preemptions, before.preemptions);
    counts_.add(since, clock_->now());
    totals[tenant.policy.tenant] = now;
  }
  totals_ = std::move(totals);
  state.served = counts_.counts();
}

Result<BrokerState> BrokerReader::make_state() {
  auto answered = ask_state();
  const bool was_down = down_.has_value();
  down_ = answered ? std::nullopt : std::optional(answered.error());
  if (down_ && !was_down)
    spdlog::warn("the broker does not answer socket={} error={} reason=\"{}\"", socket_,
                 name(down_->code), down_->detail);
  if (!answered) return answered;
  if (was_down) spdlog::info("the broker answers again socket={}", socket_);
  count_tenants(*answered);
  history_.add(*answered, clock_->now());
  return answered;
}

std::string BrokerReader::make_text() {
  const auto& answered = state();
  return (answered ? broker_metrics(*answered) : broker_is_down()) +
         monitor_metrics(log_lines_dropped());
}

/// Returns the items, and how many there are in all.
template <class View>
Result<std::pair<std::vector<View>, std::uint64_t>> BrokerReader::ask_list() const {
  if (down_) return std::unexpected(*down_);
  Connection broker = TRY(Connection::open(socket_));
  auto views = TRY(client::first_pages<View>(broker, kEnoughItems));
  // The reply of an older broker has no total.
  const std::uint64_t total = std::max<std::uint64_t>(broker.total(), views.size());
  return std::pair(std::move(views), total);
}

Result<Json> BrokerReader::ask_leases() {
  const auto [leases, total] = TRY(ask_list<wire::LeaseView>());
  return Json{{"items", array_of(leases)},
              {"total", total},
              {"past", array_of(past_revocations_.update(leases))}};
}

Result<Json> BrokerReader::ask_extents() const {
  const auto [extents, total] = TRY(ask_list<wire::ExtentView>());
  return Json{{"items", array_of(extents)}, {"total", total}};
}

/// All workers are asked at the same time, so several that hang delay an answer like one.
Result<Json> BrokerReader::ask_requests() {
  const Result<BrokerState>& answered = state();
  if (!answered) return std::unexpected(answered.error());
  std::vector<std::string> workers;
  std::vector<control::Payload> calls;
  for (const wire::WorkerView& worker : answered->workers) {
    if (worker.state != "ready") continue;
    const wire::RequestList first{.worker = worker.worker, .limit = kRequestsPerWorker};
    calls.push_back({.body = first.to_json(), .fds = {}});
    workers.push_back(worker.worker);
  }
  auto broker = TRY(control::Client::connect(socket_));
  const auto replies =
      broker.call_all(std::string(wire::RequestList::kMethod), std::move(calls), kCallTimeout);
  Json items = Json::array();
  Json unreachable = Json::array();
  bool more = false;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    auto page = replies[i] ? client::parse_message<wire::RequestPage>(replies[i]->body)
                           : std::unexpected(replies[i].error());
    if (!page) {
      unreachable.push_back({{"worker", workers[i]}, {"detail", page.error().detail}});
      continue;
    }
    more = more || page->more;
    for (wire::RequestView& view : page->items) {
      view.worker = workers[i];
      items.push_back(view.to_json());
    }
  }
  return Json{{"items", std::move(items)}, {"more", more}, {"unreachable", std::move(unreachable)}};
}

/// A page of events may be full before the newest event, so this reads further pages.
Result<Json> BrokerReader::ask_events() const {
  if (down_) return std::unexpected(*down_);
  Connection broker = TRY(Connection::open(socket_));
  const auto number = [](const Json& reply, const char* field) -> Result<std::uint64_t> {
    return catch_request_errors(
        [&]() -> Result<std::uint64_t> { return reply.at(field).get<std::uint64_t>(); },
        Errc::MalformedMessage);
  };
  const Json first = TRY(broker("event.list", {{"limit", 0}}));
  const std::uint64_t newest = TRY(number(first, "newest"));
  std::uint64_t after = newest - std::min(newest, kMaxEvents);
  Json items = Json::array();
  for (bool advances = true; advances && after < newest;) {
    const Json reply = TRY(broker("event.list", {{"after", after}, {"limit", kMaxEvents}}));
    const auto page = reply.find("items");
    advances = false;
    if (page == reply.end() || !page->is_array()) break;
    for (const Json& event : *page) {
      const std::uint64_t sequence = TRY(number(event, "sequence"));
      if (sequence <= after || sequence > newest) continue;
      after = sequence;
      advances = true;
      items.push_back(event);
    }
  }
  return Json{{"items", std::move(items)}, {"newest", newest}};
}

}  // namespace leasehold::monitor
