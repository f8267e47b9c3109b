#include "worker/serve/tenant_server.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

namespace leasehold {

TenantServer::TenantServer(const ServeDependencies& dependencies)
    : io_(dependencies.io),
      deliveries_(dependencies, [this](const RequestId& ended) { pipeline_.forget(ended); }),
      pipeline_(dependencies, deliveries_),
      connections_(*dependencies.io,
                   {.on_call =
                        [this](const TenantConnection& connection, const std::string& method,
                               control::Payload params, control::Responder respond) {
                          on_call(connection, method, std::move(params), std::move(respond));
                        },
                    .on_closed =
                        [this](const TenantConnection& connection) {
                          pipeline_.connection_closed(connection);
                        }}) {}

void TenantServer::set_broker_disconnected(bool disconnected) {
  boost::asio::post(*io_,
                    [this, disconnected] { pipeline_.set_broker_disconnected(disconnected); });
}

void TenantServer::close() {
  connections_.stop_accepting();
  pipeline_.drain();
  connections_.close_all();
}

void TenantServer::on_call(const TenantConnection& connection, const std::string& method,
                           control::Payload params, control::Responder respond) {
  if (method == wire::RequestSubmit::kMethod) {
    return pipeline_.generate(connection, params.body, std::move(respond));
  }
  if (method != wire::RequestCancel::kMethod) {
    return respond(fail(Errc::UnknownMethod, fmt::format("a worker answers {} and {}, not '{}'",
                                                         wire::RequestSubmit::kMethod,
                                                         wire::RequestCancel::kMethod, method)));
  }
  const Result<void> cancelled = pipeline_.cancel(connection, params.body);
  if (!cancelled) return respond(std::unexpected(cancelled.error()));
  respond(control::Payload{.body = wire::Empty{}.to_json()});
}

}  // namespace leasehold
