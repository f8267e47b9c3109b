#include "worker/http/http_connection.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <ctime>
#include <nlohmann/json.hpp>

#include "worker/http/api_answer.hpp"
#include "worker/http/http_framing.hpp"

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;

constexpr std::uint32_t kMaxHeadBytes = 16 << 10;
constexpr auto kHeadTimeout = std::chrono::seconds(10);
constexpr auto kIdleTimeout = std::chrono::seconds(60);  // between the requests of a tenant
constexpr auto kBodyTimeout = std::chrono::seconds(30);
constexpr auto kWriteTimeout = std::chrono::seconds(30);
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::string_view kDone = "data: [DONE]\n\n";

std::string_view phrase(int status) {
  return beast::http::obsolete_reason(static_cast<beast::http::status>(status));
}

std::string text_of(const Answer& answer, bool keep_alive) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
                  answer.status, phrase(answer.status), answer.body.size());
  if (answer.retry_after_s > 0) text += fmt::format("Retry-After: {}\r\n", answer.retry_after_s);
  if (answer.status == 401) text += "WWW-Authenticate: Bearer\r\n";
  if (!keep_alive) text += "Connection: close\r\n";
  return text + "\r\n" + answer.body;
}

// GCC 12 destroys braced temporaries of a co_await expression twice, so answers are made by calls.

Answer ok(std::string body) {
  return {.body = std::move(body)};
}

Answer refusal(const Error& error) {
  return error_answer({error});
}

std::string error_event(const Error& error) {
  return error_body({error});
}

class BeastConnection final : public Connection {
 public:
  BeastConnection(Socket socket, Places::ConnectionId id, std::shared_ptr<Shared> shared)
      : stream_(std::move(socket)), id_(id), shared_(std::move(shared)) {}

  awaitable<void> run() override;
  void close() override {
    is_gone_ = true;
    stream_.close();
    if (generation_) generation_->wake();
  }

 private:
  using Parser = beast::http::request_parser<beast::http::string_body>;

  awaitable<bool> serve_one();
  awaitable<bool> send(Answer answer, bool keep_alive);
  awaitable<bool> write(std::string text);
  awaitable<std::optional<Answer>> authenticate(const Head& head);
  awaitable<Result<wire::KeyView>> check_key(std::string key);
  awaitable<bool> read_body(Parser& parser, const Head& head);
  awaitable<bool> generate(const ApiRequest& request, bool keep_alive);
  awaitable<bool> answer_whole(const ApiRequest& request, const AnswerWriter& writer,
                               bool keep_alive);
  awaitable<bool> answer_stream(const AnswerWriter& writer, bool keep_alive);
  std::optional<Answer> note(const client::SessionEvent& event);
  awaitable<bool> write_event(std::string_view json);
  void watch();
  Answer models() const;
  client::SessionConfig session_config(const ApiRequest& request) const;
  static std::optional<Error> error_of(const client::Ended& ended, const Generation& generation);

  beast::basic_stream<asio::generic::stream_protocol> stream_;
  beast::flat_buffer buffer_;
  Places::ConnectionId id_;
  std::shared_ptr<Shared> shared_;
  std::optional<TenantId> tenant_;
  std::string key_;
  std::shared_ptr<Generation> generation_;
  UsageCount usage_;
  bool chunked_ = true;
  bool is_watching_ = false;
  bool is_gone_ = false;
};

awaitable<void> BeastConnection::run() {
  const auto self = shared_from_this();
  while (!is_gone_ && !shared_->closing) {
    if (!co_await serve_one()) break;
  }
  shared_->places.closed(id_);
  stream_.close();
}

awaitable<bool> BeastConnection::write(std::string text) {
  stream_.expires_after(kWriteTimeout);
  const auto [error, written] = co_await asio::async_write(stream_, asio::buffer(text), kAwait);
  stream_.expires_never();
  if (error) is_gone_ = true;
  co_return !error;
}

