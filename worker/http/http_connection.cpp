#include "worker/http/http_connection.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ipc/http/http_message.hpp"
#include "ipc/http/message_errors.hpp"
#include "worker/http/client_watch.hpp"
#include "worker/http/exchange.hpp"
#include "worker/http/routes.hpp"
#include "worker/http/state_paths.hpp"

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;

constexpr auto kHeadTimeout = std::chrono::seconds(10);
constexpr auto kIdleTimeout = std::chrono::seconds(60);  // between the requests of a tenant
constexpr auto kBodyTimeout = std::chrono::seconds(30);
constexpr auto kWriteTimeout = std::chrono::seconds(30);  // while a client reads nothing

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// GCC 12 destroys braced temporaries of a co_await expression twice, so answers are built by
// function calls.

/// True for a client that resumes a text. The worker refuses the client if the text is not there.
bool comes_back(const Route& route, const Head& head) {
  return route.is_resumable && head.only("Last-Event-ID").has_value();
}

class BeastConnection final : public Connection, public HttpStream, public FileTransfer {
 public:
  BeastConnection(Socket socket, PeerAddress peer, Places::ConnectionId id,
                  std::shared_ptr<Shared> shared)
      : stream_(std::move(socket)), peer_(std::move(peer)), id_(id), shared_(std::move(shared)) {
    beast::error_code ignored;
    stream_.socket().non_blocking(true, ignored);
  }

  awaitable<void> run() override;
  void close() override {
    stream_.close();
    client_->leave();
  }

  awaitable<void> send(Answer answer) override;
  awaitable<void> write_events(ServerEvents events, Follows follows) override;
  void watch(std::function<void()> on_change) override { client_->start(std::move(on_change)); }
  awaitable<void> probe() override;
  void note_error(Errc code) override { exchange_.stream_error = code; }
  const ExchangeLabels& labels() const override { return exchange_.labels; }
  bool is_gone() const override { return client_->is_gone(); }
  awaitable<Result<std::string>> read_piece() override;
  awaitable<void> send_head(std::uint64_t size_bytes, std::string_view content_type) override;
  awaitable<void> send_piece(std::string bytes) override;
  void give_up() override { client_->leave(); }

 private:
  awaitable<void> serve_one();
  awaitable<void> serve(Parser& parser, const Head& head);
  awaitable<void> serve_without_key(const Parser& parser, const Head& head);
  Result<void> note_client(const Head& head);
  std::expected<GatewayFields, ApiError> read_gateway_fields(const Route& route, const Head& head);
  void begin_span(const Route& route);
  void end_span(const Route& route);
  awaitable<void> refuse(Answer answer);
  std::size_t send_now(std::string_view text);
  bool take_unread(std::size_t bytes);
  awaitable<bool> write(std::string text);
  awaitable<bool> read_body(Parser& parser, const Head& head, bool is_file);
  std::size_t max_body_bytes() const { return shared_->deps.max_body_bytes; }
  std::uint64_t max_file_bytes() const {
    return std::max<std::uint64_t>(max_body_bytes(), shared_->deps.max_file_bytes);
  }

  Stream stream_;
  ReadBuffer buffer_;
  PeerAddress peer_;
  Places::ConnectionId id_;
  std::shared_ptr<Shared> shared_;
  // Shared with the handlers of its waits.
  std::shared_ptr<ClientWatch> client_ = std::make_shared<ClientWatch>(stream_, buffer_);
  std::optional<TenantId> tenant_;  // of the newest valid key
  control::QueueCharge unread_;     // bytes of the answer that wait to be read
  Exchange exchange_;
  Parser* parser_ = nullptr;      // of a body that its route reads
  std::uint64_t file_bytes_ = 0;  // read of that body, framing included
  bool is_probed_ = false;
};

awaitable<void> BeastConnection::run() {
  const auto self = shared_from_this();
  do {
    exchange_ = {};
    co_await serve_one();
    client_->stop();
    shared_->places.release_bodies(id_);
  } while (exchange_.keep_alive && !client_->is_gone() && !shared_->closing && !shared_->draining);
  shared_->places.closed(id_);
  stream_.close();
}

// ---------------------------------------------------------------------------------------- reading

awaitable<void> BeastConnection::serve_one() {
  Parser parser;
  stream_.expires_after(tenant_ ? kIdleTimeout : kHeadTimeout);
  // The route decides whether its body may be as long as a file.
  RequestHead read = co_await read_request_head(stream_, buffer_, parser, max_file_bytes());
  if (!read.refused && !read.head) co_return;
  exchange_.is_message = read.head && is_message_path(read.head->path());
  exchange_.labels = ExchangeLabels::of(read.head);
  exchange_.fields = exchange_.labels.fields();
  exchange_.fields += host_fields(*shared_);
  // Anthropic's clients read this header.
  if (exchange_.is_message)
    exchange_.fields += "request-id: " + exchange_.labels.x_request_id + "\r\n";
  if (read.refused) co_return co_await refuse(*std::move(read.refused));
  co_await serve(parser, *read.head);
}

