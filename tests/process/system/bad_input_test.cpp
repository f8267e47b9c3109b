/// Broker and worker answer invalid input with a typed error and keep serving others.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/random.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/support/raw_socket.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

using control::Client;
using control::Json;

Errc code_of(const Result<control::Payload>& reply) {
  REQUIRE_FALSE(reply.has_value());
  return reply.error().code;
}

/// A lease and the connection of its holder.
struct Holder {
  Client broker;
  wire::LeaseAcquired lease;
  Client worker;
};

Holder hold(const System& system, const std::string& tenant) {
  Client broker = Client::connect(system.broker_socket()).value();
  const auto lease = acquire(broker, tenant);
  Client worker = connect_to_worker(lease);
  return {std::move(broker), lease, std::move(worker)};
}

Json generate(const Holder& holder) {
  return wire::RequestSubmit{.token = holder.lease.token,
                             .request_id = {mint_request_id()},
                             .prompt = "Once upon a time",
                             .max_emitted_tokens = 4}
      .to_json();
}

/// Sends raw bytes and reads one line of reply; empty when the peer closes the connection.
std::string ask_raw(const std::string& socket_path, const std::string& bytes) {
  const UniqueFd fd = connect_raw(socket_path);
  REQUIRE(fd);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;
    sent += static_cast<std::size_t>(n);
  }
  std::string answer;
  char byte = 0;
  while (::read(fd.get(), &byte, 1) == 1 && byte != '\n') answer += byte;
  return answer;
}

std::string raw_code(const std::string& answer) {
  const Json json = Json::parse(answer, nullptr, false);
  return json.is_object() ? json["error"]["data"]["code"].get<std::string>() : answer;
}

void check_still_serves(System& system) {
  CHECK(system.undisturbed({.tenant = "ann", .max_tokens = 8}).size() == 8);
}

}  // namespace

