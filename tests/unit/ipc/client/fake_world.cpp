#include "tests/unit/ipc/client/fake_world.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

namespace leasehold::client {
namespace {

auto listen(boost::asio::io_context& io, const std::string& path) {
  auto acceptor = control::listen_on(io, path, 0600);
  REQUIRE(acceptor);
  return *std::move(acceptor);
}

wire::LeaseAcquired lease(std::uint64_t generation, const std::string& address) {
  return {.lease = {1, generation},
          .token = "v1:secret",
          .address = address,
          .worker = "w",
          .deadline_boottime_ns = 5'000'000'000,
          .ttl_ms = 3'000,
          .blocks = 16};
}

}  // namespace

std::int32_t token_at(std::uint32_t position) {
  return static_cast<std::int32_t>(100 + position);
}

FakeServer::FakeServer(boost::asio::io_context& io, std::string path)
    : io_(io), path_(std::move(path)), acceptor_(listen(io, path_)) {
  accept();
}

void FakeServer::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, control::Socket socket) {
    if (error) return;
    control::Peer::Handlers handlers;
    handlers.on_call = [this, peer = peers_.size()](const std::string& method,
                                                    control::Payload params,
                                                    control::Responder respond) {
      calls_.emplace_back(method, params.body);
      if (method == "request.submit") submitters_[params.body.at("request_id")] = peer;
      if (method == held) {
        waiting_.emplace_back(
            [this, method, body = params.body, respond = std::move(respond)]() mutable {
              respond(answer(method, body));
            });
        return;
      }
      respond(answer(method, params.body));
      if (after_answer) after_answer(method, params.body);
    };
    handlers.on_closed = [this](const Error&) { --open_connections_; };
    ++open_connections_;
    peers_.push_back(control::Peer::create(std::move(socket), std::move(handlers)));
    peers_.back()->start();
    accept();
  });
}

Result<control::Payload> FakeServer::answer(const std::string& method, const wire::Json& params) {
  auto& prepared = answers[method];
  if (prepared.empty()) return fail(Errc::UnknownMethod, method);
  auto reply = prepared.front();
  if (prepared.size() > 1) prepared.pop_front();
  if (!reply) return std::unexpected(reply.error());
  // The reply of a worker has the request id of the call.
  if (reply->contains("request")) (*reply)["request"] = params.at("request_id");
  return control::Payload{.body = *reply};
}

void FakeServer::answer_held() {
  held.clear();
  for (auto& respond : std::exchange(waiting_, {})) respond();
}

std::vector<wire::Json> FakeServer::calls(const std::string& method) const {
  std::vector<wire::Json> found;
  for (const auto& [called, params] : calls_) {
    if (called == method) found.push_back(params);
  }
  return found;
}

void FakeServer::notify(const std::string& method, const wire::Json& params) {
  REQUIRE_FALSE(peers_.empty());
  peers_.back()->notify(method, {.body = params});
}

void FakeServer::notify_submitter(const std::string& method, const wire::Json& params) {
  peers_.at(submitters_.at(params.at("request")))->notify(method, {.body = params});
}

void FakeServer::drop_connections() {
  for (const auto& peer : std::exchange(peers_, {})) peer->close();
}

void FakeServer::vanish() {
  acceptor_.close();
  std::filesystem::remove(path_);
  drop_connections();
}

World::World() : broker(io, directory / "broker.sock"), worker(io, directory / "worker.sock") {
  request.request_id = {"req-1"};
  request.prompt = "Once";
  request.max_emitted_tokens = 100;
  for (std::uint64_t generation = 1; generation <= 20; ++generation) {
    broker.answers["lease.acquire"].push_back(
        lease(generation, directory / "worker.sock").to_json());
  }
  broker.answers["lease.renew"] = {
      wire::LeaseRenewed{.deadline_boottime_ns = 9'000'000'000}.to_json()};
  broker.answers["lease.hold"] = {
      wire::LeaseRenewed{.deadline_boottime_ns = 5'000'000'000}.to_json()};
  broker.answers["lease.release"] = {wire::Json::object()};
  worker.answers["connection.authenticate"] = {wire::Json::object()};
  worker.answers["request.submit"] = {
      wire::RequestSubmitted{.request = {"any"}, .prompt_tokens = 4}.to_json()};
  worker.answers["request.cancel"] = {wire::Json::object()};
}

std::shared_ptr<TenantSession> World::start(bool rebind) {
  SessionConfig config{
      .broker_path = directory / "broker.sock", .tenant = {"A"}, .rebind = rebind, .moves = moves};
  config.any_arithmetic = any_arithmetic;
  config.worker = named_worker;
  config.model = model;
  config.text_identity = text_identity;
  config.lease = holder;
  config.request = request;
  session = TenantSession::create(io, timers, std::move(config),
                                  [this](const SessionEvent& event) { events.push_back(event); });
  session->start();
  return session;
}

void World::stream(bool rebind) {
  start(rebind);
  run_until([this] { return session->state() == TenantSession::State::Streaming; });
}

void World::run_until(const std::function<bool()>& wanted) {
  io.restart();
  while (!wanted()) {
    // Unix sockets deliver at once: when no handler is ready, everything sent has arrived.
    if (io.poll_one() == 0 && io.run_one_for(longest_work) == 0) FAIL("nothing more happens");
  }
}

void World::settle() {
  io.restart();
  io.poll();
}

void World::emit(std::uint32_t first_position, int count) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t position = first_position + static_cast<std::uint32_t>(i);
    worker.notify("token.emitted", wire::TokenEmitted{.request = {"req-1"},
                                                      .token = token_at(position),
                                                      .position = position,
                                                      .text = fmt::format("t{} ", position)}
                                       .to_json());
    sent = position + 1;
  }
}

void World::complete(const std::string& reason) {
  worker.notify(
      "request.completed",
      wire::RequestCompleted{.request = {"req-1"}, .reason = reason, .emitted_tokens = sent}
          .to_json());
}

void World::complete_revoked(LeaseId id) {
  worker.notify("request.completed", wire::RequestCompleted{.request = {"req-1"},
                                                            .reason = "Revoked",
                                                            .emitted_tokens = sent,
                                                            .lease = id,
                                                            .scope = "tenant",
                                                            .revoke_reason = "operator"}
                                         .to_json());
}

void World::deliver(int count) {
  emit(0, count);
  run_until([&] { return session->tokens().size() == static_cast<std::size_t>(count); });
}

void World::revoke(LeaseId id) {
  const std::size_t before = reported<Interrupted>().size();
  complete_revoked(id);
  run_until([&] { return reported<Interrupted>().size() == before + 1; });
}

bool World::completes() {
  complete("EndOfSequence");
  return !end().error;
}

Ended World::end() {
  run_until([&] { return !reported<Ended>().empty(); });
  return reported<Ended>().front();
}

}  // namespace leasehold::client
