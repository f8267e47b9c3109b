/// What an answer needs beside a client::World: the connection of a client, and a server's
/// dependencies.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/ipc/client/fake_world.hpp"
#include "worker/http/http_server.hpp"
#include "worker/http/http_shared.hpp"
#include "worker/http/http_stream.hpp"

namespace leasehold::http {

/// A World whose server has a pool of threads.
struct ServerWorld : client::World {
  ServerWorld() { longest_work = std::chrono::seconds(20); }
};

struct FakeClient final : HttpStream {
  boost::asio::awaitable<void> send(Answer answer) override {
    ++answers;
    status = answer.status;
    body = answer.body;
    is_disconnected = leaves;
    co_return;
  }
  boost::asio::awaitable<void> write_events(ServerEvents events, Follows follows) override {
    writes.push_back(std::move(events));
    has_ended = follows == Follows::Nothing;
    if (has_ended) is_disconnected = leaves;
    if (on_write) on_write();
    if (unread != nullptr)
      co_await unread->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
  void watch(std::function<void()>) override {}
  boost::asio::awaitable<void> probe() override { co_return; }
  const ExchangeLabels& labels() const override { return exchange; }
  bool is_gone() const override { return is_disconnected; }

  ExchangeLabels exchange{
      .x_request_id = "a-1",
      .trace = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")};
  bool leaves = false;                          // while the answer, or its end, is sent
  boost::asio::steady_timer* unread = nullptr;  // a write waits for its end
  std::function<void()> on_write;
  int answers = 0;
  int status = 0;    // of the last answer
  std::string body;  // of the last answer
  std::vector<ServerEvents> writes;
  bool has_ended = false;
  bool is_disconnected = false;
};

inline Server::Dependencies dependencies(client::World& world, const Tokenizer& tokenizer) {
  // The server's timers have the time of the machine.
  const std::int64_t later = SystemClock().now().boottime_ns + 3'600'000'000'000;
  for (const char* method : {"lease.acquire", "lease.renew", "lease.hold"})
    for (auto& reply : world.broker.answers[method]) reply->at("deadline_boottime_ns") = later;
  static const SystemClock kClock;
  return {.io = &world.io,
          .clock = &kClock,
          .check_key = {},
          .broker_socket = world.directory / "broker.sock",
          .worker = "w",
          .trusted_proxies = {},
          .model = {.name = "model"},
          .tokenizer = &tokenizer,
          .encode_chat = {},
          .stopping = {Errc::Draining, "the worker stops"},
          .idle_ttl = Duration::zero()};
}

}  // namespace leasehold::http
