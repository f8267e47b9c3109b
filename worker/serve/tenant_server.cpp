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
constexpr std::size_t kMaxUnparsedBytes =
    2 << 20;  // of a connection; one more may be as long as a line
constexpr int kDeliveryBatchSize = 16;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
/// No method of a worker takes descriptors from a tenant.
constexpr control::Limits kClientLimits{.max_fds = 0};

Error stopping() {
  return {Errc::Draining, "this worker is stopping; acquire a lease on another"};
}

}  // namespace

struct TenantServer::Client {
  std::shared_ptr<control::Peer> peer;
  std::set<RequestId> requests;  // engine_request_id ids that wait or run
  std::deque<UnparsedRequest> unparsed;
  std::size_t unparsed_bytes = 0;
  bool is_parsing = false;  // one of them is with the parser
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
  for (auto& [engine_request_id, stream] : streams_) {
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
    if (const auto here = weak.lock()) on_client_closed(*here);
  };
  client->peer = control::Peer::create(
      std::move(socket), {.on_call = on_call_here, .on_notification = {}, .on_closed = on_closed},
      kClientLimits);
  clients_.insert(client);
  client->peer->start();
}

void TenantServer::on_client_closed(Client& client) {
  for (const RequestId& request : client.requests) {
    deps_.running_requests->stop(request, LocalStop::Cancelled);
    deps_.loop->post([request](Engine& engine) { (void)engine.cancel(request); });
  }
  for (const UnparsedRequest& unparsed : client.unparsed)
    streams_.erase(unparsed.engine_request_id());
  std::erase_if(clients_, [&](const auto& other) { return other.get() == &client; });
}

void TenantServer::on_call(const std::shared_ptr<Client>& client, const std::string& method,
                           Payload params, Responder respond) {
  if (method == wire::Generate::kMethod) {
    return generate(client, params.body, std::move(respond));
  }
  if (method != wire::RequestCancel::kMethod) {
    return respond(fail(Errc::UnknownMethod, fmt::format("a worker knows generate and cancel, "
                                                         "not '{}'",
                                                         method)));
  }
  const Result<void> cancelled = cancel(*client, params.body);
  if (!cancelled) return respond(std::unexpected(cancelled.error()));
  respond(Payload{.body = wire::Empty{}.to_json()});
}

// --------------------------------------------------------------------------------------- requests

RequestId TenantServer::UnparsedRequest::engine_request_id() const {
  return to_engine_request_id(claim.tenant, request.request_id);
}

void TenantServer::generate(const std::shared_ptr<Client>& client, const Json& body,
                            Responder respond) {
  auto unparsed = check(*client, body);
  if (!unparsed) return respond(std::unexpected(unparsed.error()));
  streams_.emplace(unparsed->engine_request_id(),
                   Stream{.respond = std::move(respond),
                          .lease = unparsed->claim.lease,
                          .max_emitted_tokens = unparsed->request.max_emitted_tokens});
  client->requests.insert(unparsed->engine_request_id());
  client->unparsed_bytes += size_bytes(unparsed->request);
  client->unparsed.push_back(*std::move(unparsed));
  parse_next(client);
}

Result<TenantServer::UnparsedRequest> TenantServer::check(const Client& client,
                                                          const Json& body) const {
  UnparsedRequest unparsed{.request = TRY(wire::Generate::from_json(body))};
  unparsed.claim = TRY(verify_token(deps_.token_key, unparsed.request.token));
  if (is_closing_) return std::unexpected(stopping());
  if (broker_disconnected_) {
    return fail(Errc::BrokerLost, "the broker is away; retry, it may come back");
  }
  TRY(check_capacity(client));
  if (streams_.contains(unparsed.engine_request_id())) {
    return fail(Errc::BadRequest,
                fmt::format("request {} is running already", unparsed.request.request_id.value));
  }
  if (unparsed.request.deadline_ms) {
    unparsed.deadline =
        deps_.clock->now() + std::chrono::milliseconds(*unparsed.request.deadline_ms);
  }
  return unparsed;
}

