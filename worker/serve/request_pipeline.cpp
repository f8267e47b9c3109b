#include "worker/serve/request_pipeline.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "common/expects.hpp"
#include "common/machine/confined.hpp"
#include "worker/kv/request_ids.hpp"
#include "worker/serve/live_lease.hpp"
#include "worker/serve/stopping.hpp"

namespace leasehold {
namespace {

using control::Json;
using control::Payload;
using control::Responder;

constexpr std::size_t kMaxRequestsPerConnection = 256;
/// Limits over all tenants, which share them.
constexpr std::size_t kMaxRequests = 4096;
constexpr std::size_t kMaxUnparsedBytes = 64 << 20;
/// One request may exceed this limit by the longest message.
constexpr std::size_t kMaxUnparsedBytesPerTenant = 2 << 20;

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

}  // namespace

RequestPipeline::RequestPipeline(const ServeDependencies& dependencies, Deliveries& deliveries,
                                 ResumableStreams& resumable, OnAccepted on_accepted)
    : deps_(dependencies),
      deliveries_(&deliveries),
      resumable_(&resumable),
      on_accepted_(std::move(on_accepted)),
      parser_(deps_.prompt),
      request_shares_(kMaxRequests),
      unparsed_byte_shares_(kMaxUnparsedBytes) {}

RequestId RequestPipeline::UnparsedRequest::engine_request_id() const {
  return to_engine_request_id(claim.tenant, request.request_id);
}

// ------------------------------------------------------------------------------------------ check

void RequestPipeline::submit(const TenantConnection& connection, const Json& body,
                             Responder respond) {
  auto unparsed = run_confined([&] { return check(connection, body); });
  if (!unparsed) return refuse(std::move(respond), unparsed.error());
  const RequestId engine_request_id = unparsed->engine_request_id();
  const TenantId tenant = unparsed->claim.tenant;
  Connection& from = connections_[connection.id];
  from.peer = connection.peer;
  if (unparsed->joins) {
    unparsed->respond = std::move(respond);
  } else {
    const bool is_resumable = unparsed->request.resumable;
    if (!is_resumable) resumable_->forget(engine_request_id);  // the id now belongs to another text
    const bool is_new = requests_
                            .emplace(engine_request_id, Request{.connection = connection.id,
                                                                .respond = std::move(respond),
                                                                .is_resumable = is_resumable})
                            .second;
    ensures(is_new, "a request id is in use once");
    from.engine_request_ids.insert(engine_request_id);
    request_shares_.take(tenant);
  }
  on_accepted_(connection.id, unparsed->claim.lease);
  unparsed_byte_shares_.take(tenant, size_bytes(unparsed->request));
  parser_queues_[tenant].unparsed.push_back(*std::move(unparsed));
  parse_next(tenant);
}

Result<RequestPipeline::UnparsedRequest> RequestPipeline::check(const TenantConnection& connection,
                                                                const Json& body) const {
  UnparsedRequest unparsed{.request = TRY(wire::RequestSubmit::from_json(body))};
  unparsed.connection = connection.id;
  unparsed.submitted_at = deps_.clock->now();
  unparsed.claim = TRY(verify_token(deps_.token_key, unparsed.request.token));
  if (unparsed.claim.tenant != connection.tenant) {
    return fail(Errc::BadToken,
                fmt::format("this connection belongs to tenant {}, the request's token to another; "
                            "open a connection for each tenant",
                            connection.tenant ? connection.tenant->value : "none"));
  }
  if (broker_disconnected_)
    return fail(Errc::BrokerLost, "the broker is disconnected; retry once it is back");
  TRY(check_live(*deps_.table, unparsed.claim.lease, unparsed.submitted_at));
  TRY(check_capacity(connection, unparsed.claim.tenant));
  TRY(check_id(unparsed));
  if (is_draining_ && !unparsed.joins) return std::unexpected(worker_stopping());
  if (unparsed.request.deadline_ms) {
    unparsed.deadline =
        deps_.clock->now() + std::chrono::milliseconds(*unparsed.request.deadline_ms);
  }
  return unparsed;
}

/// Limits the requests that wait for the parser and the engine, however slow these are.
Result<void> RequestPipeline::check_capacity(const TenantConnection& connection,
                                             const TenantId& tenant) const {
  const auto found = connections_.find(connection.id);
  const std::size_t n_requests =
      found == connections_.end() ? 0 : found->second.engine_request_ids.size();
  if (n_requests >= kMaxRequestsPerConnection) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("{} requests of this connection are running or waiting; retry when "
                            "one ends",
                            n_requests));
  }
  const std::size_t unparsed_bytes = unparsed_byte_shares_.held_by(tenant);
  if (unparsed_bytes >= kMaxUnparsedBytesPerTenant ||
      !unparsed_byte_shares_.may_take_more(tenant)) {
    return fail(Errc::QueueFull,
                fmt::format("{} bytes of requests of tenant {} wait to be parsed; retry when one "
                            "has been answered",
                            unparsed_bytes, tenant.value));
  }
  if (request_shares_.may_take_more(tenant)) return {};
  return fail(
      Errc::QueueFull,
      fmt::format("{} requests of tenant {} are running or waiting, its share of {} with {} "
                  "in use; retry when one ends",
                  request_shares_.held_by(tenant), tenant.value, kMaxRequests,
                  request_shares_.taken()));
}