awaitable<void> BeastConnection::serve(Parser& parser, const Head& head) {
  exchange_.begun_at = shared_->deps.clock->now();
  exchange_.keep_alive = parser.keep_alive();
  exchange_.chunked = head.version >= 11;
  exchange_.body_sent = head.method == "HEAD" ? Body::LeftOut : Body::Sent;
  exchange_.fields += shared_->deps.allowed_origins.fields_for(head);
  if (is_state_path(head.path()) || head.method == "OPTIONS")
    co_return co_await serve_without_key(parser, head);
  if (const auto noted = note_client(head); !noted)
    co_return co_await refuse(refusal(noted.error()));
  auto moved_from = moved_from_in(head, shared_->deps.trusted_proxies.trusts(peer_));
  const Result<Caller> caller = co_await authenticate(*shared_, id_, head, std::move(moved_from));
  if (!caller) {
    spdlog::debug("HTTP request refused client={} code={}{}", exchange_.client,
                  name(caller.error().code), exchange_.labels.log_text());
    co_return co_await refuse(refusal(caller.error()));
  }
  tenant_ = caller->tenant;
  unread_.set_meter(shared_->unread.meter_of(*tenant_));
  const auto route = find_route(head);
  if (!route) co_return co_await refuse(route.error());
  if ((*route)->has_identity)
    exchange_.fields +=
        fmt::format("Leasehold-Identity: {}\r\n", full_identity(shared_->deps.model));
  auto gateway = read_gateway_fields(**route, head);
  if (!gateway) co_return co_await refuse(error_answer(gateway.error()));
  const CountedIn answering(shared_->counts.answering);
  if (shared_->draining && !comes_back(**route, head))
    co_return co_await refuse(refusal(shared_->deps.stopping));
  const bool is_file = (*route)->reads_body;
  if (auto too_long = refuse_head(head, is_file ? max_file_bytes() : max_body_bytes()))
    co_return co_await refuse(*std::move(too_long));
  const auto length = parser.is_done() ? 0 : parser.content_length().value_or(max_body_bytes());
  const auto taken = shared_->places.take_body(id_, std::min(length, max_body_bytes()));
  if (!taken) co_return co_await refuse(refusal(taken.error()));
  RouteInput input = input_of(**route, head);
  input.transfer = this;
  input.gateway = *std::move(gateway);
  if (!co_await read_body(parser, head, is_file)) co_return;
  if (!is_file) input.body = std::move(parser.get().body());
  co_await async_wait_for(*shared_->deps.io,
                          shared_->body_rate_limiter.reserve(caller->tenant, input.body.size(),
                                                             shared_->deps.clock->now()));
  begin_span(**route);
  co_await (*route)->serve(*shared_, *caller, std::move(input), *this);
  if (std::exchange(parser_, nullptr) != nullptr && !parser.is_done())
    exchange_.keep_alive = false;  // what follows is the rest of a body
  end_span(**route);
}

std::expected<GatewayFields, ApiError> BeastConnection::read_gateway_fields(const Route& route,
                                                                            const Head& head) {
  if (!route.generates) return {};
  return GatewayFields::of(head, shared_->deps.trusted_proxies.trusts(peer_));
}

/// Only requests that submit something have a span, so that health checks and lists of models do
/// not fill the traces.
void BeastConnection::begin_span(const Route& route) {
  if (route.method == "POST")
    exchange_.fields += exchange_.labels.begin_span(shared_->deps.tracing);
}

void BeastConnection::end_span(const Route& route) {
  if (!exchange_.labels.span) return;
  shared_->deps.tracing->end({span_of(exchange_.labels, {.method = route.method,
                                                         .route = route.path,
                                                         .status = exchange_.status,
                                                         .stream_error = exchange_.stream_error,
                                                         .begin = exchange_.begun_at,
                                                         .end = shared_->deps.clock->now()})});
}

/// Serves the state of the worker and CORS preflights, which need no key and have no body.
awaitable<void> BeastConnection::serve_without_key(const Parser& parser, const Head& head) {
  const bool is_preflight = head.method == "OPTIONS";
  const bool reads = is_preflight || head.method == "GET" || head.method == "HEAD";
  Answer answer{.status = 204, .extra_headers = "Allow: GET, HEAD, POST, DELETE, OPTIONS\r\n"};
  if (is_preflight && shared_->deps.allowed_origins.allows(head))
    exchange_.fields += preflight_fields(head);
  if (!is_preflight) answer = state_answer(*shared_, head, peer_);
  if (!reads || !parser.is_done()) {
    answer = plain_error(405, "method", "use GET or HEAD, without a body");
    answer.extra_headers = kAllowGet;
    return refuse(std::move(answer));
  }
  return send(std::move(answer));
}

/// Charges the connection to the client's source until its key is accepted.
Result<void> BeastConnection::note_client(const Head& head) {
  exchange_.client = shared_->deps.trusted_proxies.client_of(peer_, head);
  const auto place = shared_->places.note_source(id_, source_of(exchange_.client));
  if (place.displaced) shared_->close_connection(*place.displaced);
  if (place.accepted) return {};
  return fail(Errc::QueueFull, "a newer connection of this source took the place; connect again");
}

