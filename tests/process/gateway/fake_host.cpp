#include "tests/process/gateway/fake_host.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <optional>
#include <set>

#include "ipc/http/http_errors.hpp"
#include "ipc/http/http_listener.hpp"
#include "ipc/http/http_message.hpp"
#include "ipc/http/http_url.hpp"

namespace leasehold::testing {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using Json = nlohmann::json;

constexpr std::uint64_t kMostBytes = 1ull << 30;

constexpr std::string_view kEmbeddings = "/v1/embeddings";

/// Requests that it counts, and may drop.
bool is_counted(std::string_view path) {
  return path == "/v1/files" || path == "/v1/batches" || path == kEmbeddings;
}

constexpr auto kTick = std::chrono::milliseconds(2);

std::string word(std::size_t position) {
  return fmt::format("w{} ", position);
}

std::string chunk(std::string_view text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

http::Answer json_answer(const Json& json) {
  return {.body = json.dump()};
}

}  // namespace

std::string fake_text() {
  std::string text;
  for (std::size_t i = 0; i < FakeHost::kTokens; ++i) text += word(i);
  return text;
}

struct FakeHost::Server {
  FakeHost& host;
  std::unique_ptr<http::Listener> listener;
  std::set<std::shared_ptr<http::Stream>> streams;

  void add(http::Listener::Socket socket) {
    ++host.connections_;
    auto stream = std::make_shared<http::Stream>(std::move(socket));
    streams.insert(stream);
    asio::co_spawn(host.io_, serve(std::move(stream)), asio::detached);
  }

  awaitable<void> serve(std::shared_ptr<http::Stream> stream) {
    http::ReadBuffer buffer;
    while (true) {
      http::Parser parser;
      http::RequestHead read =
          co_await http::read_request_head(*stream, buffer, parser, kMostBytes);
      if (!read.head) break;
      if (read.head->method == "POST" && is_counted(read.head->path())) {
        ++host.posts_;
        if (host.drops_posts_) break;
      }
      if (read.head->method == "POST" && read.head->path() == "/v1/files") {
        const bool is_whole = co_await take_upload(*stream, buffer, parser);
        if (!is_whole) break;
        continue;
      }
      const http::RequestBody body =
          co_await http::read_request_body(*stream, buffer, parser, 1 << 20);
      if (!body.is_whole) break;
      const std::string text = std::move(parser.get().body());
      while (host.is_frozen_ && stream->socket().is_open()) co_await tick();
      if (!co_await answer(*stream, *std::move(read.head), text)) break;
    }
    stream->close();
    streams.erase(stream);
  }

  /// Counts the bytes, and answers once all have come or at once.
  awaitable<bool> take_upload(http::Stream& stream, http::ReadBuffer& buffer,
                              http::Parser& parser) {
    if (host.upload_status_ != 0) {
      http::Answer refusal = http::plain_error(host.upload_status_, "refused", "no uploads today");
      co_await send(stream, std::move(refusal));
      co_return false;
    }
    std::uint64_t read = 0, size = 0;
    while (true) {
      const auto piece = co_await http::read_body_piece(stream, buffer, parser, read, kMostBytes);
      if (!piece) co_return false;
      if (piece->empty()) break;
      size += piece->size();
    }
    http::Answer answer = stored(size);
    co_return co_await send(stream, std::move(answer));
  }

  http::Answer stored(std::uint64_t size) const {
    return json_answer({{"id", host.name_}, {"bytes", size}});
  }

  awaitable<void> tick() {
    asio::steady_timer timer(host.io_, kTick);
    co_await timer.async_wait(http::kAwait);
  }