/// What waits for parser and engine is bounded here, whatever those are doing meanwhile.
Result<void> TenantServer::check_capacity(const Client& client) const {
  if (client.requests.size() >= kMaxRequestsPerClient) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("{} requests of this connection are running or waiting; retry when "
                            "one ends",
                            client.requests.size()));
  }
  if (client.unparsed_bytes >= kMaxUnparsedBytes) {
    return fail(Errc::QueueFull, fmt::format("requests of {} bytes of this connection wait to be "
                                             "read; retry when one has been answered",
                                             client.unparsed_bytes));
  }
  if (streams_.size() < kMaxRequests) return {};
  return fail(Errc::QueueFull,
              fmt::format("{} requests are running or waiting; retry later", streams_.size()));
}

void TenantServer::parse_next(const std::shared_ptr<Client>& client) {
  if (client->is_parsing || client->unparsed.empty()) return;
  client->is_parsing = true;
  UnparsedRequest next = std::move(client->unparsed.front());
  client->unparsed.pop_front();
  client->unparsed_bytes -= size_bytes(next.request);
  const std::weak_ptr<control::Peer> peer = client->peer;
  // Handed on, not copied: connections must end on the I/O thread.
  boost::asio::post(deps_.parser, [this, client = client, peer, next = std::move(next)]() mutable {
    auto done = parse(next, peer);
    boost::asio::post(
        *deps_.io, [this, client = std::move(client), engine_request_id = next.engine_request_id(),
                    done = std::move(done)]() mutable {
          on_parsed(client, engine_request_id, std::move(done));
        });
  });
}

/// On the parser's thread.
Result<TenantServer::ParsedRequest> TenantServer::parse(const UnparsedRequest& unparsed,
                                                        std::weak_ptr<control::Peer> peer) {
  PromptRequest request = TRY(parser_.parse(unparsed.request, unparsed.claim));
  request.deadline = unparsed.deadline;
  GeneratedText answer(*deps_.prompt.tokenizer, request.sampling.stop);
  TextStream text(std::move(peer), unparsed.request.request_id, std::move(answer), request.emitted);
  return ParsedRequest{.request = std::move(request), .text = std::move(text)};
}

void TenantServer::on_parsed(const std::shared_ptr<Client>& client,
                             const RequestId& engine_request_id, Result<ParsedRequest> parsed) {
  if (is_closing_ || !clients_.contains(client)) {  // told, or gone meanwhile
    streams_.erase(engine_request_id);
    return;
  }
  client->is_parsing = false;
  Responder respond = std::move(streams_.at(engine_request_id).respond);
  if (parsed) {
    submit(client, *std::move(parsed), std::move(respond));
  } else {
    erase_request(*client, engine_request_id);
    respond(std::unexpected(parsed.error()));
  }
  parse_next(client);
}

void TenantServer::submit(const std::shared_ptr<Client>& client, ParsedRequest parsed,
                          Responder respond) {
  const RequestId engine_request_id = parsed.request.request;
  const auto n_prompt = static_cast<std::uint32_t>(parsed.request.prompt.size());
  const wire::Generating answer{.request = to_client_request_id(engine_request_id),
                                .prompt_tokens = n_prompt};
  Stream& stream = streams_.at(engine_request_id);
  stream.text.emplace(std::move(parsed.text));
  deps_.loop->post([this, client = client, engine_request_id, answer,
                    request = std::move(parsed.request),
                    respond = std::move(respond)](Engine& engine) mutable {
    Result<void> queued = engine.submit(std::move(request));
    boost::asio::post(*deps_.io,
                      [this, client = std::move(client), engine_request_id, answer,
                       queued = std::move(queued), respond = std::move(respond)]() mutable {
                        if (queued) return respond(Payload{.body = answer.to_json()});
                        erase_request(*client, engine_request_id);
                        respond(std::unexpected(queued.error()));
                      });
  });
  // Said while it was being read, when the engine did not know it yet.
  if (stream.cancelled)
    deps_.loop->post(
        [engine_request_id](Engine& engine) { (void)engine.cancel(engine_request_id); });
}

void TenantServer::erase_request(Client& client, const RequestId& engine_request_id) {
  streams_.erase(engine_request_id);
  client.requests.erase(engine_request_id);
}