/// Refuses a body that is too long or malformed. Returns false then, and if the client is gone. The
/// body of a file is left to its route, and another request follows only if that read all of it.
awaitable<bool> BeastConnection::read_body(Parser& parser, const Head& head, bool is_file) {
  if (parser.is_done()) co_return true;
  if (head.only("Expect") && !co_await write(std::string(kContinue))) co_return false;
  if (is_file) {
    parser_ = &parser;
    file_bytes_ = 0;
    co_return true;
  }
  stream_.expires_after(kBodyTimeout);
  RequestBody read = co_await read_request_body(stream_, buffer_, parser, max_body_bytes());
  stream_.expires_never();
  if (read.is_whole) co_return true;
  if (read.refused) co_await refuse(*std::move(read.refused));
  client_->note_gone();
  co_return false;
}

awaitable<Result<std::string>> BeastConnection::read_piece() {
  if (parser_ == nullptr) co_return std::string();
  stream_.expires_after(kBodyTimeout);
  auto piece = co_await read_body_piece(stream_, buffer_, *parser_, file_bytes_, max_file_bytes());
  stream_.expires_never();
  if (!piece) exchange_.keep_alive = false;
  co_return piece;
}

// --------------------------------------------------------------------------------- while answering

awaitable<void> BeastConnection::probe() {
  if (!client_->is_at_end() || std::exchange(is_probed_, true)) co_return;
  if (!exchange_.chunked && !exchange_.has_events)
    co_return client_->leave();  // HTTP/1.0 has no interim answer
  std::string text(exchange_.has_events ? "" : kContinue);
  if (exchange_.has_events) exchange_.append_framed(kComment, text);
  co_await write(std::move(text));
}

// ---------------------------------------------------------------------------------------- writing

/// Sends what the socket has room for.
std::size_t BeastConnection::send_now(std::string_view text) {
  beast::error_code error;
  const std::size_t sent = stream_.socket().write_some(asio::buffer(text), error);
  if (error && error != asio::error::would_block) client_->note_gone();
  return sent;
}

/// If the client keeps reading, the socket has room for the whole text, which then needs no timer
/// and no wait.
awaitable<bool> BeastConnection::write(std::string text) {
  std::string_view rest = text;
  rest.remove_prefix(send_now(rest));
  if (is_gone() || rest.empty()) co_return !is_gone();
  if (!take_unread(text.capacity())) client_->note_gone();
  while (!is_gone() && !rest.empty()) {
    stream_.expires_after(kWriteTimeout);
    const auto [error, written] = co_await stream_.async_write_some(asio::buffer(rest), kAwait);
    rest.remove_prefix(written);
    if (error) client_->note_gone();
  }
  stream_.expires_never();
  unread_.set(0);
  co_return !is_gone();
}

/// Charges unread text to the client's tenant. Returns false beyond the tenant's share.
bool BeastConnection::take_unread(std::size_t bytes) {
  if (!tenant_) return true;  // the text is a short refusal
  const ResourceShare share = shared_->unread.owner_share(*tenant_);
  const bool fits =
      share.taken + share.held + 2 * bytes <= share.capacity;  // the rule of may_take_more
  if (fits) unread_.set(bytes);
  if (!fits) spdlog::debug("HTTP connection closed: unread answers tenant={}", tenant_->value);
  return fits;
}

/// Sends a refusal and ends the connection, because what follows may not be a request.
awaitable<void> BeastConnection::refuse(Answer answer) {
  exchange_.keep_alive = false;
  return send(std::move(answer));
}

awaitable<void> BeastConnection::send(Answer answer) {
  client_->stop();  // the next request may come before this write is known to be done
  exchange_.status = answer.status;
  if (answer.status >= 400)
    spdlog::debug("HTTP request answered with an error client={} status={}{}", exchange_.client,
                  answer.status, exchange_.labels.log_text());
  if (exchange_.is_message)
    answer = as_message_error(std::move(answer), exchange_.labels.x_request_id);
  co_await write(
      text_of(std::move(answer), exchange_.keep_alive, exchange_.body_sent, exchange_.fields));
}

awaitable<void> BeastConnection::send_head(std::uint64_t size_bytes, std::string_view type) {
  exchange_.status = 200;
  co_await write(exchange_.file_head(size_bytes, type));
}

awaitable<void> BeastConnection::send_piece(std::string bytes) {
  if (exchange_.body_sent == Body::Sent) co_await write(std::move(bytes));
}

awaitable<void> BeastConnection::write_events(ServerEvents events, Follows follows) {
  if (follows == Follows::Nothing) client_->stop();
  co_await write(exchange_.text_of(events, follows));
}

}  // namespace

std::shared_ptr<Connection> Connection::create(Socket socket, PeerAddress peer,
                                               Places::ConnectionId id,
                                               std::shared_ptr<Shared> shared) {
  return std::make_shared<BeastConnection>(std::move(socket), std::move(peer), id,
                                           std::move(shared));
}

}  // namespace leasehold::http