// ------------------------------------------------------------------------------------------ parse

void RequestPipeline::parse_next(const TenantId& tenant) {
  const auto found = parser_queues_.find(tenant);
  if (found == parser_queues_.end() || found->second.is_parsing) return;
  ParserQueue& queue = found->second;
  if (queue.unparsed.empty()) {
    parser_queues_.erase(found);
    return;
  }
  queue.is_parsing = true;
  UnparsedRequest next = std::move(queue.unparsed.front());
  queue.unparsed.pop_front();
  unparsed_byte_shares_.give_back(tenant, size_bytes(next.request));
  auto peer = connections_.at(next.connection).peer;
  boost::asio::post(deps_.parser, [this, peer = std::move(peer), next = std::move(next)]() mutable {
    if (next.joins) return compare(std::move(next));
    auto parsed = run_confined([&] { return parse(next, std::move(peer)); });
    boost::asio::post(*deps_.io, [this, engine_request_id = next.engine_request_id(),
                                  parsed = std::move(parsed)]() mutable {
      on_parsed(engine_request_id, std::move(parsed));
    });
  });
}

/// Runs on the parser's thread.
Result<RequestPipeline::ParsedRequest> RequestPipeline::parse(const UnparsedRequest& unparsed,
                                                              std::weak_ptr<control::Peer> peer) {
  PromptRequest request = TRY(parser_.parse(unparsed.request, unparsed.claim));
  request.deadline = unparsed.deadline;
  const bool is_resumable = unparsed.request.resumable;
  if (is_resumable) peer.reset();
  TextStream text(std::move(peer), unparsed.request.request_id,
                  GeneratedText(*deps_.prompt.tokenizer, request.sampling));
  std::vector<wire::TokenEmitted> before = text.continue_after(request.emitted);
  ParsedRequest parsed{.request = std::move(request),
                       .text = std::move(text),
                       .submitted_at = unparsed.submitted_at};
  if (is_resumable) {
    parsed.stream = {.body = TRY(body_of(unparsed)),
                     .lease = unparsed.claim.lease,
                     .asked_at_unix_s = unparsed.request.asked_at_unix_s,
                     .submitted = {},
                     .tokens = std::move(before),
                     .end = {}};
    parsed.delivered = unparsed.delivered;
  }
  return parsed;
}

