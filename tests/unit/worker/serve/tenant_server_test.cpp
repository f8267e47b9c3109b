// A tenant server with a whole engine. The test is the parser's thread: a request stays unparsed
// until the test calls `parse`.
#include "worker/serve/tenant_server.hpp"

#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/engine_rig.hpp"
#include "tests/unit/ipc/control/peer_fixture.hpp"

namespace leasehold::testing {
namespace {

using control::Payload;

struct Tenant {
  Tenant(boost::asio::io_context& io, const std::string& path)
      : peer(control::Peer::create(*control::connect_to(io, path), seen.handlers())) {
    peer->start();
  }
  bool has_ended() const {
    return !seen.notifications.empty() && seen.notifications.back().first == "request.completed";
  }

  RecordedCalls seen;
  std::string name = "ann";
  std::shared_ptr<control::Peer> peer;
  std::map<std::string, Result<Payload>> answers;  // by request
};

struct ServerFixture {
  ServerFixture() {
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
                                     .clock = &rig.clock()});
    server->serve(*TenantServer::listen(io, directory / "worker"));
  }
  ~ServerFixture() {
    loop.stop();
    if (engine.joinable()) engine.join();
    std::filesystem::remove_all(directory);
  }

  std::unique_ptr<Tenant> stranger() { return std::make_unique<Tenant>(io, directory / "worker"); }
  std::unique_ptr<Tenant> tenant(const std::string& name = "ann") {
    auto added = stranger();
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
  void generate(Tenant& tenant, const std::string& id, std::string prompt = "Once upon a time") {
    wire::RequestSubmit request{.token = token_of(tenant.name), .request_id = {id}};
    request.prompt = std::move(prompt);
    request.max_emitted_tokens = 4;
    call(tenant, id, std::string(wire::RequestSubmit::kMethod), request.to_json());
  }
  void cancel(Tenant& tenant, const std::string& id) {
    call(tenant, "cancel " + id, std::string(wire::RequestCancel::kMethod),
         wire::RequestCancel{.request_id = {id}}.to_json());
  }
  void call(Tenant& tenant, const std::string& name, const std::string& method, wire::Json body) {
    tenant.peer->call(method, {.body = std::move(body)}, [&tenant, name](Result<Payload> answer) {
      tenant.answers.emplace(name, std::move(answer));
    });
  }
  /// Waits until the server has handled everything the tenant has sent.
  void wait_until_seen(Tenant& tenant) {
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
  EngineRig rig;
  LeaseId lease = rig.grant("ann");
  LeaseId bobs_lease = rig.grant("bob");
  Result<ChatTemplate> no_chat = fail(Errc::UnsupportedModel, "no template");
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

}  // namespace

TEST_CASE("tenant server: while a request is parsed, the server answers calls and can cancel it") {
  ServerFixture fixture;
  const auto ann = fixture.tenant();
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  CHECK_FALSE(ann->answers.contains("r"));
  fixture.generate(*ann, "r");
  run_until(fixture.io, [&] { return ann->answers.contains("r"); });
  CHECK(ann->answers.at("r").error().code == Errc::BadRequest);  // the second one: its id is in use
  ann->answers.clear();
  fixture.cancel(*ann, "r");
  run_until(fixture.io, [&] { return ann->answers.contains("cancel r"); });
  CHECK(ann->answers.at("cancel r").has_value());

  CHECK(fixture.parse() == 1);
  fixture.start_engine();

  run_until(fixture.io, [&] { return ann->has_ended(); });
  CHECK(ann->seen.notifications.size() == 1);
  CHECK(ann->seen.notifications[0].second.body.at("reason") == "Cancelled");
}

TEST_CASE("tenant server: the reply to a lenient schema lists what is not checked") {
  ServerFixture fixture;
  const auto ann = fixture.tenant();
  fixture.start_engine();
  for (const bool strict : {true, false}) {
    const std::string id = strict ? "strict" : "lenient";
    wire::RequestSubmit request{.token = fixture.token_of("ann"), .request_id = {id}};
    request.prompt = "Once";
    request.max_emitted_tokens = 4;
    request.sampling.response_format = {"json_schema", R"({"type":"object","not":{}})", strict};
    fixture.call(*ann, id, std::string(wire::RequestSubmit::kMethod), request.to_json());
    fixture.wait_until_seen(*ann);
    CHECK(fixture.parse() == 1);
    run_until(fixture.io, [&] { return ann->answers.contains(id); });
  }
  CHECK_THAT(ann->answers.at("strict").error().detail, Catch::Contains("#: 'not'"));
  const auto submitted = wire::RequestSubmitted::from_json(ann->answers.at("lenient")->body);
  REQUIRE(submitted);
  CHECK(submitted->unchecked == std::vector<std::string>{"#: 'not'"});
  CHECK(submitted->unchecked_omitted == 0);
  run_until(fixture.io, [&] { return ann->has_ended(); });
}

TEST_CASE("tenant server: before a token a connection may call nothing and send no long line") {
  ServerFixture fixture;
  const auto stranger = fixture.stranger();
  fixture.generate(*stranger, "r");
  fixture.cancel(*stranger, "r");
  run_until(fixture.io, [&] { return stranger->answers.size() == 2; });
  CHECK(stranger->answers.at("r").error().code == Errc::BadToken);
  CHECK(stranger->answers.at("cancel r").error().code == Errc::BadToken);
  stranger->answers.clear();
  fixture.generate(*stranger, "long", std::string(5'000, 'a'));
  run_until(fixture.io, [&] { return fixture.server->is_closed(); });
  CHECK(fixture.parse() == 0);
}

TEST_CASE("tenant server: the error of a call that only brokers answer names the socket") {
  ServerFixture fixture;
  const auto stranger = fixture.stranger();
  fixture.call(*stranger, "status", "status", wire::Json::object());
  run_until(fixture.io, [&] { return stranger->answers.contains("status"); });
  const Error& error = stranger->answers.at("status").error();
  CHECK(error.code == Errc::UnknownMethod);
  CHECK_THAT(error.detail, Catch::Contains("this socket is a worker's"));
  CHECK_THAT(std::string(error_hint(error.code)), Catch::Contains("the socket"));
}

TEST_CASE("tenant server: a client that reads no answer loses its connection, whatever it calls") {
  const auto method = GENERATE(as<std::string>(), "status", wire::ConnectionAuthenticate::kMethod,
                               wire::RequestSubmit::kMethod, wire::RequestCancel::kMethod);
  CAPTURE(method);
  ServerFixture fixture;
  control::Socket mute = *control::connect_to(fixture.io, fixture.directory / "worker");
  mute.non_blocking(true);
  std::string unsent;
  const auto send = [&](const std::string& called, const wire::Json& params) {
    const wire::Json line{
        {"jsonrpc", "2.0"}, {"id", std::string(100, 'i')}, {"method", called}, {"params", params}};
    unsent += line.dump() + "\n";
    boost::system::error_code ignored;  // no room, or closed
    unsent.erase(0, boost::asio::write(mute, boost::asio::buffer(unsent), ignored));
    fixture.io.restart();
    fixture.io.poll();
  };
  const wire::ConnectionAuthenticate token{.token = fixture.token_of("ann")};
  send(std::string(token.kMethod), token.to_json());
  std::string first(4096, '\0');
  first.resize(mute.read_some(boost::asio::buffer(first)));
  send(method, {{"request_id", "unknown"}});
  first.resize(4096);
  const std::size_t answer_bytes = mute.read_some(boost::asio::buffer(first));
  boost::asio::socket_base::send_buffer_size kernel;  // as the server's
  mute.get_option(kernel);
  const std::size_t most = (kMaxUnreadOutputBytesPerConnection + kernel.value()) / answer_bytes + 2;

  for (std::size_t call = 0; call < most && !fixture.server->is_closed(); ++call) {
    fixture.rig.clock().advance(1ms);
    send(method, {{"request_id", "unknown"}});
  }
  CHECK(fixture.server->is_closed());
}

TEST_CASE("tenant server: a wrong token gets BadToken, and its connection is closed") {
  ServerFixture fixture;
  const auto stranger = fixture.stranger();
  const wire::ConnectionAuthenticate guess{.token = "v1:1.1:ann:00"};
  fixture.call(*stranger, "guess", std::string(guess.kMethod), guess.to_json());
  run_until(fixture.io,
            [&] { return stranger->answers.contains("guess") && fixture.server->is_closed(); });
  CHECK(stranger->answers.at("guess").error().code == Errc::BadToken);
}

TEST_CASE("tenant server: the token of an ended lease gets its typed error and no place") {
  ServerFixture fixture;
  std::vector<std::unique_ptr<Tenant>> strangers;
  const auto error_of_token = [&] {
    const auto& late = strangers.emplace_back(fixture.stranger());
    const wire::ConnectionAuthenticate message{.token = fixture.token_of("ann")};
    fixture.call(*late, "late", std::string(message.kMethod), message.to_json());
    run_until(fixture.io,
              [&] { return late->answers.contains("late") && fixture.server->is_closed(); });
    return late->answers.at("late").error().code;
  };
  fixture.rig.revoke(fixture.lease);
  CHECK(error_of_token() == Errc::LeaseRevoked);
  fixture.rig.fence(fixture.lease);
  CHECK(error_of_token() == Errc::LeaseFenced);
}

TEST_CASE("tenant server: a late submit on an open connection gets the typed error, unparsed") {
  ServerFixture fixture;
  const auto ann = fixture.tenant();
  fixture.rig.revoke(fixture.lease);
  fixture.generate(*ann, "r");
  run_until(fixture.io, [&] { return ann->answers.contains("r"); });
  CHECK(ann->answers.at("r").error().code == Errc::LeaseRevoked);
  fixture.rig.fence(fixture.lease);
  fixture.generate(*ann, "s");
  run_until(fixture.io, [&] { return ann->answers.contains("s"); });
  CHECK(ann->answers.at("s").error().code == Errc::LeaseFenced);
  CHECK(fixture.parse() == 0);
  fixture.lease = fixture.rig.grant("ann");
  fixture.generate(*ann, "t");
  fixture.wait_until_seen(*ann);
  CHECK(fixture.parse() == 1);
}

TEST_CASE("tenant server: a connection submits requests of its own tenant only") {
  ServerFixture fixture;
  const auto bob = fixture.tenant("bob");
  bob->name = "ann";
  fixture.generate(*bob, "r");
  run_until(fixture.io, [&] { return bob->answers.contains("r"); });
  CHECK(bob->answers.at("r").error().code == Errc::BadToken);
  CHECK_THAT(bob->answers.at("r").error().detail, Catch::Contains("belongs to tenant bob"));
}

TEST_CASE("tenant server: the parser takes one request of each tenant at a time") {
  ServerFixture fixture;
  fixture.start_engine();
  const auto ann = fixture.tenant(), ann_again = fixture.tenant(), bob = fixture.tenant("bob");
  for (const char* id : {"a1", "a2"}) fixture.generate(*ann, id);
  fixture.wait_until_seen(*ann);
  fixture.generate(*ann_again, "a3");
  fixture.wait_until_seen(*ann_again);
  fixture.generate(*bob, "b1");
  fixture.wait_until_seen(*bob);
  CHECK(fixture.parse() == 2);
  run_until(fixture.io, [&] { return ann->answers.contains("a1") && bob->answers.contains("b1"); });
  CHECK(ann->answers.size() == 1);
  CHECK(fixture.parse() == 1);
  CHECK(fixture.parse() == 1);
  run_until(fixture.io, [&] { return ann->answers.size() == 2 && ann_again->answers.size() == 1; });
  for (const auto& [id, answer] : ann->answers) CHECK(answer.has_value());
}

TEST_CASE("tenant server: a parsed request is dropped when its connection is closed") {
  ServerFixture fixture;
  fixture.start_engine();
  auto ann = fixture.tenant();
  fixture.generate(*ann, "r");
  fixture.generate(*ann, "s");
  fixture.wait_until_seen(*ann);
  ann->peer->close();
  run_until(fixture.io, [&] { return fixture.server->is_closed(); });
  CHECK(fixture.parse() == 1);
  CHECK(fixture.parse() == 0);
  const auto again = fixture.tenant();
  for (const char* id : {"r", "s"}) fixture.generate(*again, id);
  fixture.wait_until_seen(*again);
  CHECK(fixture.parse() == 1);
  CHECK(fixture.parse() == 1);
  run_until(fixture.io, [&] { return again->answers.size() == 2; });
  for (const auto& [id, answer] : again->answers) CHECK(answer.has_value());
}

TEST_CASE("tenant server: the unparsed bytes of a tenant are bounded over all its connections") {
  ServerFixture fixture;
  const auto ann = fixture.tenant(), ann_again = fixture.tenant(), bob = fixture.tenant("bob");
  const std::string prompt(900'000, 'a');
  for (const char* id : {"reading", "1", "2", "3", "more"}) fixture.generate(*ann, id, prompt);
  run_until(fixture.io, [&] { return ann->answers.contains("more"); });
  CHECK(ann->answers.size() == 1);
  CHECK(ann->answers.at("more").error().code == Errc::QueueFull);
  fixture.generate(*ann_again, "elsewhere");
  run_until(fixture.io, [&] { return ann_again->answers.contains("elsewhere"); });
  CHECK(ann_again->answers.at("elsewhere").error().code == Errc::QueueFull);
  fixture.generate(*bob, "b1");
  fixture.wait_until_seen(*bob);
  CHECK(bob->answers.empty());
  CHECK(fixture.parse() == 2);
  run_until(fixture.io, [&] { return ann->answers.contains("reading"); });
  CHECK(ann->answers.at("reading").error().code == Errc::PromptTooLong);
}

TEST_CASE("tenant server: a request that cannot be parsed gets its error, and the next is parsed") {
  ServerFixture fixture;
  fixture.start_engine();
  const auto ann = fixture.tenant();
  fixture.generate(*ann, "r", "");
  fixture.generate(*ann, "s");
  fixture.wait_until_seen(*ann);
  CHECK(fixture.parse() + fixture.parse() == 2);
  run_until(fixture.io, [&] { return ann->answers.size() == 2 && ann->has_ended(); });
  CHECK(ann->answers.at("r").error().code == Errc::BadRequest);
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  CHECK(fixture.parse() == 1);
  run_until(fixture.io,
            [&] { return ann->seen.notifications.back().second.body.at("request") == "r"; });
}

TEST_CASE("tenant server: a refusal that concerns every tenant says so") {
  ServerFixture fixture;
  const auto ann = fixture.tenant();
  fixture.server->set_broker_disconnected(true);
  fixture.generate(*ann, "r");
  run_until(fixture.io, [&] { return ann->answers.contains("r"); });
  CHECK(ann->answers.at("r").error().code == Errc::BrokerLost);
  CHECK(ann->answers.at("r").error().scope == FailureScope::Engine);
}

TEST_CASE("tenant server: a request under revoked weights is queued, and its end names the scope") {
  ServerFixture fixture;
  fixture.rig.revoke(fixture.rig.engine_lease());
  fixture.start_engine();
  const auto ann = fixture.tenant();
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  CHECK(fixture.parse() == 1);
  run_until(fixture.io, [&] { return ann->answers.contains("r") && ann->has_ended(); });
  CHECK(ann->answers.at("r").has_value());
  const auto& end = ann->seen.notifications.back().second.body;
  CHECK(end.at("reason") == "MissingWeight");  // the fixture restores nothing
  CHECK(end.at("scope") == "engine");
}

TEST_CASE("tenant server: a stream whose client does not read ends with QueueFull, others go on") {
  ServerFixture fixture;
  const auto bob = fixture.tenant("bob");
  fixture.generate(*bob, "b");
  boost::asio::io_context reader;  // the client's own; it reads nothing before this runs
  Tenant ann(reader, fixture.directory / "worker");
  fixture.call(ann, "authenticate", std::string(wire::ConnectionAuthenticate::kMethod),
               wire::ConnectionAuthenticate{.token = fixture.token_of("ann")}.to_json());
  fixture.generate(ann, "a");
  std::size_t parsed = 0;
  run_until(fixture.io, [&] { return (parsed += fixture.parse()) == 2; });
  constexpr std::uint32_t kTokens = 10'000;
  std::vector<SchedulerEvent> events;
  for (std::uint32_t position = 0; position < kTokens; ++position)
    events.push_back(Token{.engine_request_id = {"ann/a"}, .token = 5, .position = position});
  events.push_back(Token{.engine_request_id = {"bob/b"}, .token = 5, .position = 0});
  fixture.server->deliver(std::move(events));
  run_until(fixture.io, [&] { return !bob->seen.notifications.empty(); });
  fixture.server->deliver({Completed{.engine_request_id = {"ann/a"},
                                     .reason = CompletionReason::Cancelled,
                                     .emitted_tokens = kTokens}});
  while (!ann.has_ended()) {
    fixture.io.restart();
    fixture.io.poll();
    reader.restart();
    reader.poll();
  }
  const auto& end = ann.seen.notifications.back().second.body;
  CHECK(end.at("reason") == "QueueFull");
  CHECK_THAT(end.at("detail").get<std::string>(), Catch::Contains("read faster"));
  const auto delivered = ann.seen.notifications.size() - 1;
  CHECK(delivered < kTokens);
  CHECK(end.at("emitted_tokens") == delivered);
  CHECK(bob->seen.notifications.size() == 1);
}

TEST_CASE("tenant server: closing answers unparsed requests with Draining") {
  ServerFixture fixture;
  const auto ann = fixture.tenant();
  for (const char* id : {"r", "s"}) fixture.generate(*ann, id);
  fixture.wait_until_seen(*ann);
  fixture.server->close();
  run_until(fixture.io, [&] { return ann->answers.size() == 2; });
  for (const auto& [id, answer] : ann->answers) {
    CHECK(answer.error().code == Errc::Draining);
    CHECK(answer.error().scope == FailureScope::Engine);
  }
  CHECK(fixture.parse() == 1);
}

}  // namespace leasehold::testing
