#include "ipc/http/page_server.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <map>

#include "ipc/http/http_await.hpp"
#include "ipc/http/http_errors.hpp"
#include "ipc/http/http_listener.hpp"
#include "ipc/http/http_message.hpp"

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
using asio::awaitable;

constexpr mode_t kSocketMode = 0660;  // not for all users: pages need no key and may name tenants
constexpr auto kHeadTimeout = std::chrono::seconds(10);
constexpr auto kIdleTimeout = std::chrono::seconds(60);
constexpr auto kWriteTimeout = std::chrono::seconds(30);

}  // namespace

struct PageServer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& context, std::unique_ptr<Listener> listening, std::vector<Page> served,
        HostRule answered)
      : io(&context),
        listener(std::move(listening)),
        pages(std::move(served)),
        hosts(std::move(answered)) {}

  void add(Listener::Socket socket);
  awaitable<void> run(std::uint64_t id, std::shared_ptr<Stream> stream);
  Answer answer(const Head& head) const;

  asio::io_context* io;
  std::unique_ptr<Listener> listener;
  std::vector<Page> pages;
  HostRule hosts;
  std::map<std::uint64_t, std::shared_ptr<Stream>> streams;  // the lowest id is the oldest
  std::uint64_t last_id = 0;
};

void PageServer::State::add(Listener::Socket socket) {
  if (streams.size() == kMaxConnections) {
    streams.begin()->second->close();
    streams.erase(streams.begin());
  }
  const std::uint64_t id = ++last_id;
  const auto stream = std::make_shared<Stream>(std::move(socket));
  streams.emplace(id, stream);
  asio::co_spawn(*io, run(id, stream), asio::detached);
}

awaitable<void> PageServer::State::run(std::uint64_t id, std::shared_ptr<Stream> stream) {
  const auto self = shared_from_this();
  ReadBuffer buffer;
  bool keep_alive = true;
  for (bool is_first = true; keep_alive && streams.contains(id); is_first = false) {
    Parser parser;
    stream->expires_after(is_first ? kHeadTimeout : kIdleTimeout);
    RequestHead read = co_await read_request_head(*stream, buffer, parser, 0);
    if (!read.head && !read.refused) break;
    Answer next = read.refused ? *std::move(read.refused) : answer(*read.head);
    // After a refusal the head may not have been read to its end, so the next bytes may not begin a
    // request.
    keep_alive = next.status == 200 && parser.is_done() && parser.keep_alive();
    const bool is_head = read.head && read.head->method == "HEAD";
    const std::string text =
        text_of(std::move(next), keep_alive, is_head ? Body::LeftOut : Body::Sent);
    stream->expires_after(kWriteTimeout);
    const auto [error, size] = co_await asio::async_write(*stream, asio::buffer(text), kAwait);
    if (error) break;
  }
  stream->close();
  streams.erase(id);
}

Answer PageServer::State::answer(const Head& head) const {
  if (!hosts.allows(head.only("Host")))
    return plain_error(421, "host",
                       "this server has another name; use its IP address, or name this host with "
                       "--metrics-host (worker, gateway) or --http-host (monitor)");
  const auto page = std::ranges::find(pages, head.path(), &Page::path);
  if (page == pages.end()) return plain_error(404, "not_found", "no such path");
  if (head.method != "GET" && head.method != "HEAD") {
    Answer refused = plain_error(405, "method", "use GET or HEAD");
    refused.extra_headers = "Allow: GET, HEAD\r\n";
    return refused;
  }
  return page->make();
}

Result<std::unique_ptr<PageServer>> PageServer::create(asio::io_context& io, const Address& address,
                                                       std::vector<Page> pages, HostRule hosts) {
  auto listener = TRY(Listener::create(io, address, kSocketMode));
  return std::unique_ptr<PageServer>(new PageServer(
      std::make_shared<State>(io, std::move(listener), std::move(pages), std::move(hosts))));
}

PageServer::~PageServer() {
  state_->listener.reset();  // handlers that never ran may keep the state
}

std::string PageServer::listens_on() const {
  return state_->listener->listens_on();
}

void PageServer::serve() {
  state_->listener->serve([state = state_](Listener::Socket socket, const PeerAddress&) {
    state->add(std::move(socket));
  });
}

void PageServer::close() {
  state_->listener->close();
  for (const auto& [id, stream] : state_->streams) stream->close();
  state_->streams.clear();
}

}  // namespace leasehold::http
