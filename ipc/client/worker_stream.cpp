#include "ipc/client/worker_stream.hpp"

#include <fmt/format.h>

#include "ipc/client/parse_message.hpp"
#include "ipc/control/messages/token_line.hpp"

namespace leasehold::client {
namespace {

/// The engine replies between two steps, and a step of a large model may take minutes.
constexpr Duration kSubmitTimeout = std::chrono::minutes(10);

}  // namespace

Result<std::shared_ptr<WorkerStream>> WorkerStream::open(boost::asio::io_context& io,
                                                         const std::string& address,
                                                         const wire::RequestSubmit& generate,
                                                         Handlers handlers, Begin begin) {
  auto socket = TRY(control::connect_to(io, address));
  std::shared_ptr<WorkerStream> self(new WorkerStream(std::move(handlers), generate.request_id));
  control::Peer::Handlers on;
  on.on_notification = [weak = std::weak_ptr(self)](const std::string& method,
                                                    const control::Payload& params) {
    if (const auto stream = weak.lock()) stream->take_notification(method, params.body);
  };
  on.on_line = [weak = std::weak_ptr(self)](std::string_view line) {
    const auto stream = weak.lock();
    return stream && stream->take_token_line(line);
  };
  on.on_closed = [weak = std::weak_ptr(self)](const Error& why) {
    const auto stream = weak.lock();
    if (stream)
      stream->failed({Errc::ConnectionLost, "the connection to the worker closed: " + why.detail});
  };
  self->peer_ = control::Peer::create(std::move(socket), std::move(on));
  self->peer_->start();
  self->authenticate(generate.token);
  begin == Begin::Resume ? self->resume(generate) : self->submit(generate);
  return self;
}

/// The worker answers in order, so the request follows without waiting for this reply.
void WorkerStream::authenticate(const std::string& token) {
  peer_->call(
      std::string(wire::ConnectionAuthenticate::kMethod),
      {.body = wire::ConnectionAuthenticate{.token = token}.to_json()},
      [weak = weak_from_this()](Result<control::Payload> reply) {
        const auto self = weak.lock();
        if (self && !reply) self->failed(reply.error());
      },
      kSubmitTimeout);
}

void WorkerStream::submit(const wire::RequestSubmit& generate) {
  peer_->call(
      std::string(wire::RequestSubmit::kMethod), {.body = generate.to_json()},
      [weak = weak_from_this()](Result<control::Payload> reply) {
        const auto self = weak.lock();
        if (self && self->peer_) self->accepted(std::move(reply));
      },
      kSubmitTimeout);
}

void WorkerStream::resume(const wire::RequestSubmit& generate) {
  wire::RequestResume message{.request_id = request_, .after_position = {}};
  if (!generate.emitted.empty())
    message.after_position = static_cast<std::uint32_t>(generate.emitted.size() - 1);
  peer_->call(
      std::string(wire::RequestResume::kMethod), {.body = message.to_json()},
      [weak = weak_from_this(), generate](Result<control::Payload> reply) {
        const auto self = weak.lock();
        if (!self || !self->peer_) return;
        // BadRequest: the worker has fewer tokens of the text than this process, from an earlier
        // request with the same id.
        const bool lacks_text = !reply && (reply.error().code == Errc::UnknownRequest ||
                                           reply.error().code == Errc::BadRequest);
        lacks_text ? self->submit(generate) : self->accepted(std::move(reply));
      },
      kSubmitTimeout);
}

void WorkerStream::accepted(Result<control::Payload> reply) {
  const auto generating =
      reply ? parse_message<wire::RequestSubmitted>(reply->body) : std::unexpected(reply.error());
  if (!generating) return failed(generating.error());
  if (is_ours(generating->request)) handlers_.on_submitted(*generating);
}

/// Handles most tokens without a JSON tree; take_notification handles the others.
bool WorkerStream::take_token_line(std::string_view line) {
  if (!peer_) return false;
  auto token = control::read_token_line(line, request_);
  if (!token) return false;
  handlers_.on_token(*std::move(token));
  return true;
}

void WorkerStream::take_notification(const std::string& method, const control::Json& body) {
  if (!peer_) return;
  if (method == wire::TokenEmitted::kMethod) {
    auto token = parse_message<wire::TokenEmitted>(body);
    if (!token) return failed(token.error());
    if (is_ours(token->request)) handlers_.on_token(*std::move(token));
  } else if (method == wire::PromptLogprobs::kMethod && handlers_.on_prompt_logprobs) {
    auto logprobs = parse_message<wire::PromptLogprobs>(body);
    if (!logprobs) return failed(logprobs.error());
    if (is_ours(logprobs->request)) handlers_.on_prompt_logprobs(*std::move(logprobs));
  } else if (method == wire::RequestPreempted::kMethod && handlers_.on_preempted) {
    const auto preempted = parse_message<wire::RequestPreempted>(body);
    if (!preempted) return failed(preempted.error());
    if (is_ours(preempted->request)) handlers_.on_preempted(*preempted);
  } else if (method == wire::RequestCompleted::kMethod) {
    const auto completed = parse_message<wire::RequestCompleted>(body);
    if (!completed) return failed(completed.error());
    if (is_ours(completed->request)) complete(*completed);
  }
}

bool WorkerStream::is_ours(const RequestId& request) {
  if (request == request_) return true;
  failed({Errc::MalformedMessage,
          fmt::format("the worker sent a message about request {}, expected {}", request.value,
                      request_.value)});
  return false;
}

void WorkerStream::complete(const wire::RequestCompleted& completed) {
  close();
  handlers_.on_completed(completed);
}

void WorkerStream::failed(const Error& error) {
  if (!peer_) return;
  close();
  handlers_.on_failed(error);
}

void WorkerStream::cancel() {
  if (!peer_) return;
  const wire::RequestCancel message{.request_id = request_};
  // The reply is not needed: `completed` follows, or the request has already ended.
  peer_->call(std::string(wire::RequestCancel::kMethod), {.body = message.to_json()},
              [](Result<control::Payload>) {});
}

void WorkerStream::move(const std::string& token,
                        std::move_only_function<void(Result<void>)> done) {
  if (!peer_) return;
  const wire::RequestMove message{.request_id = request_, .token = token};
  peer_->call(
      std::string(wire::RequestMove::kMethod), {.body = message.to_json()},
      [weak = weak_from_this(), done = std::move(done)](Result<control::Payload> reply) mutable {
        const auto self = weak.lock();
        if (!self || !self->peer_) return;
        const auto moved =
            reply ? parse_message<wire::RequestMoved>(reply->body) : std::unexpected(reply.error());
        done(moved ? Result<void>{} : std::unexpected(moved.error()));
      },
      kSubmitTimeout);
}

void WorkerStream::close() {
  if (const auto peer = std::exchange(peer_, nullptr)) peer->close();
}

}  // namespace leasehold::client