  awaitable<bool> write(http::Stream& stream, std::string text) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const auto [error, size] = co_await stream.async_write_some(asio::buffer(rest), http::kAwait);
      if (error) co_return false;
      rest.remove_prefix(size);
    }
    co_return true;
  }

  std::string membership() const {
    const std::uint64_t incarnation = host.incarnation_;
    return incarnation == 0 ? "" : fmt::format("Leasehold-Incarnation: {}\r\n", incarnation);
  }

  awaitable<bool> send(http::Stream& stream, http::Answer answer) {
    return write(stream, http::text_of(std::move(answer), true, http::Body::Sent, membership()));
  }

  // GCC 12 mistreats braced values in coroutines, so answers are made by plain functions.

  /// The answer to what is not a text; nothing for a text.
  std::optional<http::Answer> plain_answer(const http::Head& head) {
    const std::string_view path = head.path();
    if (head.method == "OPTIONS") return http::Answer{.status = 204};
    if (path == "/leasehold/host") return report();
    if (path == "/v1/models") {
      const Json entry{{"id", host.model_}, {"object", "model"}};
      const Json adapter{{"id", host.model_ + "-tuned"}, {"parent", host.model_}};
      return json_answer({{"data", Json::array({entry, adapter})}});
    }
    if (path.starts_with("/v1/models/")) return json_answer({{"id", host.model_}});
    if (path.ends_with("/cancel")) {
      if (path.contains("/" + host.name_ + "/")) return json_answer({{"id", host.name_}});
      return http::plain_error(404, "UnknownRequest", "no such request");
    }
    if (path == "/v1/requests") return requests();
    if (path == "/v1/files") return files(head.target);
    if (path == "/v1/batches") return json_answer({{"id", "batch-of-" + host.name_}});
    if (path.starts_with("/v1/files/")) {
      if (auto file = file_of(path.substr(10))) return json_answer(*file);
      if (path.ends_with("/" + host.name_)) return json_answer({{"id", host.name_}});
      return http::plain_error(404, "not_found", "no such file");
    }
    if (path == kEmbeddings)
      if (auto refused = refusal()) return refused;
    if (path == kEmbeddings || path == "/tokenize") return json_answer({{"host", host.name_}});
    return std::nullopt;
  }

  http::Answer requests() const {
    const std::scoped_lock lock(host.mutex_);
    return {.body = host.requests_.empty() ? R"({"object":"list","data":[]})" : host.requests_};
  }

  std::optional<Json> file_of(std::string_view id) const {
    const std::scoped_lock lock(host.mutex_);
    for (const Json& file : host.files_)
      if (file.at("id") == id) return file;
    return std::nullopt;
  }

  /// As a worker does: at most `limit` entries after the one that `after` names.
  http::Answer files(const std::string& target) const {
    const std::scoped_lock lock(host.mutex_);
    const std::size_t mark = target.find('?');
    const auto query =
        http::page_query(mark == std::string::npos ? "" : target.substr(mark + 1), 20, 10'000);
    Json data = Json::array();
    bool is_past = query->after.empty(), has_more = false;
    for (const Json& file : host.files_) {
      has_more = is_past && data.size() == query->limit;
      if (has_more) break;
      if (is_past) data.push_back(file);
      is_past = is_past || file.at("id") == query->after;
    }
    return json_answer({{"object", "list"}, {"data", data}, {"has_more", has_more}});
  }

  /// Notes the request; returns the refusal if there is one.
  std::optional<http::Answer> note(const Asked& asked) {
    {
      const std::scoped_lock lock(host.mutex_);
      host.asked_.push_back(asked);
    }
    return refusal();
  }

  std::optional<http::Answer> refusal() const {
    const std::scoped_lock lock(host.mutex_);
    if (host.refused_status_ == 0) return std::nullopt;
    http::Answer refused =
        http::plain_error(host.refused_status_, host.refused_code_, host.refused_message_);
    if (host.refused_status_ >= 429) refused.retry_after_s = 60;
    return refused;
  }

  awaitable<bool> answer(http::Stream& stream, http::Head head, std::string body) {
    std::optional<http::Answer> plain = plain_answer(head);
    if (plain) co_return co_await send(stream, *std::move(plain));
    Asked asked;
    asked.head = std::move(head);
    asked.body = Json::parse(body);
    plain = note(asked);
    if (plain) co_return co_await send(stream, *std::move(plain));
    ++host.running_;
    const bool is_whole = co_await send_text(stream, std::move(asked));
    --host.running_;
    co_return is_whole;
  }

  http::Answer report() {
    const std::scoped_lock lock(host.mutex_);
    const Json model{{"id", host.model_}, {"identity", host.identity_}};
    return json_answer({{"host", host.name_},
                        {"models", Json::array({model})},
                        {"ready", host.is_ready_},
                        {"code", host.code_},
                        {"keeps_files", host.keeps_files_.load()},
                        {"running", 0},
                        {"waiting", 0}});
  }

  /// True if the client has closed its connection, whose next bytes would be another request.
  static bool has_left(http::Stream& stream) {
    char byte = 0;
    return ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  awaitable<bool> send_text(http::Stream& stream, Asked asked) {
    const bool is_continuable = !asked.field("Leasehold-Stream").empty();
    const auto beat = std::chrono::milliseconds(
        is_continuable ? std::stoi(asked.field("Leasehold-Stream")) : 10'000);
    std::string head = stream_head();
    if (!co_await write(stream, std::move(head))) co_return false;
    std::size_t position = 0;
    if (asked.body.contains("emitted") && !asked.body["emitted"].empty())
      position = asked.body["emitted"][0].size();
    auto last = std::chrono::steady_clock::now();
    while (position < kTokens) {
      if (host.is_frozen_ || position >= host.allowed_) {
        const auto now = std::chrono::steady_clock::now();
        if (!host.is_frozen_ && now - last >= beat) {
          last = now;
          if (!co_await write(stream, chunk(": b\n\n"))) co_return false;
        }
        co_await tick();
        if (!stream.socket().is_open() || has_left(stream)) co_return false;
        continue;
      }
      const std::string block = block_of(asked, position);
      if (!block.empty() && !co_await write(stream, chunk(block))) co_return false;
      ++position;
    }
    co_return co_await write(stream, chunk(ending_of(asked)) + "0\r\n\r\n");
  }

  std::string stream_head() const {
    return fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nLeasehold-Host: {}\r\n"
        "Leasehold-Identity: {}\r\n{}Transfer-Encoding: chunked\r\n\r\n",
        host.name_, host.identity_, membership());
  }

  static std::int64_t created_of(const Asked& asked) {
    const std::string text = asked.field("Leasehold-Created");
    return text.empty() ? 0 : std::stoll(text);
  }

  std::string block_of(const Asked& asked, std::size_t position) const {
    std::string block;
    if (asked.body.value("stream", false)) {
      const Json delta{{"content", word(position)}};
      const Json choice{{"index", 0}, {"delta", delta}};
      const Json event{{"created", created_of(asked)}, {"choices", Json::array({choice})}};
      block = "data: " + event.dump() + "\n";
    }
    const std::size_t token = 100 + position + (host.is_lying_ ? 1000 : 0);
    if (!asked.field("Leasehold-Stream").empty())
      block += fmt::format(": t 0 {} {}\n", position, token);
    return block.empty() ? block : block + "\n";
  }

  static std::string ending_of(const Asked& asked) {
    const Json message{{"content", fake_text()}};
    const Json choice{{"index", 0}, {"message", message}};
    const Json whole{{"created", created_of(asked)}, {"choices", Json::array({choice})}};
    std::string ending = asked.body.value("stream", false)
                             ? "data: [DONE]\n\n"
                             : fmt::format("event: answer\ndata: {}\n\n", whole.dump());
    if (!asked.field("Leasehold-Stream").empty()) ending += ": e\n\n";
    return ending;
  }
};

FakeHost::FakeHost(std::string name, std::string identity, std::string model)
    : name_(std::move(name)), identity_(std::move(identity)), model_(std::move(model)) {
  server_ = std::make_unique<Server>(*this);
  server_->listener =
      http::Listener::create(io_, {.unix_path = {}, .ip = "127.0.0.1"}, 0600).value();
  server_->listener->serve([this](http::Listener::Socket socket, const http::PeerAddress&) {
    server_->add(std::move(socket));
  });
  thread_ = std::thread([this] { io_.run(); });
}

FakeHost::~FakeHost() {
  io_.stop();
  thread_.join();
}

std::string FakeHost::address() const {
  return "http://" + server_->listener->listens_on();
}

void FakeHost::set_ready(bool ready, std::string code) {
  const std::scoped_lock lock(mutex_);
  is_ready_ = ready;
  code_ = std::move(code);
}

void FakeHost::refuse_with(int status, std::string code, std::string message) {
  const std::scoped_lock lock(mutex_);
  refused_status_ = status;
  refused_code_ = std::move(code);
  refused_message_ = std::move(message);
}

void FakeHost::set_files(std::vector<Json> files) {
  const std::scoped_lock lock(mutex_);
  files_ = std::move(files);
}

void FakeHost::set_requests(std::string body) {
  const std::scoped_lock lock(mutex_);
  requests_ = std::move(body);
}

void FakeHost::die() {
  std::promise<void> dead;
  asio::post(io_, [&] {
    server_->listener->close();
    for (const auto& stream : server_->streams) stream->close();
    dead.set_value();
  });
  dead.get_future().wait();
}

std::vector<Asked> FakeHost::asked() const {
  const std::scoped_lock lock(mutex_);
  return asked_;
}

}  // namespace leasehold::testing