awaitable<bool> BeastConnection::send(Answer answer, bool keep_alive) {
  is_watching_ = false;  // the next request may come before this write is known to be done
  const bool written = co_await write(text_of(answer, keep_alive));
  co_return written&& keep_alive;
}

Head head_of(const beast::http::request<beast::http::string_body>& message) {
  Head head{.method = std::string(message.method_string()),
            .target = std::string(message.target()),
            .version = static_cast<int>(message.version())};
  for (const auto& field : message)
    head.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  return head;
}

/// Returns whether another request may follow.
awaitable<bool> BeastConnection::serve_one() {
  Parser parser;
  parser.header_limit(kMaxHeadBytes);
  parser.body_limit(boost::none);  // refuse_head checks a length
  stream_.expires_after(tenant_ ? kIdleTimeout : kHeadTimeout);
  const auto [error, size] =
      co_await beast::http::async_read_header(stream_, buffer_, parser, kAwait);
  if (error == beast::http::error::header_limit)
    co_return co_await send(plain_error(431, "head_too_large", "the head may have 16 KiB"), false);
  const bool is_malformed =
      error.category() == beast::error_code(beast::http::error::bad_method).category();
  if (is_malformed && error != beast::http::error::end_of_stream &&
      error != beast::http::error::partial_message)
    co_return co_await send(plain_error(400, "bad_framing", "malformed: " + error.message()),
                            false);
  if (error) co_return false;
  const Head head = head_of(parser.get());
  if (auto refused = refuse_head(head, shared_->deps.max_body_bytes))
    co_return co_await send(*std::move(refused), false);
  const std::string_view path = head.path();
  const bool keep_alive = parser.keep_alive();
  if (path == "/health") {
    if (head.method != "GET" || !parser.is_done())
      co_return co_await send(plain_error(405, "method", "use GET"), false);
    co_return co_await send(ok(R"({"status":"ok"})"), keep_alive);
  }
  if (auto refused = co_await authenticate(head))
    co_return co_await send(*std::move(refused), false);
  const bool chat = path == "/v1/chat/completions";
  const bool wants_post = chat || path == "/v1/completions";
  if (!wants_post && path != "/v1/models")
    co_return co_await send(plain_error(404, "not_found", "no such path"), false);
  if (head.method != (wants_post ? "POST" : "GET"))
    co_return co_await send(plain_error(405, "method", wants_post ? "use POST" : "use GET"), false);
  if (!co_await read_body(parser, head)) co_return false;
  if (!wants_post) co_return co_await send(models(), keep_alive);
  const auto request = parse_api_request(chat ? Api::Chat : Api::Completions, parser.get().body(),
                                         shared_->deps.model);
  if (!request) co_return co_await send(error_answer(request.error()), keep_alive);
  chunked_ = head.version >= 11;
  co_return co_await generate(*request, keep_alive);
}

/// Answers a body that is too long or malformed; false then, and when the client is gone.
awaitable<bool> BeastConnection::read_body(Parser& parser, const Head& head) {
  const auto expects = head.only("Expect");
  if (expects && !parser.is_done() && !co_await write("HTTP/1.1 100 Continue\r\n\r\n"))
    co_return false;
  parser.body_limit(shared_->deps.max_body_bytes);
  stream_.expires_after(kBodyTimeout);
  if (!parser.is_done()) {
    const auto [error, size] = co_await beast::http::async_read(stream_, buffer_, parser, kAwait);
    if (error == beast::http::error::body_limit) {
      co_return co_await send(
          plain_error(413, "body_too_large",
                      fmt::format("the body may have {} bytes", shared_->deps.max_body_bytes)),
          false);
    }
    if (error) co_return false;
  }
  stream_.expires_never();
  co_return true;
}

// ------------------------------------------------------------------------------------------- keys

