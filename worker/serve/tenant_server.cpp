#include "worker/serve/tenant_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include <boost/asio/post.hpp>

#include "worker/serve/request_ids.hpp"

namespace leasehold {
namespace {

using control::Json;
using control::Payload;
using control::Responder;

constexpr mode_t kSocketMode = 0666;  // a valid token, not the file mode, lets a tenant in
constexpr std::size_t kMaxClients = 512;
constexpr std::size_t kMaxRequestsPerClient = 256;
constexpr std::size_t kMaxRequests = 4096;
constexpr std::size_t kMaxUnreadBytes =
    2 << 20;  // of a connection; one more may be as long as a line
constexpr int kDeliveriesAtOnce = 16;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
/// No method of a worker takes descriptors from a tenant.
constexpr control::Limits kClientLimits{.max_fds = 0};

Error stopping() {
  return {Errc::Draining, "this worker is stopping; acquire a lease on another"};
}

}  // namespace

struct TenantServer::Client {
  std::shared_ptr<control::Peer> peer;
  std::set<RequestId> requests;  // inner ids that wait or run
  std::deque<Unread> unread;
  std::size_t unread_bytes = 0;
  bool is_reading = false;  // one of them is with the reader
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
  is_closing_ = true;
  for (auto& [inner, stream] : streams_) {
    if (!stream.text) stream.respond(std::unexpected(stopping()));
  }
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
  for (const Unread& unread : client.unread) streams_.erase(unread.inner());
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

RequestId TenantServer::Unread::inner() const {
  return to_engine_request_id(claim.tenant, ask.request_id);
}

void TenantServer::generate(const std::shared_ptr<Client>& client, const Json& body,
                            Responder respond) {
  auto unread = check(*client, body);
  if (!unread) return respond(std::unexpected(unread.error()));
  streams_.emplace(unread->inner(), Stream{.respond = std::move(respond),
                                           .lease = unread->claim.lease,
                                           .max_emitted_tokens = unread->ask.max_emitted_tokens});
  client->requests.insert(unread->inner());
  client->unread_bytes += size_bytes(unread->ask);
  client->unread.push_back(*std::move(unread));
  read_next(client);
}

Result<TenantServer::Unread> TenantServer::check(const Client& client, const Json& body) const {
  Unread unread{.ask = TRY(wire::Generate::from_json(body))};
  unread.claim = TRY(verify_token(parts_.token_key, unread.ask.token));
  if (is_closing_) return std::unexpected(stopping());
  if (broker_away_) {
    return fail(Errc::BrokerLost, "the broker is away; retry, it may come back");
  }
  TRY(check_room(client));
  if (streams_.contains(unread.inner())) {
    return fail(Errc::BadRequest,
                fmt::format("request {} is running already", unread.ask.request_id.value));
  }
  if (unread.ask.deadline_ms) {
    unread.deadline = parts_.clock->now() + std::chrono::milliseconds(*unread.ask.deadline_ms);
  }
  return unread;
}

/// What waits for reader and engine is bounded here, whatever those are doing meanwhile.
Result<void> TenantServer::check_room(const Client& client) const {
  if (client.requests.size() >= kMaxRequestsPerClient) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("{} requests of this connection are running or waiting; retry when "
                            "one ends",
                            client.requests.size()));
  }
  if (client.unread_bytes >= kMaxUnreadBytes) {
    return fail(Errc::QueueFull, fmt::format("requests of {} bytes of this connection wait to be "
                                             "read; retry when one has been answered",
                                             client.unread_bytes));
  }
  if (streams_.size() < kMaxRequests) return {};
  return fail(Errc::QueueFull,
              fmt::format("{} requests are running or waiting; retry later", streams_.size()));
}

void TenantServer::read_next(const std::shared_ptr<Client>& client) {
  if (client->is_reading || client->unread.empty()) return;
  client->is_reading = true;
  Unread next = std::move(client->unread.front());
  client->unread.pop_front();
  client->unread_bytes -= size_bytes(next.ask);
  const std::weak_ptr<control::Peer> peer = client->peer;
  // Handed on, not copied: connections must end on the I/O thread.
  boost::asio::post(parts_.reader, [this, client = client, peer, next = std::move(next)]() mutable {
    auto done = read(next, peer);
    boost::asio::post(*parts_.io, [this, client = std::move(client), inner = next.inner(),
                                   done = std::move(done)]() mutable {
      was_read(client, inner, std::move(done));
    });
  });
}

