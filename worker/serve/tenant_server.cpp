#include "worker/serve/tenant_server.hpp"

#include <fmt/format.h>

namespace leasehold {

TenantServer::TenantServer(const Dependencies& dependencies)
    : deliveries_({.io = dependencies.io,
                   .broker = dependencies.broker,
                   .clock = dependencies.clock,
                   .context_name = std::string(dependencies.prompt.context_name()),
                   .max_context = dependencies.prompt.max_context,
                   .on_ended = [this](const RequestId& ended) { pipeline_.forget(ended); }}),
      pipeline_({.io = dependencies.io,
                 .loop = dependencies.loop,
                 .running_requests = dependencies.running_requests,
                 .deliveries = &deliveries_,
                 .parser = dependencies.parser,
                 .prompt = dependencies.prompt,
                 .clock = dependencies.clock,
                 .token_key = dependencies.token_key}),
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

void TenantServer::close() {
  connections_.stop_accepting();
  pipeline_.drain();
  connections_.close_all();
}

void TenantServer::on_call(const TenantConnection& connection, const std::string& method,
                           control::Payload params, control::Responder respond) {
  if (method == wire::Generate::kMethod) {
    return pipeline_.generate(connection, params.body, std::move(respond));
  }
  if (method != wire::RequestCancel::kMethod) {
    return respond(fail(Errc::UnknownMethod,
                        fmt::format("a worker answers {} and {}, not '{}'", wire::Generate::kMethod,
                                    wire::RequestCancel::kMethod, method)));
  }
  const Result<void> cancelled = pipeline_.cancel(connection, params.body);
  if (!cancelled) return respond(std::unexpected(cancelled.error()));
  respond(control::Payload{.body = wire::Empty{}.to_json()});
}

}  // namespace leasehold
