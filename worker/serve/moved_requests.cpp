// The part of RequestPipeline that moves running requests to other leases.
#include <boost/asio/post.hpp>

#include "worker/kv/request_ids.hpp"
#include "worker/serve/live_lease.hpp"
#include "worker/serve/request_pipeline.hpp"

namespace leasehold {

/// A token of another tenant gets the same error as an invalid token.
Result<RequestPipeline::MoveOrder> RequestPipeline::check_move(const TenantConnection& connection,
                                                               const control::Json& body) const {
  const auto message = TRY(wire::RequestMove::from_json(body));
  const LeaseClaim claim = TRY(verify_token_of(*connection.tenant, deps_.token_key, message.token));
  TRY(check_live(*deps_.table, claim.lease, deps_.clock->now()));
  return MoveOrder{.engine_request_id = TRY(find_own(connection.id, message.request_id)),
                   .to = claim.lease};
}

void RequestPipeline::move(const TenantConnection& connection, const control::Json& body,
                           control::Responder respond) {
  const auto order = check_move(connection, body);
  if (!order) return respond(std::unexpected(order.error()));
  on_accepted_(connection.id, order->to);
  deps_.loop->post([this, order = *order, peer = connection.peer, called_at = deps_.clock->now(),
                    respond = std::move(respond)](Engine& engine) mutable {
    const auto moved = engine.move(order.engine_request_id, order.to, called_at);
    // Posted before the events of the next step, which report the text's lease.
    boost::asio::post(
        *deps_.io, [this, order, peer, moved, respond = std::move(respond)]() mutable {
          if (!moved) return respond(std::unexpected(moved.error()));
          resumable_->read_under(order.engine_request_id, {peer, order.to});
          respond(control::Payload{
              .body = wire::RequestMoved{.request = to_client_request_id(order.engine_request_id),
                                         .lease = order.to,
                                         .blocks = *moved}
                          .to_json()});
        });
  });
}

}  // namespace leasehold
