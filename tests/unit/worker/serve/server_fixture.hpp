/// A tenant server with a whole engine, for tests. The test is the parser's thread: a request stays
/// unparsed until the test calls `parse`.
#pragma once

#include "worker/serve/tenant_server.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/engine_rig.hpp"
#include "tests/unit/ipc/control/peer_fixture.hpp"

namespace leasehold::testing {

struct TestTenant {
  TestTenant(boost::asio::io_context& io, const std::string& path)
      : peer(control::Peer::create(*control::connect_to(io, path), seen.handlers())) {
    peer->start();
  }
  bool has_ended() const {
    return !seen.notifications.empty() && seen.notifications.back().first == "request.completed";
  }

  RecordedCalls seen;
  std::string name = "ann";
  std::shared_ptr<control::Peer> peer;
  std::map<std::string, Result<control::Payload>> answers;  // by request
};

struct ServerFixture {
  explicit ServerFixture(const Tracing* tracing = nullptr) {
    std::filesystem::create_directory(directory);
    broker_socket.emplace(*control::listen_on(io, directory / "broker", 0600));
    broker = *BrokerLink::connect(io, directory / "broker", {.on_call = {}, .on_disconnected = {}});
    server.emplace(ServeDependencies{.io = &io,
                                     .loop = &loop,
                                     .running_requests = &rig.running_requests(),
                                     .parser = parser.get_executor(),
                                     .prompt = {.tokenizer = &rig.tokenizer(),
                                                .chat = &no_chat,
                                                .max_context = rig.config().n_context},
                                     .broker = broker.get(),
                                     .table = &rig.table(),
                                     .clock = &rig.clock(),
                                     .metrics = &metrics,
                                     .tracing = tracing});
    server->serve(*TenantServer::listen(io, directory / "worker"));
  }
  ~ServerFixture() {
    loop.stop();
    if (engine.joinable()) engine.join();
    std::filesystem::remove_all(directory);
  }

  std::unique_ptr<TestTenant> unauthenticated() {
    return std::make_unique<TestTenant>(io, directory / "worker");
  }
  std::unique_ptr<TestTenant> tenant(const std::string& name = "ann") {
    auto added = unauthenticated();
    added->name = name;
    const wire::ConnectionAuthenticate message{.token = token_of(name)};
    call(*added, "authenticate", std::string(message.kMethod), message.to_json());
    run_until(io, [&] { return added->answers.contains("authenticate"); });
    CHECK(added->answers.at("authenticate").has_value());
    added->answers.clear();
    return added;
  }
  std::string token_of(const std::string& name) const {
    return mint_token({}, {name == "bob" ? bobs_lease : lease, {name}});
  }
  void generate(TestTenant& tenant, const std::string& id,
                std::string prompt = "Once upon a time") {
    wire::RequestSubmit request{.token = token_of(tenant.name), .request_id = {id}};
    request.prompt = std::move(prompt);
    request.max_emitted_tokens = 4;
    call(tenant, id, std::string(wire::RequestSubmit::kMethod), request.to_json());
  }
  void cancel(TestTenant& tenant, const std::string& id) {
    call(tenant, "cancel " + id, std::string(wire::RequestCancel::kMethod),
         wire::RequestCancel{.request_id = {id}}.to_json());
  }
  void call(TestTenant& tenant, const std::string& name, const std::string& method,
            wire::Json body) {
    tenant.peer->call(method, {.body = std::move(body)},
                      [&tenant, name](Result<control::Payload> answer) {
                        tenant.answers.emplace(name, std::move(answer));
                      });
  }
  /// Waits until the server has handled everything the tenant has sent.
  void wait_until_seen(TestTenant& tenant) {
    cancel(tenant, "unknown");
    run_until(io, [&] { return tenant.answers.contains("cancel unknown"); });
    CHECK(tenant.answers.at("cancel unknown").error().code == Errc::UnknownRequest);
    tenant.answers.erase("cancel unknown");
  }
  /// Parses the waiting requests and returns how many there were.
  std::size_t parse() {
    parser.restart();
    const std::size_t n = parser.poll();
    io.restart();
    io.poll();
    return n;
  }
  void start_engine() {
    engine = std::thread([this] { loop.run(); });
  }

  std::filesystem::path directory = std::filesystem::temp_directory_path() /
                                    ("leasehold-server-test-" + std::to_string(::getpid()));
  EngineRig rig{{.limits = {.max_adapter_rank = 4}}};
  LeaseId lease = rig.grant("ann");
  LeaseId bobs_lease = rig.grant("bob");
  Result<ChatTemplate> no_chat = fail(Errc::UnsupportedModel, "no template");
  RequestMetrics metrics;
  boost::asio::io_context io, parser;
  std::optional<boost::asio::local::stream_protocol::acceptor> broker_socket;
  std::unique_ptr<BrokerLink> broker;
  std::optional<TenantServer> server;
  EngineLoop loop{
      rig.engine(),
      {.on_report = [this](StepReport report) { server->deliver(std::move(report.events)); },
       .on_growth = [](auto) {},
       .on_drained = [](auto) {},
       .on_weights_lost = [](auto&) { return fail(Errc::MissingWeight, "never lost"); }}};
  std::thread engine;
};

}  // namespace leasehold::testing