TEST_CASE("bad input: broker and worker answer malformed lines with a typed error") {
  System system({.tenants = {"ann"}});
  for (const std::string& socket : {system.broker_socket(), system.worker_socket("w1")}) {
    CAPTURE(socket);
    CHECK(raw_code(ask_raw(socket, "this is not JSON\n")) == "MalformedMessage");
    CHECK(raw_code(ask_raw(socket, std::string(4'000, '[') + "\n")) == "MalformedMessage");
    CHECK(raw_code(ask_raw(socket, std::string(10 << 20, 'x') + "\n")) == "MessageTooLarge");
    CHECK(raw_code(ask_raw(socket, R"({"jsonrpc":"2.0","id":1,"method":"no.such"})"
                                   "\n")) == "UnknownMethod");
  }
  check_still_serves(system);
}

TEST_CASE("bad input: the worker refuses requests it cannot serve, each with its reason") {
  System system({.tenants = {"ann"}});
  Holder holder = hold(system, "ann");
  const auto ask = [&](const char* field, const Json& value) {
    Json body = generate(holder);
    body[field] = value;
    return code_of(holder.worker.call("request.submit", {.body = body}));
  };
  CHECK(ask("messages", Json::array({{{"role", "user"}, {"content", "Hi"}}})) == Errc::BadRequest);
  CHECK(ask("prompt", "") == Errc::BadRequest);
  std::string endless;
  for (int i = 0; i < 2000; ++i) endless += "once upon a time ";
  CHECK(ask("prompt", endless) == Errc::PromptTooLong);
  CHECK(ask("token", holder.lease.token + "0") == Errc::BadToken);
  CHECK(ask("token", "v1:1.1:ann:00") == Errc::BadToken);
  CHECK(ask("max_emitted_tokens", -1) == Errc::BadRequest);
  CHECK(ask("prompt_logprobs", 21) == Errc::BadRequest);
  CHECK(ask("received_prompt_positions", 1000) == Errc::BadRequest);
  CHECK(ask("sampling", {{"temperature", "nan"}, {"seed", 0}}) == Errc::BadRequest);
  CHECK(ask("sampling", {{"temperature", -1.0}, {"seed", 0}}) == Errc::BadRequest);
  CHECK(ask("sampling", {{"temperature", nullptr}, {"seed", 0}}) == Errc::BadRequest);
  CHECK(ask("emitted", Json::array({99'999})) == Errc::BadRequest);
  Json both = generate(holder);
  both["prompt_tokens"] = Json::array({1, 2});
  CHECK(code_of(holder.worker.call("request.submit", {.body = both})) == Errc::BadRequest);
  Json nan = generate(holder);
  const std::string line =
      R"({"jsonrpc":"2.0","id":1,"method":"request.submit","params":)" + nan.dump();
  CHECK(raw_code(ask_raw(system.worker_socket("w1"), line.substr(0, line.size() - 1) +
                                                         R"(,"sampling":{"temperature":NaN}}})"
                                                         "\n")) == "MalformedMessage");
  CHECK(holder.worker.call("request.submit", {.body = generate(holder)}));
  check_still_serves(system);
}

TEST_CASE("bad input: the error names the sampling field that is invalid") {
  System system({.tenants = {"ann"}});
  Holder holder = hold(system, "ann");
  const auto schema = [](Json asked) {
    return Json{{"type", "json_schema"}, {"json_schema", {{"schema", std::move(asked)}}}};
  };
  const std::pair<const char*, Json> kWrong[] = {
      {"temperature", 100.5},
      {"temperature", "nan"},
      {"seed", -1},
      {"top_k", -1},
      {"top_p", 1.5},
      {"top_p", nullptr},
      {"min_p", -0.5},
      {"typical_p", 2},
      {"repetition_penalty", 0},
      {"presence_penalty", 2.5},
      {"frequency_penalty", -2.5},
      {"penalty_window", -1},
      {"logit_bias", {{"99999", 1}}},
      {"logit_bias", {{"3", 100.5}}},
      {"logit_bias", {{"three", 1}}},
      {"stop", std::string(257, 'x')},
      {"stop", ""},
      {"stop", Json(std::vector<std::string>(65, "x"))},
      {"stop_token_ids", Json::array({99'999})},
      {"stop_token_ids", Json(std::vector<int>(65, 3))},
      {"logprobs", 5},
      {"top_logprobs", 3},  // without logprobs
      {"response_format", {{"type", "xml"}}},
      {"response_format", {{"type", "json_schema"}}},
      {"response_format.json_schema.schema",
       {{"type", "json_schema"}, {"json_schema", {{"strict", false}}}}},
      {"response_format.json_schema.strict",
       {{"type", "json_schema"}, {"json_schema", {{"schema", "{}"}, {"strict", "no"}}}}},
      {"response_format.json_schema.strict",
       {{"type", "json_object"}, {"json_schema", {{"strict", false}}}}},
      {"#/properties/age", schema({{"properties", {{"age", {{"uniqueItems", true}}}}}})},
      {"uniqueItems", schema({{"properties", {{"age", {{"uniqueItems", true}}}}}})},
      {"grammar", std::string(40'000, ' ') + R"(root ::= "x")"},
      {"root", "root ::= root"},
      {"line 2", "root ::= a\na ::= ("},
  };
  for (const auto& [named, value] : kWrong) {
    CAPTURE(named, value.dump());
    const bool is_format = value.is_object() && value.contains("type");
    const bool is_grammar = value.is_string() && value.get<std::string>().contains("::=");
    const char* const field = is_format ? "response_format" : is_grammar ? "grammar" : named;
    Json body = generate(holder);
    body["sampling"][field] = value;
    const auto reply = holder.worker.call("request.submit", {.body = body});
    CHECK(code_of(reply) == Errc::BadRequest);
    CHECK_THAT(reply.error().detail, Catch::Contains(named));
  }
  Json many = generate(holder);
  many["sampling"] = {{"temperature", 0.0}, {"seed", 0}, {"logprobs", true}, {"top_logprobs", 21}};
  CHECK_THAT(holder.worker.call("request.submit", {.body = many}).error().detail,
             Catch::Contains("top_logprobs"));
  Json endless = generate(holder);
  endless["ignore_eos"] = true;
  endless["sampling"] = {
      {"temperature", 0.0}, {"seed", 0}, {"response_format", {{"type", "json_object"}}}};
  CHECK_THAT(holder.worker.call("request.submit", {.body = endless}).error().detail,
             Catch::Contains("ignore_eos"));
  check_still_serves(system);
}

TEST_CASE("bad input: ended, old and foreign leases are refused") {
  System system({.tenants = {"ann"}});
  system.admit("small", {"--max-blocks", "102"});
  Holder holder = hold(system, "ann");
  const std::string lease = to_string(holder.lease.lease);
  CHECK(system.brokerctl({"revoke", lease}) == 0);
  REQUIRE(system.eventually_fenced(holder.lease.lease));
  CHECK(system.brokerctl({"revoke", lease}) == exit_code(Errc::LeaseFenced));
  const Errc later = code_of(holder.worker.call("request.submit", {.body = generate(holder)}));
  CHECK(later == Errc::LeaseFenced);
  const Errc renewed = code_of(holder.broker.call(
      "lease.renew",
      {.body =
           wire::LeaseRenew{.lease = holder.lease.lease, .request_id = {"renew-1"}}.to_json()}));
  CHECK(renewed == Errc::LeaseFenced);
  const LeaseId older{holder.lease.lease.slot, holder.lease.lease.generation};
  CHECK(system.brokerctl({"revoke", "4000.1"}) == exit_code(Errc::UnknownLease));
  CHECK(system.brokerctl({"revoke", "nonsense"}) != 0);
  // The slot is in use again, so the old generation is refused.
  for (int i = 0; i < 8; ++i) {
    Holder again = hold(system, "ann");
    if (again.lease.lease.slot != older.slot) continue;
    CHECK(system.brokerctl({"revoke", to_string(older)}) == exit_code(Errc::StaleGeneration));
    break;
  }
  Holder small = hold(system, "small");
  const wire::LeaseGrow grow{
      .lease = small.lease.lease, .extents = 4, .request_id = {mint_request_id()}};
  CHECK(code_of(small.broker.call("lease.grow", {.body = grow.to_json()})) == Errc::QuotaBlocks);
  const wire::LeaseAcquire stranger{.tenant = {"unknown"}, .request_id = {mint_request_id()}};
  CHECK(code_of(small.broker.call("lease.acquire", {.body = stranger.to_json()})) ==
        Errc::UnknownTenant);
  check_still_serves(system);
}

TEST_CASE(
    "bad input: a repeated request id gives the same answer, or a conflict for other parameters") {
  System system({.tenants = {"ann"}});
  Client broker = Client::connect(system.broker_socket()).value();
  wire::LeaseAcquire ask{.tenant = {"ann"}, .request_id = {"twice"}};
  const auto first = broker.call("lease.acquire", {.body = ask.to_json()});
  const auto second = broker.call("lease.acquire", {.body = ask.to_json()});
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->body == second->body);
  CHECK(system.leases_of("ann").size() == 1);
  ask.blocks = 7;
  CHECK(code_of(broker.call("lease.acquire", {.body = ask.to_json()})) == Errc::RequestIdConflict);
}

TEST_CASE("bad input: a socket in use, an invalid model and a missing broker are errors") {
  System system;
  const auto run = [&](std::vector<std::string> argv) {
    argv.front() = program_path(argv.front());
    auto child =
        Child::start({.argv = argv, .log_path = (system.directory() / "extra.log").string()});
    REQUIRE(child);
    return exit_status_of(*child);
  };
  const std::string own_source = source_dir() + "/CMakeLists.txt";
  const std::string nowhere = system.directory() / "none.sock";
  CHECK(run({"leasehold-broker", "--socket", system.broker_socket()}) ==
        exit_code(Errc::SocketInUse));
  CHECK(run({"leasehold-worker", "--broker", system.broker_socket(), "--model", own_source,
             "--listen", nowhere}) == exit_code(Errc::FileCorrupt));
  CHECK(run({"leasehold-worker", "--broker", system.broker_socket(), "--model", "/none.gguf",
             "--listen", nowhere}) == exit_code(Errc::FileNotFound));
  // The heads of the bundled model have 16 elements.
  CHECK(run({"leasehold-worker", "--broker", system.broker_socket(), "--model",
             bundled_model_path(), "--listen", nowhere, "--kv-type", "q8_0"}) ==
        exit_code(Errc::BadRequest));
  CHECK(run({"leasehold-worker", "--broker", nowhere, "--broker-timeout-ms", "0", "--model",
             bundled_model_path(), "--listen", system.directory() / "w.sock"}) ==
        exit_code(Errc::BrokerLost));
  CHECK(run({"leasehold-tenant", "--socket", nowhere, "--tenant", "ann", "--prompt", "x"}) ==
        exit_code(Errc::FileNotFound));
  CHECK(run({"leasehold-broker", "--capacity", "none"}) == 2);
  CHECK(run({"leasehold-worker"}) == 2);
  CHECK(run({"brokerctl", "--socket", nowhere, "status"}) == exit_code(Errc::FileNotFound));
  system.admit("ann");
  check_still_serves(system);
}

}  // namespace leasehold::testing
