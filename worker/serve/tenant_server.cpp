#include "worker/serve/tenant_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include <boost/asio/post.hpp>

#include "worker/serve/request_key.hpp"

namespace leasehold {
namespace {

using control::Json;
using control::Payload;
using control::Responder;

constexpr mode_t kSocketMode = 0666;  // a valid token, not the file mode, lets a tenant in
constexpr std::size_t kMaxClients = 512;
constexpr std::size_t kMaxRequestsPerClient = 256;
constexpr std::size_t kMaxRequests = 4096;
constexpr int kDeliveriesAtOnce = 16;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
/// No method of a worker takes descriptors from a tenant.
constexpr control::Limits kClientLimits{.max_fds = 0};

}  // namespace

struct TenantServer::Client {
  std::shared_ptr<control::Peer> peer;
  std::set<RequestId> requests;  // inner ids still running
};

// ------------------------------------------------------------------------------------ connections

Result<TenantServer::Acceptor> TenantServer::listen(boost::asio::io_context& io,
                                                    const std::string& path) {
  return control::listen_on(io, path, kSocketMode);
}

void TenantServer::serve(Acceptor acceptor) {
  acceptor_.emplace(std::move(acceptor));
  accept_next();
}

void TenantServer::close() {
  acceptor_.reset();
  for (const auto& client : clients_) client->peer->close();
}

void TenantServer::accept_next() {
  acceptor_->async_accept([this](const boost::system::error_code& error, control::Socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error) return accept_later();
    if (clients_.size() < kMaxClients) add_client(std::move(socket));
    accept_next();
  });
}

/// Out of descriptors, most likely: at once it would fail again, and again.
void TenantServer::accept_later() {
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) accept_next();
  });
}

void TenantServer::add_client(control::Socket socket) {
  auto client = std::make_shared<Client>();
  const std::weak_ptr<Client> weak = client;
  const auto on_call_here = [this, weak](const std::string& method, Payload params,
                                         Responder respond) {
    if (const auto here = weak.lock()) {
      on_call(here, method, std::move(params), std::move(respond));
    }
  };
  const auto on_closed = [this, weak](const Error&) {
    if (const auto here = weak.lock()) client_gone(*here);
  };
  client->peer = control::Peer::create(
      std::move(socket), {.on_call = on_call_here, .on_notification = {}, .on_closed = on_closed},
      kClientLimits);
  clients_.insert(client);
  client->peer->start();
}

void TenantServer::client_gone(Client& client) {
  for (const RequestId& request : client.requests) {
    parts_.board->stop(request, LocalStop::Cancelled);
    parts_.loop->post([request](Engine& engine) { (void)engine.cancel(request); });
  }
  std::erase_if(clients_, [&](const auto& other) { return other.get() == &client; });
}

void TenantServer::on_call(const std::shared_ptr<Client>& client, const std::string& method,
                           Payload params, Responder respond) {
  if (method == wire::Generate::kMethod) {
    return generate(client, params.body, std::move(respond));
  }
  if (method != wire::Cancel::kMethod) {
    return respond(fail(Errc::UnknownMethod, fmt::format("a worker knows generate and cancel, "
                                                         "not '{}'",
                                                         method)));
  }
  const Result<void> cancelled = cancel(*client, params.body);
  if (!cancelled) return respond(std::unexpected(cancelled.error()));
  respond(Payload{.body = wire::Empty{}.to_json()});
}

// --------------------------------------------------------------------------------------- requests

void TenantServer::generate(const std::shared_ptr<Client>& client, const Json& body,
                            Responder respond) {
  const auto request = [&]() -> Result<PromptRequest> {
    const wire::Generate ask = TRY(wire::Generate::from_json(body));
    const LeaseClaim claim = TRY(verify_token(parts_.token_key, ask.token));
    if (broker_away_) {
      return fail(Errc::BrokerLost, "the broker is away; retry, it may come back");
    }
    TRY(check_room(*client));
    return read_request(ask, claim);
  }();
  if (!request) return respond(std::unexpected(request.error()));
  if (streams_.contains(request->request)) {
    return respond(fail(Errc::BadRequest, fmt::format("request {} is running already",
                                                      outer_id(request->request).value)));
  }
  submit(client, *request, std::move(respond));
}

