#include "worker/serve/request_pipeline.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "common/machine/confined.hpp"
#include "worker/kv/request_ids.hpp"
#include "worker/serve/live_lease.hpp"
#include "worker/serve/stopping.hpp"

namespace leasehold {
namespace {

using control::Json;
using control::Payload;
using control::Responder;

static_assert(UncheckedParts::kMaxListed <= wire::RequestSubmitted::kMaxUnchecked);

wire::RequestSubmitted answer_to(const PromptRequest& request) {
  wire::RequestSubmitted answer{.request = to_client_request_id(request.engine_request_id),
                                .prompt_tokens = static_cast<std::uint32_t>(request.prompt.size()),
                                .unchecked = {}};
  if (!request.constraint) return answer;
  const UncheckedParts& unchecked = request.constraint.grammar->unchecked;
  answer.unchecked = unchecked.listed;
  answer.unchecked_omitted = unchecked.omitted;
  return answer;
}

/// Why a request was not moved. The scheduler does not know one that waits for its adapter.
Error why_not_moved(const Error& error, bool has_ended) {
  if (has_ended || error.code != Errc::UnknownRequest) return error;
  return {Errc::QueueFull, "the request waits for its adapter; move it when it runs"};
}

}  // namespace

RequestPipeline::RequestPipeline(const ServeDependencies& dependencies, ClientRequests& requests,
                                 ResumableStreams& resumable, OnAccepted on_accepted)
    : deps_(dependencies),
      requests_(&requests),
      resumable_(&resumable),
      on_accepted_(std::move(on_accepted)),
      resumer_(deps_, requests, resumable),
      parser_queue_(deps_, [this](IncomingRequest incoming, const Result<void>& parsed) {
        on_parsed(std::move(incoming), parsed);
      }) {}

// ----------------------------------------------------------------------------------------- submit

void RequestPipeline::submit(const TenantConnection& connection, const Json& body,
                             Responder respond) {
  auto incoming = catch_request_errors([&] { return check(connection, body); });
  if (!incoming) return refuse(std::move(respond), incoming.error());
  requests_->opened(connection);
  if (incoming->joins) {
    incoming->respond = std::move(respond);
  } else {
    const RequestId engine_request_id = incoming->engine_request_id();
    const auto caller = TraceContext::parse(incoming->submit.traceparent);
    auto trace = begin_trace(*incoming, caller);
    const bool is_resumable = incoming->submit.resumable;
    if (!is_resumable) resumable_->forget(engine_request_id);  // the id now belongs to another text
    requests_->add(engine_request_id,
                   {.connection = connection.id,
                    .lease = incoming->claim.lease,
                    .is_resumable = is_resumable,
                    .respond = std::move(respond),
                    .labels = {.x_request_id = incoming->submit.x_request_id,
                               .trace_id = trace    ? trace->trace_id()
                                           : caller ? caller->trace_id
                                                    : std::string(),
                               .trace = std::move(trace)},
                    .timing = {.submitted_at = incoming->submitted_at},
                    .progress = {.embeds = incoming->submit.embedding.has_value()}});
  }
  on_accepted_(connection.id, incoming->claim.lease);
  parser_queue_.add(*std::move(incoming));
}

std::optional<RequestTrace> RequestPipeline::begin_trace(
    const IncomingRequest& incoming, const std::optional<TraceContext>& caller) const {
  if (deps_.tracing == nullptr) return std::nullopt;
  auto start = deps_.tracing->begin(caller);
  if (!start) return std::nullopt;
  const wire::RequestSubmit& submit = incoming.submit;
  return RequestTrace(*std::move(start),
                      {.is_chat = submit.messages.has_value(),
                       .model = deps_.tracing->model(),
                       .tenant = incoming.claim.tenant,
                       .client_request_id = submit.request_id,
                       .x_request_id = submit.x_request_id,
                       .lease = incoming.claim.lease,
                       .max_emitted_tokens = submit.max_emitted_tokens},
                      incoming.submitted_at);
}

Result<IncomingRequest> RequestPipeline::check(const TenantConnection& connection,
                                               const Json& body) const {
  IncomingRequest incoming{.submit = TRY(wire::RequestSubmit::from_json(body))};
  incoming.connection = connection.id;
  incoming.peer = connection.peer;
  incoming.submitted_at = deps_.clock->now();
  incoming.claim = TRY(verify_token(deps_.token_key, incoming.submit.token));
  const TenantId& tenant = incoming.claim.tenant;
  if (tenant != connection.tenant) {
    return fail(Errc::BadToken,
                fmt::format("this connection belongs to tenant {}, the request's token to another; "
                            "open a connection for each tenant",
                            connection.tenant ? connection.tenant->value : "none"));
  }
  if (broker_disconnected_)
    return fail(Errc::BrokerLost, "the broker is disconnected; retry once it is back");
  TRY(check_live(*deps_.table, incoming.claim.lease, incoming.submitted_at));
  TRY(requests_->check_capacity(connection.id, tenant));
  TRY(parser_queue_.check_capacity(tenant));
  TRY(resumer_.check_id(incoming));
  if (is_draining_ && !incoming.joins) return std::unexpected(worker_stopping());
  return incoming;
}

void RequestPipeline::on_parsed(IncomingRequest incoming, const Result<void>& parsed) {
  const bool is_open = requests_->is_open(incoming.connection);
  if (incoming.joins) {
    if (is_open && !is_closing_) resumer_.join(std::move(incoming), parsed);
    return;  // otherwise the responder answers when it is destroyed
  }
  const RequestId engine_request_id = incoming.engine_request_id();
  const ClientRequest* request = requests_->find(engine_request_id);
  if (request == nullptr) return;  // refused by `drain`
  // `stop` has answered a stopped request.
  if (!is_open || request->stopped_by) return requests_->forget(engine_request_id);
  if (!parsed) return refuse_unparsed(engine_request_id, parsed.error());
  submit_to_engine(std::move(incoming));
}

void RequestPipeline::submit_to_engine(IncomingRequest incoming) {
  const RequestId engine_request_id = incoming.engine_request_id();
  const PromptRequest& prompt = incoming.prompt;
  incoming.answer = answer_to(prompt);
  incoming.answer.adapter_digest = prompt.adapter.continued;  // until it is known which is used
  if (incoming.submit.resumable) {
    const auto begun =
        resumable_->begin(engine_request_id, {.body = incoming.body,
                                              .lease = prompt.lease,
                                              .asked_at_unix_s = incoming.submit.asked_at_unix_s,
                                              .submitted = incoming.answer,
                                              .tokens = std::exchange(incoming.before, {}),
                                              .end = {}});
    if (!begun) return refuse_unparsed(engine_request_id, begun.error());
  }
  ClientRequest& request = requests_->parsed(engine_request_id, *std::move(incoming.text));
  request.max_emitted_tokens = prompt.max_emitted_tokens;
  request.may_shorten = prompt.may_shorten;
  request.timing = {.submitted_at = incoming.submitted_at,
                    .prompt_tokens = incoming.answer.prompt_tokens};
  request.emitted_before = static_cast<std::uint32_t>(prompt.emitted.size());
  request.progress.emitted_tokens = request.emitted_before;
  incoming.prompt.is_traced = request.labels.trace.has_value();
  if (request.labels.trace)
    request.labels.trace->parsed(incoming.answer.prompt_tokens, deps_.clock->now());
  incoming.respond = std::move(request.respond);
  incoming.submit = {.request_id = incoming.submit.request_id,
                     .resumable = incoming.submit.resumable};  // frees the rest
  deps_.loop->post([this, incoming = std::move(incoming)](Engine& engine) mutable {
    engine.submissions().shorten(incoming.prompt);
    if (incoming.prompt.may_shorten)
      incoming.answer.max_emitted_tokens = incoming.prompt.max_emitted_tokens;
    PromptRequest queued_prompt = std::move(incoming.prompt);
    engine.submissions().submit(std::move(queued_prompt), [this, incoming = std::move(incoming)](
                                                              Result<AdapterUse> queued) mutable {
      // The I/O thread gets the name of the content only: the use stays on the engine's thread.
      if (queued && *queued) incoming.answer.adapter_digest = (*queued)->digest.hex();
      const std::optional<Error> refused = queued ? std::nullopt : std::optional(queued.error());
      boost::asio::post(*deps_.io, [this, incoming = std::move(incoming), refused]() mutable {
        on_submitted(std::move(incoming), refused);
      });
    });
  });
  // The client cancelled the request while it was being parsed, so the engine did not know it.
  if (request.is_cancelled) cancel_in_engine(engine_request_id);
}

/// By this time the request may have ended, and its end may have been delivered.
void RequestPipeline::on_submitted(IncomingRequest submitted, const std::optional<Error>& refused) {
  const bool is_resumable = submitted.submit.resumable;
  ClientRequest* request = requests_->find_parsed(submitted.engine_request_id());
  if (!refused && request != nullptr)
    request->progress.shortened_to = submitted.answer.max_emitted_tokens;
  if (!refused && is_resumable) return resumer_.attach_first(std::move(submitted));
  if (!refused) return submitted.respond(Payload{.body = submitted.answer.to_json()});
  const RequestId engine_request_id = submitted.engine_request_id();
  const bool is_stopped = request != nullptr && request->stopped_by;
  const Error why = is_stopped ? *request->stopped_by : *refused;
  if (is_resumable) resumer_.end_refused(engine_request_id, why);
  end_trace(engine_request_id, why.code);
  requests_->forget(engine_request_id);
  refuse(std::move(submitted.respond), why);
}

/// Does not answer a request that `stop` has answered.
void RequestPipeline::refuse_unparsed(const RequestId& engine_request_id, const Error& why) {
  Responder respond = std::move(requests_->find(engine_request_id)->respond);
  end_trace(engine_request_id, why.code);
  requests_->forget(engine_request_id);
  if (respond) refuse(std::move(respond), why);
}

void RequestPipeline::end_trace(const RequestId& engine_request_id, Errc why) {
  ClientRequest* request = requests_->find(engine_request_id);
  if (request == nullptr || !request->labels.trace) return;
  deps_.tracing->end(request->labels.trace->refused(why, deps_.clock->now()));
  request->labels.trace.reset();
}

void RequestPipeline::refuse(Responder respond, const Error& why) {
  if (deps_.metrics != nullptr) deps_.metrics->refused(why.code);
  respond(std::unexpected(why));
}

// ----------------------------------------------------------------------------------------- cancel

Result<void> RequestPipeline::cancel(const TenantConnection& connection, const Json& body) {
  const wire::RequestCancel cancel = TRY(wire::RequestCancel::from_json(body));
  const RequestId engine_request_id = TRY(requests_->find_own(connection.id, cancel.request_id));
  const bool was_cancelled = std::exchange(requests_->find(engine_request_id)->is_cancelled, true);
  if (!was_cancelled) abandon(engine_request_id);
  return {};
}

bool RequestPipeline::stop(const RequestId& engine_request_id, const Error& why) {
  ClientRequest* request = requests_->find(engine_request_id);
  if (request == nullptr) return false;
  if (request->stopped_by || std::exchange(request->is_cancelled, true)) return true;
  request->stopped_by = why;
  if (request->is_parsed()) {
    abandon(engine_request_id);
    return true;
  }
  requests_->recent_ends().add(
      {engine_request_id, std::string(name(why.code)), deps_.clock->now()});
  end_trace(engine_request_id, why.code);
  refuse(std::exchange(request->respond, nullptr), why);
  return true;
}

void RequestPipeline::abandon(const RequestId& engine_request_id) {
  deps_.running_requests->stop(engine_request_id, LocalStop::Cancelled);
  cancel_in_engine(engine_request_id);
}

void RequestPipeline::cancel_in_engine(const RequestId& engine_request_id) {
  deps_.loop->post([engine_request_id](Engine& engine) { (void)engine.cancel(engine_request_id); });
}

void RequestPipeline::connection_closed(const TenantConnection& connection) {
  for (const RequestId& engine_request_id : requests_->closed(connection.id))
    outlives_connection(engine_request_id) ? resumable_->detach(engine_request_id)
                                           : abandon(engine_request_id);
  if (!connection.tenant) return;
  for (const RequestId& waiting : parser_queue_.drop(*connection.tenant, connection.id))
    requests_->forget(waiting);
}

bool RequestPipeline::outlives_connection(const RequestId& engine_request_id) {
  const ClientRequest* request = requests_->find_parsed(engine_request_id);
  return !is_closing_ && request != nullptr && request->is_resumable && !request->is_cancelled &&
         resumable_->find(engine_request_id) != nullptr;
}

void RequestPipeline::drain() {
  if (std::exchange(is_draining_, true)) return;
  parser_queue_.drop_all();
  for (const RequestId& unparsed : requests_->unparsed())
    refuse_unparsed(unparsed, worker_stopping());
}

// ------------------------------------------------------------------------------------------- move

/// A token of another tenant gets the same error as an invalid token.
Result<RequestPipeline::MoveOrder> RequestPipeline::check_move(const TenantConnection& connection,
                                                               const Json& body) const {
  const auto message = TRY(wire::RequestMove::from_json(body));
  const LeaseClaim claim = TRY(verify_token_of(*connection.tenant, deps_.token_key, message.token));
  TRY(check_live(*deps_.table, claim.lease, deps_.clock->now()));
  return MoveOrder{.engine_request_id = TRY(requests_->find_own(connection.id, message.request_id)),
                   .to = claim.lease};
}

void RequestPipeline::move(const TenantConnection& connection, const Json& body,
                           Responder respond) {
  const auto order = check_move(connection, body);
  if (!order) return respond(std::unexpected(order.error()));
  on_accepted_(connection.id, order->to);
  deps_.loop->post([this, order = *order, peer = connection.peer, called_at = deps_.clock->now(),
                    respond = std::move(respond)](Engine& engine) mutable {
    const auto moved = engine.move(order.engine_request_id, order.to, called_at);
    // Posted before the events of the next step, which report the text's lease.
    boost::asio::post(
        *deps_.io, [this, order, peer, moved, respond = std::move(respond)]() mutable {
          const bool has_ended = requests_->find_parsed(order.engine_request_id) == nullptr;
          if (!moved) return respond(std::unexpected(why_not_moved(moved.error(), has_ended)));
          resumable_->read_under(order.engine_request_id, {peer, order.to});
          respond(Payload{
              .body = wire::RequestMoved{.request = to_client_request_id(order.engine_request_id),
                                         .lease = order.to,
                                         .blocks = *moved}
                          .to_json()});
        });
  });
}

}  // namespace leasehold