awaitable<Result<wire::KeyView>> BeastConnection::check_key(std::string key) {
  struct Waiting {
    explicit Waiting(asio::io_context& io) : timer(io) {}
    asio::steady_timer timer;
    std::optional<Result<wire::KeyView>> checked;
  };
  const auto waiting = std::make_shared<Waiting>(*shared_->deps.io);
  waiting->timer.expires_at(asio::steady_timer::time_point::max());
  // The broker's link may keep this call longer than the thread of `io` lives.
  const auto on_checked = [weak = std::weak_ptr(waiting), io = shared_->deps.io](auto checked) {
    asio::post(*io, [weak, checked = std::move(checked)]() mutable {
      const auto waits = weak.lock();
      if (!waits) return;
      waits->checked = std::move(checked);
      waits->timer.cancel();
    });
  };
  shared_->deps.check_key(std::move(key), on_checked);
  if (!waiting->checked) co_await waiting->timer.async_wait(kAwait);
  if (waiting->checked) co_return *std::move(waiting->checked);
  co_return fail(Errc::BrokerLost, "this worker is stopping");
}

/// The refusal, after which the connection is closed: each guess costs a connection.
awaitable<std::optional<Answer>> BeastConnection::authenticate(const Head& head) {
  std::string key(head.bearer_key());
  constexpr std::size_t kMaxKeyBytes = 128;
  if (key.empty() || key.size() > kMaxKeyBytes) {
    co_return error_answer(
        {{Errc::BadToken,
          "send 'Authorization: Bearer KEY' with a key of `brokerctl keys create`"}});
  }
  asio::steady_timer pause(*shared_->deps.io);
  while (true) {
    const Duration wait = shared_->places.pace_key(id_, shared_->deps.clock->now());
    if (wait == Duration::zero() || is_gone_) break;
    pause.expires_after(wait);
    co_await pause.async_wait(kAwait);
  }
  const Result<wire::KeyView> checked = co_await check_key(key);
  if (!checked) co_return refusal(checked.error());
  if (const auto kept = shared_->places.authenticated(id_, checked->tenant); !kept)
    co_return refusal(kept.error());
  tenant_ = checked->tenant;
  key_ = std::move(key);
  co_return std::nullopt;
}

Answer BeastConnection::models() const {
  const ApiModel& model = shared_->deps.model;
  const nlohmann::json entry{{"id", model.name},
                             {"object", "model"},
                             {"created", 0},
                             {"owned_by", "leasehold"},
                             {"max_model_len", model.max_context}};
  return {.body =
              nlohmann::json{{"object", "list"}, {"data", nlohmann::json::array({entry})}}.dump()};
}

// ------------------------------------------------------------------------------------- generation

client::SessionConfig BeastConnection::session_config(const ApiRequest& request) const {
  return {.broker_path = shared_->deps.broker_socket,
          .tenant = *tenant_,
          .worker = shared_->deps.worker,
          .api_key = key_,
          .rebind = true,
          .request = request.submit};
}

/// Waits for the client to leave, or to send what it may not send yet: both end the request.
void BeastConnection::watch() {
  is_watching_ = true;
  stream_.socket().async_wait(
      Socket::wait_read, [weak = weak_from_this()](const beast::error_code& error) {
        const auto self = std::static_pointer_cast<BeastConnection>(weak.lock());
        if (!self || error || !self->is_watching_) return;
        self->is_gone_ = true;
        self->generation_->wake();
      });
}

awaitable<bool> BeastConnection::generate(const ApiRequest& request, bool keep_alive) {
  const AnswerWriter writer(request, shared_->deps.model.name, std::time(nullptr));
  usage_ = {};
  generation_ = Generation::start(*shared_->deps.io, shared_->timers, session_config(request));
  watch();
  const bool more = request.stream ? co_await answer_stream(writer, keep_alive)
                                   : co_await answer_whole(request, writer, keep_alive);
  generation_->cancel();
  generation_.reset();
  beast::error_code ignored;
  stream_.socket().cancel(ignored);  // the watch
  co_return more && !is_gone_;
}