/// What waits for the engine is bounded here, whatever the engine is doing meanwhile.
Result<void> TenantServer::check_room(const Client& client) const {
  if (client.requests.size() >= kMaxRequestsPerClient) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("{} requests of this connection are running or waiting; retry when "
                            "one ends",
                            client.requests.size()));
  }
  if (streams_.size() < kMaxRequests) return {};
  return fail(Errc::QueueFull,
              fmt::format("{} requests are running or waiting; retry later", streams_.size()));
}

Result<PromptRequest> TenantServer::read_request(const wire::Generate& ask,
                                                 const LeaseClaim& claim) {
  SamplingParams sampling = TRY(read_sampling(ask, *parts_.tokenizer));
  PromptRequest request{.tenant = claim.tenant,
                        .lease = claim.lease,
                        .request = inner_id(claim.tenant, ask.request_id),
                        .emitted = ask.emitted,
                        .rebound_from = ask.rebound_from,
                        .sampling = std::move(sampling),
                        .max_emitted_tokens = ask.max_emitted_tokens};
  const auto is_unknown = [this](TokenId token) { return !parts_.tokenizer->contains(token); };
  if (std::ranges::any_of(ask.emitted, is_unknown)) {
    return fail(Errc::BadRequest,
                fmt::format("token ids go from 0 to {}", parts_.tokenizer->n_vocab() - 1));
  }
  const PromptReader reader{
      .tokenizer = parts_.tokenizer, .chat = parts_.chat, .max_context = parts_.max_context};
  request.prompt = TRY(reader.read(ask, std::time(nullptr)));
  if (!fits_context(request, parts_.max_context)) {
    return fail(Errc::PromptTooLong, fmt::format("{} tokens, {} holds {}",
                                                 request.prompt.size() + request.emitted.size(),
                                                 what_holds_a_text(), parts_.max_context));
  }
  request.constraint = TRY(constraints_.read(request.sampling.grammar));
  if (ask.deadline_ms) {
    request.deadline = parts_.clock->now() + std::chrono::milliseconds(*ask.deadline_ms);
  }
  return request;
}

void TenantServer::submit(const std::shared_ptr<Client>& client, PromptRequest request,
                          Responder respond) {
  const RequestId inner = request.request;
  const wire::Generating answer{.request = outer_id(inner),
                                .prompt_tokens = static_cast<std::uint32_t>(request.prompt.size())};
  streams_.emplace(inner, Stream{TextStream(client->peer, outer_id(inner),
                                            AnswerText(*parts_.tokenizer, request.sampling.stop),
                                            request.emitted),
                                 request.lease, request.max_emitted_tokens});
  client->requests.insert(inner);
  parts_.loop->post([this, client, inner, answer, request = std::move(request),
                     respond = std::move(respond)](Engine& engine) mutable {
    Result<void> queued = engine.submit(std::move(request));
    boost::asio::post(*parts_.io, [this, client, inner, answer, queued = std::move(queued),
                                   respond = std::move(respond)]() mutable {
      if (queued) return respond(Payload{.body = answer.to_json()});
      streams_.erase(inner);
      client->requests.erase(inner);
      respond(std::unexpected(queued.error()));
    });
  });
}

Result<void> TenantServer::cancel(const Client& client, const Json& body) {
  const wire::Cancel ask = TRY(wire::Cancel::from_json(body));
  for (const RequestId& inner : client.requests) {
    if (outer_id(inner) != ask.request_id) continue;
    const auto stream = streams_.find(inner);
    if (stream == streams_.end() || std::exchange(stream->second.cancelled, true)) return {};
    parts_.board->stop(inner, LocalStop::Cancelled);
    parts_.loop->post([inner](Engine& engine) { (void)engine.cancel(inner); });
    return {};
  }
  return fail(Errc::UnknownRequest,
              fmt::format("no request {} runs on this connection", ask.request_id.value));
}

