#include "worker/lease/prefix_fills.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "common/machine/confined.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

using control::Json;
using control::Payload;
using control::Responder;

namespace {

RequestAdapter adapter_of(const wire::PrefixFill& fill) {
  if (!fill.adapter) return {};
  return {.name = fill.adapter->value, .version = fill.adapter_version};
}

}  // namespace

Result<void> PrefixFills::fill(const Json& body, Responder& respond) {
  wire::PrefixFill request = TRY(wire::PrefixFill::from_json(body));
  boost::asio::post(
      deps_.parser, [this, request = std::move(request), respond = std::move(respond)]() mutable {
        auto text = catch_request_errors([&] { return deps_.encode(request.text); });
        if (text)
          return queue(request.lease, *std::move(text), adapter_of(request), std::move(respond));
        boost::asio::post(*deps_.io, [respond = std::move(respond), why = text.error()]() mutable {
          respond(std::unexpected(std::move(why)));
        });
      });
  return {};
}

void PrefixFills::queue(LeaseId lease, std::vector<TokenId> text, RequestAdapter adapter,
                        Responder respond) {
  deps_.loop->post([this, lease, text = std::move(text), adapter = std::move(adapter),
                    respond = std::move(respond)](Engine& engine) mutable {
    Fill fill{.respond = std::move(respond), .tokens = static_cast<std::uint32_t>(text.size())};
    // The engine's thread posts this before it can report the end, so the fill is registered by
    // then.
    boost::asio::post(
        *deps_.io, [this, lease, queued = engine.fill(lease, std::move(text), std::move(adapter)),
                    fill = std::move(fill)]() mutable {
          if (!queued) return fill.respond(std::unexpected(queued.error()));
          fills_.insert_or_assign(lease, std::move(fill));
        });
  });
}

void PrefixFills::report_filled(std::vector<PrefixFilled> filled) {
  boost::asio::post(*deps_.io, [this, filled = std::move(filled)] {
    for (const PrefixFilled& each : filled) answer(each);
  });
}

void PrefixFills::answer(const PrefixFilled& filled) {
  const auto waiting = fills_.extract(filled.lease);
  if (!waiting) return;
  Fill& fill = waiting.mapped();
  if (!filled.blocks) return fill.respond(std::unexpected(filled.blocks.error()));
  const wire::PrefixFilled reply{.tokens = fill.tokens, .blocks = *filled.blocks};
  fill.respond(Payload{.body = reply.to_json(), .fds = {}});
}

}  // namespace leasehold
