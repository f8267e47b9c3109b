#include "tools/monitor/broker_reader.hpp"

#include <spdlog/spdlog.h>

#include "common/confined.hpp"
#include "ipc/control/client.hpp"

namespace leasehold::monitor {
namespace {

constexpr Duration kCallTimeout = std::chrono::seconds(2);

Result<control::Json> query(control::Client& broker, const char* method) {
  auto reply = TRY(broker.call(method, {.body = control::Json::object()}, kCallTimeout));
  return std::move(reply.body);
}

}  // namespace

Result<std::string> BrokerReader::ask() const {
  // A connection for each read: the broker closes one that is idle.
  control::Client broker = TRY(control::Client::connect(socket_));
  BrokerState state;
  const control::Json status = TRY(query(broker, "status"));
  state.status = TRY(wire::StatusView::from_json(status));
  state.metrics = TRY(query(broker, "metrics.read"));
  return confined([&]() -> Result<std::string> { return broker_metrics(state); },
                  Errc::MalformedMessage);
}

std::string BrokerReader::make() {
  const auto answered = ask();
  const bool was_down = std::exchange(is_down_, !answered);
  if (!answered && !was_down)
    spdlog::warn("the broker does not answer socket={} error={} reason=\"{}\"", socket_,
                 name(answered.error().code), answered.error().detail);
  if (answered && was_down) spdlog::info("the broker answers again socket={}", socket_);
  return answered ? *answered : broker_is_down();
}

}  // namespace leasehold::monitor