std::optional<Error> BeastConnection::error_of(const client::Ended& ended,
                                               const Generation& generation) {
  if (generation.was_unread())
    return Error{Errc::QueueFull, "too much of the stream was unread; read faster"};
  if (ended.error) return ended.error;
  if (ended.reason != "Cancelled") return std::nullopt;
  return Error{Errc::Draining, "the request was cancelled; this worker is stopping"};
}

/// Counts. Returns the answer to a request that a quota holds back before its first token.
std::optional<Answer> BeastConnection::note(const client::SessionEvent& event) {
  if (const auto* submitted = std::get_if<client::Submitted>(&event);
      submitted != nullptr && usage_.prompt_tokens == 0)
    usage_.prompt_tokens = submitted->prompt_tokens;
  if (std::holds_alternative<client::TokenArrived>(event)) ++usage_.completion_tokens;
  const auto* retrying = std::get_if<client::Retrying>(&event);
  if (retrying == nullptr || usage_.completion_tokens > 0) return std::nullopt;
  const Errc code = retrying->error.code;
  if (status_of(code) != 429 && code != Errc::QueueFull) return std::nullopt;
  return error_answer({retrying->error});
}

awaitable<bool> BeastConnection::answer_whole(const ApiRequest&, const AnswerWriter& writer,
                                              bool keep_alive) {
  std::string text;
  while (!is_gone_ && !shared_->closing) {
    const auto event = co_await generation_->next();
    if (!event) continue;
    if (auto refused = note(*event)) co_return co_await send(*std::move(refused), keep_alive);
    if (const auto* token = std::get_if<client::TokenArrived>(&*event)) text += token->token.text;
    const auto* ended = std::get_if<client::Ended>(&*event);
    if (ended == nullptr) continue;
    if (const auto error = error_of(*ended, *generation_))
      co_return co_await send(refusal(*error), keep_alive);
    text += ended->text;
    co_return co_await send(ok(writer.whole(text, finish_reason(ended->reason), usage_)),
                            keep_alive);
  }
  co_return false;
}

awaitable<bool> BeastConnection::write_event(std::string_view json) {
  std::string text = json == kDone ? std::string(kDone) : fmt::format("data: {}\n\n", json);
  if (chunked_) text = fmt::format("{:x}\r\n{}\r\n", text.size(), text);
  return write(std::move(text));
}

/// The status waits for the first token or the end, so that a refusal has its own.
awaitable<bool> BeastConnection::answer_stream(const AnswerWriter& writer, bool keep_alive) {
  bool began = false;
  while (!is_gone_ && !shared_->closing) {
    const auto event = co_await generation_->next();
    if (!event) continue;
    if (auto refused = note(*event); refused && !began)
      co_return co_await send(*std::move(refused), keep_alive);
    const auto* token = std::get_if<client::TokenArrived>(&*event);
    const auto* ended = std::get_if<client::Ended>(&*event);
    if (token == nullptr && ended == nullptr) continue;
    const auto error = ended == nullptr ? std::nullopt : error_of(*ended, *generation_);
    if (error && !began) co_return co_await send(refusal(*error), keep_alive);
    if (!std::exchange(began, true)) {
      co_await write(fmt::format(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n{}\r\n",
          chunked_ ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n"));
      if (const auto opening = writer.opening()) co_await write_event(*opening);
    }
    if (token != nullptr) {
      co_await write_event(writer.text(token->token.text, usage_));
      continue;
    }
    if (error) co_await write_event(error_event(*error));
    if (!error) {
      co_await write_event(writer.end(ended->text, finish_reason(ended->reason), usage_));
      if (const auto usage = writer.usage(usage_)) co_await write_event(*usage);
    }
    is_watching_ = false;
    co_await write_event(kDone);
    if (!chunked_) co_return false;
    co_return co_await write("0\r\n\r\n") && keep_alive;
  }
  co_return false;
}

}  // namespace

std::shared_ptr<Connection> Connection::create(Socket socket, Places::ConnectionId id,
                                               std::shared_ptr<Shared> shared) {
  return std::make_shared<BeastConnection>(std::move(socket), id, std::move(shared));
}

}  // namespace leasehold::http