// --------------------------------------------------------------------------------------- delivery

void TenantServer::deliver(std::vector<SchedulerEvent> events) {
  if (events.empty()) return;
  deliveries_.add(std::move(events));
  boost::asio::post(*parts_.io, [this] { deliver_some(); });
}

void TenantServer::complete_early(Completed completed) {
  deliveries_.add_urgent(std::move(completed));
  boost::asio::post(*parts_.io, [this] { deliver_some(); });
}

/// Not all at once: the broker's calls wait for the same thread.
void TenantServer::deliver_some() {
  for (int told = 0; told < kDeliveriesAtOnce; ++told) {
    const auto next = deliveries_.take();
    if (!next) return;
    deliver_one(*next);
  }
  boost::asio::post(*parts_.io, [this] { deliver_some(); });
}

void TenantServer::deliver_one(const SchedulerEvent& event) {
  if (const auto* token = std::get_if<Token>(&event)) {
    const auto stream = streams_.find(token->request);
    if (stream != streams_.end()) stream->second.text.send_token(*token);
  } else if (const auto* completed = std::get_if<Completed>(&event)) {
    finish(*completed);
  } else if (const auto* rejected = std::get_if<AdmissionRejected>(&event)) {
    reject(*rejected);
  } else if (const auto* rebound = std::get_if<Rebound>(&event)) {
    report_rebound(*rebound);
  }
}

/// Fewer tokens than were asked for, although nothing was wrong: said, not left to be wondered at.
std::string TenantServer::note_on(const Stream& stream, const Completed& completed) const {
  const bool cut = completed.reason == CompletionReason::MaxTokensReached &&
                   completed.emitted_tokens < stream.max_emitted_tokens;
  if (!cut) return {};
  return fmt::format("{} holds {} tokens and is full: {} of at most {} tokens emitted",
                     what_holds_a_text(), parts_.max_context, completed.emitted_tokens,
                     stream.max_emitted_tokens);
}

std::string_view TenantServer::what_holds_a_text() const {
  return parts_.context_is_window
             ? "the model's sliding window, beyond which this worker does not compute,"
             : "the model's context";
}

void TenantServer::finish(const Completed& completed) {
  const auto stream = streams_.find(completed.request);
  if (stream == streams_.end()) return;
  std::string note = note_on(stream->second, completed);
  end_stream(completed.request, name(completed.reason), completed.emitted_tokens,
             [&](TextStream& text) { text.send_completed(completed, std::move(note)); });
}

void TenantServer::reject(const AdmissionRejected& rejected) {
  end_stream(rejected.request, name(rejected.reason.code), 0,
             [&](TextStream& text) { text.send_rejected(rejected.reason); });
}

void TenantServer::end_stream(const RequestId& request, std::string_view reason,
                              std::uint32_t emitted_tokens,
                              const std::function<void(TextStream&)>& say_so) {
  const auto stream = streams_.find(request);
  if (stream == streams_.end()) return;
  const TimePoint now = parts_.clock->now();
  say_so(stream->second.text);
  parts_.broker->report(events::RequestEnded{.request = outer_id(request),
                                             .tenant = tenant_of(request).value,
                                             .lease = stream->second.lease,
                                             .reason = std::string(reason),
                                             .emitted_tokens = emitted_tokens},
                        now);
  streams_.erase(stream);
  for (const auto& client : clients_) client->requests.erase(request);
}

void TenantServer::report_rebound(const Rebound& rebound) {
  parts_.broker->report(events::Rebind{.tenant = tenant_of(rebound.request).value,
                                       .request = outer_id(rebound.request),
                                       .old_lease = rebound.old_lease,
                                       .new_lease = rebound.new_lease,
                                       .prompt_tokens = rebound.replayed_tokens},
                        parts_.clock->now());
}

}  // namespace leasehold