/// On the reader's thread.
Result<TenantServer::Read> TenantServer::read(const Unread& unread,
                                              std::weak_ptr<control::Peer> peer) {
  PromptRequest request = TRY(reader_.read(unread.ask, unread.claim));
  request.deadline = unread.deadline;
  GeneratedText answer(*parts_.prompt.tokenizer, request.sampling.stop);
  TextStream text(std::move(peer), unread.ask.request_id, std::move(answer), request.emitted);
  return Read{.request = std::move(request), .text = std::move(text)};
}

void TenantServer::was_read(const std::shared_ptr<Client>& client, const RequestId& inner,
                            Result<Read> read) {
  if (is_closing_ || !clients_.contains(client)) {  // told, or gone meanwhile
    streams_.erase(inner);
    return;
  }
  client->is_reading = false;
  Responder respond = std::move(streams_.at(inner).respond);
  if (read) {
    submit(client, *std::move(read), std::move(respond));
  } else {
    forget(*client, inner);
    respond(std::unexpected(read.error()));
  }
  read_next(client);
}

void TenantServer::submit(const std::shared_ptr<Client>& client, Read read, Responder respond) {
  const RequestId inner = read.request.request;
  const auto n_prompt = static_cast<std::uint32_t>(read.request.prompt.size());
  const wire::Generating answer{.request = to_client_request_id(inner), .prompt_tokens = n_prompt};
  Stream& stream = streams_.at(inner);
  stream.text.emplace(std::move(read.text));
  parts_.loop->post([this, client = client, inner, answer, request = std::move(read.request),
                     respond = std::move(respond)](Engine& engine) mutable {
    Result<void> queued = engine.submit(std::move(request));
    boost::asio::post(*parts_.io,
                      [this, client = std::move(client), inner, answer, queued = std::move(queued),
                       respond = std::move(respond)]() mutable {
                        if (queued) return respond(Payload{.body = answer.to_json()});
                        forget(*client, inner);
                        respond(std::unexpected(queued.error()));
                      });
  });
  // Said while it was being read, when the engine did not know it yet.
  if (stream.cancelled) parts_.loop->post([inner](Engine& engine) { (void)engine.cancel(inner); });
}

void TenantServer::forget(Client& client, const RequestId& inner) {
  streams_.erase(inner);
  client.requests.erase(inner);
}

Result<void> TenantServer::cancel(const Client& client, const Json& body) {
  const wire::Cancel ask = TRY(wire::Cancel::from_json(body));
  for (const RequestId& inner : client.requests) {
    if (to_client_request_id(inner) != ask.request_id) continue;
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
    if (Stream* stream = find_running(token->request)) stream->text->send_token(*token);
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
                     parts_.prompt.what_holds_a_text(), parts_.prompt.max_context,
                     completed.emitted_tokens, stream.max_emitted_tokens);
}

/// Null as well for a request that is being read: what comes is about an earlier one of its name.
TenantServer::Stream* TenantServer::find_running(const RequestId& inner) {
  const auto found = streams_.find(inner);
  return found != streams_.end() && found->second.text ? &found->second : nullptr;
}

void TenantServer::finish(const Completed& completed) {
  const Stream* stream = find_running(completed.request);
  if (stream == nullptr) return;
  std::string note = note_on(*stream, completed);
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
  Stream* stream = find_running(request);
  if (stream == nullptr) return;
  const TimePoint now = parts_.clock->now();
  say_so(*stream->text);
  parts_.broker->report(events::RequestCompletedEvent{.request = to_client_request_id(request),
                                                      .tenant = tenant_of(request).value,
                                                      .lease = stream->lease,
                                                      .reason = std::string(reason),
                                                      .emitted_tokens = emitted_tokens},
                        now);
  streams_.erase(request);
  for (const auto& client : clients_) client->requests.erase(request);
}

void TenantServer::report_rebound(const Rebound& rebound) {
  parts_.broker->report(events::Rebind{.tenant = tenant_of(rebound.request).value,
                                       .request = to_client_request_id(rebound.request),
                                       .old_lease = rebound.old_lease,
                                       .new_lease = rebound.new_lease,
                                       .prompt_tokens = rebound.replayed_tokens},
                        parts_.clock->now());
}

}  // namespace leasehold
