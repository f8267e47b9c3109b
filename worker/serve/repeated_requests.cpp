// The part of RequestPipeline that continues the streams of resumable requests.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <ctime>
#include <utility>

#include "common/machine/confined.hpp"
#include "worker/kv/request_ids.hpp"
#include "worker/serve/live_lease.hpp"
#include "worker/serve/request_pipeline.hpp"

namespace leasehold {
namespace {

using control::Json;
using control::Payload;
using control::Responder;

Error conflict(const RequestId& client_request_id, std::string_view difference) {
  return {.code = Errc::RequestIdConflict,
          .detail = fmt::format("request {} was submitted before with {}; choose another id",
                                client_request_id.value, difference)};
}

bool same_tokens(std::span<const wire::TokenEmitted> generated,
                 std::span<const std::int32_t> emitted) {
  const std::size_t n = std::min(generated.size(), emitted.size());
  return std::ranges::equal(generated.first(n), emitted.first(n), {}, &wire::TokenEmitted::token);
}

}  // namespace

// -------------------------------------------------------------------------------- on submission

/// A submission that repeats an earlier one continues the earlier stream. If that text was
/// interrupted, its kept tokens are added to the submission, so that generation continues after
/// them.
Result<void> RequestPipeline::check_id(UnparsedRequest& unparsed) const {
  const RequestId engine_request_id = unparsed.engine_request_id();
  wire::RequestSubmit& request = unparsed.request;
  unparsed.delivered = static_cast<std::uint32_t>(request.emitted.size());
  const bool is_in_use = requests_.contains(engine_request_id);
  if (!request.resumable) {
    if (!is_in_use) return {};
    return fail(Errc::BadRequest, fmt::format("request {} is already running; choose another id",
                                              request.request_id.value));
  }
  if (!request.asked_at_unix_s) request.asked_at_unix_s = std::time(nullptr);
  const auto* stream = resumable_->find(engine_request_id);
  const bool is_interrupted = stream != nullptr && stream->end && !stream->is_complete;
  unparsed.joins = stream != nullptr && !is_interrupted;
  if (is_in_use && !unparsed.joins) {
    return fail(Errc::QueueFull, fmt::format("request {} was submitted before and is being parsed "
                                             "or ended; retry in a moment",
                                             request.request_id.value));
  }
  if (stream == nullptr) return {};
  const bool has_more = request.emitted.size() > stream->tokens.size();
  if (!same_tokens(stream->tokens, request.emitted) || (has_more && unparsed.joins))
    return std::unexpected(conflict(request.request_id, "other tokens emitted"));
  unparsed.repeats = stream->body;
  request.asked_at_unix_s = stream->asked_at_unix_s;
  if (unparsed.joins) return {};
  for (std::size_t i = request.emitted.size(); i < stream->tokens.size(); ++i)
    request.emitted.push_back(stream->tokens[i].token);
  return {};
}

/// Runs on the parser's thread. Errors: RequestIdConflict.
Result<BodyDigest> RequestPipeline::body_of(const UnparsedRequest& unparsed) {
  const BodyDigest body = digest_of(unparsed.request);
  if (unparsed.repeats && *unparsed.repeats != body)
    return std::unexpected(conflict(unparsed.request.request_id, "another body"));
  return body;
}

/// Runs on the parser's thread.
void RequestPipeline::compare(UnparsedRequest repeated) {
  const auto compared = run_confined([&] { return body_of(repeated); });
  boost::asio::post(*deps_.io, [this, compared, repeated = std::move(repeated)]() mutable {
    const TenantId tenant = repeated.claim.tenant;
    parser_queues_.at(tenant).is_parsing = false;
    if (is_closing_) return;  // the destroyed responder answers
    if (connections_.contains(repeated.connection)) join(std::move(repeated), compared);
    parse_next(tenant);
  });
}

/// Continues the stream of the earlier submission, which may have been removed while the bodies
/// were compared.
void RequestPipeline::join(UnparsedRequest repeated, const Result<BodyDigest>& compared) {
  const RequestId engine_request_id = repeated.engine_request_id();
  const auto* stream = resumable_->find(engine_request_id);
  if (!compared) return repeated.respond(std::unexpected(compared.error()));
  if (stream == nullptr || stream->body != *compared) {
    return repeated.respond(
        fail(Errc::QueueFull, fmt::format("request {} was just forgotten; submit it again",
                                          repeated.request.request_id.value)));
  }
  repeated.respond(Payload{.body = stream->submitted.to_json()});
  attach(engine_request_id, {repeated.connection, repeated.claim.lease}, repeated.delivered);
}

// ------------------------------------------------------------------------------------- on resume

void RequestPipeline::resume(const TenantConnection& connection, const Json& body,
                             Responder respond) {
  const auto message = wire::RequestResume::from_json(body);
  if (!message) return respond(std::unexpected(message.error()));
  const RequestId engine_request_id = to_engine_request_id(*connection.tenant, message->request_id);
  const auto* stream = resumable_->find(engine_request_id);
  if (stream == nullptr) {
    return respond(fail(Errc::UnknownRequest,
                        fmt::format("no resumable request {} of tenant {} is kept; submit it again",
                                    message->request_id.value, connection.tenant->value)));
  }
  // A text that was interrupted by the end of the connection's lease may be read to its end.
  const bool ended_with_lease =
      stream->end && !stream->is_complete && stream->lease == connection.lease;
  const auto live = check_live(*deps_.table, connection.lease, deps_.clock->now());
  if (!ended_with_lease && !live) return respond(std::unexpected(live.error()));
  const std::uint64_t from =
      message->after_position ? std::uint64_t{*message->after_position} + 1 : 0;
  if (from > stream->tokens.size()) {
    return respond(
        fail(Errc::BadRequest, fmt::format("after_position is {}, but {} tokens were generated",
                                           *message->after_position, stream->tokens.size())));
  }
  connections_[connection.id].peer = connection.peer;
  respond(Payload{.body = stream->submitted.to_json()});
  attach(engine_request_id, {connection.id, connection.lease}, static_cast<std::uint32_t>(from));
}

/// Makes the connection the reader of the stream. The connection may have closed meanwhile. If the
/// stream has ended, a request with its id may be a new submission of another connection, which is
/// still being parsed.
void RequestPipeline::attach(const RequestId& engine_request_id, ReaderId reader,
                             std::uint32_t from) {
  const auto to = connections_.find(reader.connection);
  if (to == connections_.end()) return resumable_->detach(engine_request_id);
  const auto* stream = resumable_->find(engine_request_id);
  if (stream == nullptr) return;
  const auto request = requests_.find(engine_request_id);
  if (request != requests_.end() && !stream->end) {
    const auto before = connections_.find(request->second.connection);
    if (before != connections_.end()) before->second.engine_request_ids.erase(engine_request_id);
    request->second.connection = reader.connection;
    to->second.engine_request_ids.insert(engine_request_id);
  }
  resumable_->attach(engine_request_id, {to->second.peer, reader.lease}, from);
}

// ------------------------------------------------------------------------------------------- ends

void RequestPipeline::reader_ended(const RequestId& engine_request_id) {
  const auto request = requests_.find(engine_request_id);
  if (request == requests_.end()) return;
  const auto from = connections_.find(std::exchange(request->second.connection, 0));
  if (from != connections_.end()) from->second.engine_request_ids.erase(engine_request_id);
}

/// Ends the stream of a refused request. Tokens generated for an earlier submission stay for the
/// next one.
void RequestPipeline::end_refused_stream(const RequestId& engine_request_id, const Error& error) {
  const auto* stream = resumable_->find(engine_request_id);
  if (stream == nullptr) return;
  const bool is_empty = stream->tokens.empty();
  resumable_->end(
      engine_request_id,
      wire::RequestCompleted{.request = to_client_request_id(engine_request_id),
                             .reason = std::string(name(error.code)),
                             .emitted_tokens = static_cast<std::uint32_t>(stream->tokens.size()),
                             .scope = std::string(name(error.scope)),
                             .detail = error.detail},
      false);
  if (is_empty) resumable_->forget(engine_request_id);
}

bool RequestPipeline::outlives_connection(const RequestId& engine_request_id) const {
  const auto request = requests_.find(engine_request_id);
  return !is_closing_ && request != requests_.end() && request->second.is_resumable &&
         request->second.is_parsed && !request->second.is_cancelled &&
         resumable_->find(engine_request_id) != nullptr;
}

}  // namespace leasehold