void RequestPipeline::on_parsed(const RequestId& engine_request_id, Result<ParsedRequest> parsed) {
  const TenantId tenant = tenant_of(engine_request_id);
  parser_queues_.at(tenant).is_parsing = false;
  const auto found = requests_.find(engine_request_id);
  if (found == requests_.end()) return parse_next(tenant);  // refused by `drain`
  Request& request = found->second;
  if (!connections_.contains(request.connection)) {
    erase(engine_request_id);
  } else if (parsed) {
    submit_to_engine(*std::move(parsed), request);
  } else {
    Responder respond = std::move(request.respond);
    forget(engine_request_id);
    refuse(std::move(respond), parsed.error());
  }
  parse_next(tenant);
}

// ----------------------------------------------------------------------------------------- submit

void RequestPipeline::submit_to_engine(ParsedRequest parsed, Request& request) {
  const RequestId engine_request_id = parsed.request.engine_request_id;
  const wire::RequestSubmitted answer = answer_to(parsed.request);
  if (parsed.stream) {
    parsed.stream->submitted = answer;
    const auto begun = resumable_->begin(engine_request_id, *std::move(parsed.stream));
    if (!begun) {
      Responder respond = std::move(request.respond);
      forget(engine_request_id);
      return refuse(std::move(respond), begun.error());
    }
  }
  request.is_parsed = true;
  const auto emitted_before = static_cast<std::uint32_t>(parsed.request.emitted.size());
  deliveries_->open(engine_request_id, {.text = std::move(parsed.text),
                                        .lease = parsed.request.lease,
                                        .max_emitted_tokens = parsed.request.max_emitted_tokens,
                                        .may_shorten = parsed.request.may_shorten,
                                        .is_resumable = parsed.stream.has_value(),
                                        .timing = {.submitted_at = parsed.submitted_at,
                                                   .prompt_tokens = answer.prompt_tokens},
                                        .emitted_before = emitted_before});
  Submission submission{.engine_request_id = engine_request_id,
                        .connection = request.connection,
                        .answer = answer,
                        .lease = parsed.request.lease,
                        .is_resumable = parsed.stream.has_value(),
                        .delivered = parsed.delivered};
  deps_.loop->post([this, submission = std::move(submission), prompt = std::move(parsed.request),
                    respond = std::move(request.respond)](Engine& engine) mutable {
    engine.shorten(prompt);
    if (prompt.may_shorten) submission.answer.max_emitted_tokens = prompt.max_emitted_tokens;
    Result<void> queued = engine.submit(std::move(prompt));
    boost::asio::post(*deps_.io,
                      [this, submission = std::move(submission), queued = std::move(queued),
                       respond = std::move(respond)]() mutable {
                        on_submitted(submission, std::move(queued), std::move(respond));
                      });
  });
  // The client cancelled the request while it was being parsed, so the engine did not know it.
  if (request.is_cancelled) cancel_in_engine(engine_request_id);
}

/// By this time the request may have ended, and its end may have been delivered.
void RequestPipeline::on_submitted(const Submission& submission, Result<void> queued,
                                   Responder respond) {
  const RequestId& engine_request_id = submission.engine_request_id;
  if (!queued) {
    deliveries_->discard(engine_request_id);
    if (submission.is_resumable) end_refused_stream(engine_request_id, queued.error());
    forget(engine_request_id);
    return refuse(std::move(respond), queued.error());
  }
  if (submission.is_resumable) {
    const auto may_read = resumable_->check_first_reader(engine_request_id);
    if (!may_read) return respond(std::unexpected(may_read.error()));
  }
  respond(Payload{.body = submission.answer.to_json()});
  if (submission.is_resumable)
    attach(engine_request_id, {submission.connection, submission.lease}, submission.delivered);
}

void RequestPipeline::refuse(Responder respond, const Error& why) {
  if (deps_.metrics != nullptr) deps_.metrics->refused(why.code);
  respond(std::unexpected(why));
}