Result<void> TenantServer::cancel(const Client& client, const Json& body) {
  const wire::RequestCancel request = TRY(wire::RequestCancel::from_json(body));
  for (const RequestId& engine_request_id : client.requests) {
    if (to_client_request_id(engine_request_id) != request.request_id) continue;
    const auto stream = streams_.find(engine_request_id);
    if (stream == streams_.end() || std::exchange(stream->second.cancelled, true)) return {};
    deps_.running_requests->stop(engine_request_id, LocalStop::Cancelled);
    deps_.loop->post(
        [engine_request_id](Engine& engine) { (void)engine.cancel(engine_request_id); });
    return {};
  }
  return fail(Errc::UnknownRequest,
              fmt::format("no request {} runs on this connection", request.request_id.value));
}

// --------------------------------------------------------------------------------------- delivery

void TenantServer::deliver(std::vector<SchedulerEvent> events) {
  if (events.empty()) return;
  delivery_queue_.add(std::move(events));
  boost::asio::post(*deps_.io, [this] { deliver_batch(); });
}

void TenantServer::complete_early(Completed completed) {
  delivery_queue_.add_urgent(std::move(completed));
  boost::asio::post(*deps_.io, [this] { deliver_batch(); });
}

/// Not all at once: the broker's calls wait for the same thread.
void TenantServer::deliver_batch() {
  for (int delivered = 0; delivered < kDeliveryBatchSize; ++delivered) {
    const auto next = delivery_queue_.take();
    if (!next) return;
    deliver_one(*next);
  }
  boost::asio::post(*deps_.io, [this] { deliver_batch(); });
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
std::string TenantServer::truncation_detail(const Stream& stream,
                                            const Completed& completed) const {
  const bool cut = completed.reason == CompletionReason::MaxTokensReached &&
                   completed.emitted_tokens < stream.max_emitted_tokens;
  if (!cut) return {};
  return fmt::format("{} holds {} tokens and is full: {} of at most {} tokens emitted",
                     deps_.prompt.context_name(), deps_.prompt.max_context,
                     completed.emitted_tokens, stream.max_emitted_tokens);
}

/// Null as well for a request that is being read: what comes is about an earlier one of its name.
TenantServer::Stream* TenantServer::find_running(const RequestId& engine_request_id) {
  const auto found = streams_.find(engine_request_id);
  return found != streams_.end() && found->second.text ? &found->second : nullptr;
}

void TenantServer::finish(const Completed& completed) {
  const Stream* stream = find_running(completed.request);
  if (stream == nullptr) return;
  std::string detail = truncation_detail(*stream, completed);
  end_stream(completed.request, name(completed.reason), completed.emitted_tokens,
             [&](TextStream& text) { text.send_completed(completed, std::move(detail)); });
}

void TenantServer::reject(const AdmissionRejected& rejected) {
  end_stream(rejected.request, name(rejected.reason.code), 0,
             [&](TextStream& text) { text.send_rejected(rejected.reason); });
}

void TenantServer::end_stream(const RequestId& request, std::string_view reason,
                              std::uint32_t emitted_tokens,
                              const std::function<void(TextStream&)>& send) {
  Stream* stream = find_running(request);
  if (stream == nullptr) return;
  const TimePoint now = deps_.clock->now();
  send(*stream->text);
  deps_.broker->report(events::RequestCompletedEvent{.request = to_client_request_id(request),
                                                     .tenant = tenant_of(request).value,
                                                     .lease = stream->lease,
                                                     .reason = std::string(reason),
                                                     .emitted_tokens = emitted_tokens},
                       now);
  streams_.erase(request);
  for (const auto& client : clients_) client->requests.erase(request);
}

void TenantServer::report_rebound(const Rebound& rebound) {
  deps_.broker->report(events::Rebind{.tenant = tenant_of(rebound.request).value,
                                      .request = to_client_request_id(rebound.request),
                                      .old_lease = rebound.old_lease,
                                      .new_lease = rebound.new_lease,
                                      .prompt_tokens = rebound.replayed_tokens},
                       deps_.clock->now());
}

}  // namespace leasehold