void RequestPipeline::forget(const RequestId& engine_request_id) {
  const auto request = requests_.find(engine_request_id);
  if (request == requests_.end()) return;
  const auto from = connections_.find(request->second.connection);
  if (from != connections_.end()) from->second.engine_request_ids.erase(engine_request_id);
  erase(engine_request_id);
}

/// Precondition: the request is known.
void RequestPipeline::erase(const RequestId& engine_request_id) {
  request_shares_.give_back(tenant_of(engine_request_id));
  requests_.erase(engine_request_id);
}

// ----------------------------------------------------------------------------------------- cancel

Result<RequestId> RequestPipeline::find_own(std::uint64_t connection,
                                            const RequestId& client_request_id) const {
  const auto from = connections_.find(connection);
  if (from != connections_.end()) {
    for (const RequestId& engine_request_id : from->second.engine_request_ids)
      if (to_client_request_id(engine_request_id) == client_request_id) return engine_request_id;
  }
  return fail(Errc::UnknownRequest,
              fmt::format("no request {} runs on this connection", client_request_id.value));
}

Result<void> RequestPipeline::cancel(const TenantConnection& connection, const Json& body) {
  const wire::RequestCancel cancel = TRY(wire::RequestCancel::from_json(body));
  const RequestId engine_request_id = TRY(find_own(connection.id, cancel.request_id));
  const auto request = requests_.find(engine_request_id);
  if (request == requests_.end() || std::exchange(request->second.is_cancelled, true)) return {};
  abandon(engine_request_id);
  return {};
}

void RequestPipeline::abandon(const RequestId& engine_request_id) {
  deps_.running_requests->stop(engine_request_id, LocalStop::Cancelled);
  cancel_in_engine(engine_request_id);
}

void RequestPipeline::cancel_in_engine(const RequestId& engine_request_id) {
  deps_.loop->post([engine_request_id](Engine& engine) { (void)engine.cancel(engine_request_id); });
}

bool RequestPipeline::has_requests(std::uint64_t connection) const {
  const auto found = connections_.find(connection);
  return found != connections_.end() && !found->second.engine_request_ids.empty();
}

void RequestPipeline::connection_closed(const TenantConnection& connection) {
  const auto closed = connections_.find(connection.id);
  if (closed == connections_.end()) return;
  for (const RequestId& engine_request_id : closed->second.engine_request_ids) {
    if (!outlives_connection(engine_request_id)) {
      abandon(engine_request_id);
      continue;
    }
    requests_.at(engine_request_id).connection = 0;
    resumable_->detach(engine_request_id);
  }
  if (connection.tenant) drop_unparsed(connection.id, *connection.tenant);
  connections_.erase(closed);
}

void RequestPipeline::drop_unparsed(std::uint64_t connection, const TenantId& tenant) {
  const auto found = parser_queues_.find(tenant);
  if (found == parser_queues_.end()) return;
  std::erase_if(found->second.unparsed, [&](const UnparsedRequest& unparsed) {
    if (unparsed.connection != connection) return false;
    unparsed_byte_shares_.give_back(tenant, size_bytes(unparsed.request));
    if (!unparsed.joins) erase(unparsed.engine_request_id());
    return true;
  });
}

void RequestPipeline::drain() {
  if (std::exchange(is_draining_, true)) return;
  for (auto& [tenant, queue] : parser_queues_) {
    std::erase_if(queue.unparsed, [&](const UnparsedRequest& unparsed) {
      if (!unparsed.joins) unparsed_byte_shares_.give_back(tenant, size_bytes(unparsed.request));
      return !unparsed.joins;
    });
  }
  std::vector<RequestId> refused;
  for (const auto& [engine_request_id, request] : requests_)
    if (!request.is_parsed) refused.push_back(engine_request_id);
  for (const RequestId& engine_request_id : refused) {
    Responder respond = std::move(requests_.at(engine_request_id).respond);
    forget(engine_request_id);
    refuse(std::move(respond), worker_stopping());
  }
}

}  // namespace leasehold
