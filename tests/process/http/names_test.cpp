// The names of a model and a chat template of the operator, with workers of one broker.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <stdexcept>

#include "ipc/control/tokens/api_key.hpp"
#include "tests/process/http/http_client.hpp"

namespace leasehold::testing {
namespace {

/// w1 serves the bundled model as "org/chat one" and "chat", w2 the same file as "story".
struct NamedSystem : System {
  NamedSystem() : System({.worker_arguments = {"--slow-motion-us", "30"}, .start_worker = false}) {
    start_ready_worker("w1", {}, serving("w1", {"--name-as", "org/chat one", "--name-as", "chat"}));
    start_ready_worker("w2", {}, serving("w2", {"--name-as", "story"}));
    admit("ann");
    view().command(wire::KeyCreate{.tenant = {"ann"}, .hash = hash_of_api_key(key)}).value();
  }
  std::vector<std::string> serving(const std::string& worker, std::vector<std::string> more) {
    more.insert(more.end(), {"--http", address_of(worker), "--http-idle-ttl-ms", "0"});
    return more;
  }
  std::string address_of(const std::string& worker) const {
    return (directory() / (worker + ".http")).string();
  }
  HttpReply send(const std::string& worker, const std::string& request) {
    HttpClient client(address_of(worker));
    client.write(request);
    return client.reply();
  }
  wire::WorkerView worker_view(const std::string& name) {
    const auto workers = view().workers().value();
    for (const wire::WorkerView& each : workers)
      if (each.worker == name) return each;
    throw std::runtime_error("no worker " + name);
  }
  int exit_of_worker(std::vector<std::string> more) {
    more.insert(more.begin(),
                {program_path("leasehold-worker"), "--broker", broker_socket(), "--model",
                 bundled_model_path(), "--listen", worker_socket("w9"), "--name", "w9"});
    auto child = Child::start({.argv = more, .log_path = (directory() / "w9.log").string()});
    REQUIRE(child);
    return exit_status_of(*child);
  }
  const std::string key = mint_api_key();
};

Json ids_of(const HttpReply& models) {
  Json ids = Json::array();
  const Json list = models.json();
  for (const Json& model : list["data"]) ids.push_back(model["id"]);
  return ids;
}

}  // namespace

TEST_CASE("names: each worker serves its own names, and not the name in the file") {
  NamedSystem system;
  CHECK(ids_of(system.send("w1", get("/v1/models", system.key))) ==
        Json::array({"org/chat one", "chat"}));
  CHECK(ids_of(system.send("w2", get("/v1/models", system.key))) == Json::array({"story"}));
  const auto one = system.send("w1", get("/v1/models/org/chat%20one", system.key));
  CHECK(one.status == 200);
  CHECK(one.json()["id"] == "org/chat one");
  for (const char* path : {"/v1/models/Leasehold%20Stories", "/v1/models/story"}) {
    const auto unknown = system.send("w1", get(path, system.key));
    CHECK(unknown.status == 404);
    CHECK(unknown.json()["error"]["code"] == "model_not_found");
  }
  Json body{{"prompt", "Once"}, {"max_tokens", 1}};
  const auto answer = [&] { return system.send("w1", post("/v1/completions", system.key, body)); };
  CHECK(answer().json()["model"] == "org/chat one");
  body["model"] = "chat";
  CHECK(answer().json()["model"] == "chat");
  body["model"] = "Leasehold Stories";
  CHECK(answer().status == 404);
  CHECK(system.worker_view("w1").model == "org/chat one");
  CHECK(system.worker_view("w1").aliases == std::vector<std::string>{"chat"});
}

TEST_CASE("names: a tenant reaches a model by its names, and its text moves by the content") {
  NamedSystem system;
  const TenantSpec spec{.tenant = "ann", .rebind = true, .more = {"--model", "story"}};
  const auto tokens = system.undisturbed(spec);
  auto running = system.start_streaming(spec, 3);
  CHECK(system.leases_of("ann").back().worker == "w2");
  CHECK(system.brokerctl({"worker", "replace", "w2", "w1"}) == 0);
  check_whole(*running, tokens);
  CHECK(system.undisturbed({.tenant = "ann", .more = {"--model", "chat"}}) == tokens);
  CHECK(
      system.start_tenant({.tenant = "ann", .more = {"--model", "Leasehold Stories"}})->finish() ==
      exit_code(Errc::UnknownWorker));
}

TEST_CASE("names: a chat template of the operator is the one of the prompts, or an error") {
  NamedSystem system;
  const std::string path = system.directory() / "chat.jinja";
  std::ofstream(path) << "{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}";
  system.start_ready_worker("w3", {},
                            system.serving("w3", {"--name-as", "own", "--chat-template", path}));
  const auto tokens = [&](const Json& body) {
    return system.send("w3", post("/tokenize", system.key, body)).json().at("tokens");
  };
  CHECK(tokens({{"messages", {{{"role", "user"}, {"content", "Hi"}}}}}) ==
        tokens({{"prompt", "[Hi]"}}));
  // A text would get another prompt there.
  CHECK(system.worker_view("w3").text_identity != system.worker_view("w1").text_identity);
  CHECK(system.brokerctl({"worker", "replace", "w1", "w3"}) == exit_code(Errc::BadRequest));

  std::ofstream(path) << "{{ messages }}\n{% include 'x' %}";
  CHECK(system.exit_of_worker({"--chat-template", path}) == exit_code(Errc::UnsupportedModel));
  std::ofstream(path) << std::string((1 << 20) + 1, 'a');
  CHECK(system.exit_of_worker({"--chat-template", path}) == exit_code(Errc::MessageTooLarge));
  CHECK(system.exit_of_worker({"--chat-template", path + "x"}) == exit_code(Errc::FileNotFound));
}

TEST_CASE("names: a gateway decides an answer's id, time and seed, and the template's time") {
  NamedSystem system;
  const std::string path = system.directory() / "chat.jinja";
  std::ofstream(path) << "{{ bos_token }}{{ strftime_now('%Y-%m-%d') }}";
  const std::string own_user = "uid:" + std::to_string(::getuid());
  system.start_ready_worker("w3", {},
                            system.serving("w3", {"--chat-template", path, "--host-name", "h3",
                                                  "--http-trusted-proxy", own_user}));
  const Json body{{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                  {"max_tokens", 8},
                  {"prompt_logprobs", 0}};
  const auto answer = [&](const std::string& created) {
    const std::string fields = "Leasehold-Created: " + created +
                               "\r\nLeasehold-Request: moved-1\r\nLeasehold-Moved-From: h1\r\n";
    return system.send("w3", post("/v1/chat/completions", system.key, body, fields));
  };
  const HttpReply at_zero = answer("0");
  REQUIRE(at_zero.status == 200);
  CHECK(at_zero.head.contains("\r\nLeasehold-Host: h3\r\n"));
  CHECK(at_zero.json()["id"] == "chatcmpl-moved-1");
  CHECK(at_zero.json()["created"] == 0);
  CHECK(answer("0").body == at_zero.body);  // the seed, too
  const HttpReply a_day_later = answer("86400");
  CHECK(a_day_later.json()["created"] == 86400);
  CHECK(a_day_later.json()["prompt_logprobs"] != at_zero.json()["prompt_logprobs"]);
  CHECK(system.worker_log("w3").contains(
      "HTTP request moved here tenant=ann request=moved-1 from=h1 "));
  CHECK(answer("yesterday").json()["error"]["param"] == "Leasehold-Created");

  const auto running = [&] {
    const Json host = system.send("w3", "GET /leasehold/host HTTP/1.1\r\nHost: h\r\n\r\n").json();
    CHECK(host["host"] == "h3");
    CHECK(host["ready"] == true);
    CHECK(at_zero.head.contains(host["models"][0]["identity"].get<std::string>()));
    return host["running"].get<int>();
  };
  HttpClient reader(system.address_of("w3"));
  Json endless{{"prompt", "Once"}, {"max_tokens", 450}, {"ignore_eos", true}, {"stream", true}};
  reader.write(post("/v1/completions", system.key, endless));
  CHECK(eventually([&] { return running() == 1; }));
  reader.close();
  CHECK(eventually([&] { return running() == 0; }));
}

TEST_CASE("names: tools work with a template that has none") {
  HttpSystem http;
  const std::string key = http.admit("ann");
  const Json schema = Json::parse(R"({"type":"object","properties":{"way":{"enum":["l","r"]}},
                                      "required":["way"],"additionalProperties":false})");
  const Json tool{{"type", "function"},
                  {"function", {{"name", "turn \"it\""}, {"parameters", schema}}}};
  Json body{{"messages", {{{"role", "user"}, {"content", "Go"}}}},
            {"tools", {tool}},
            {"tool_choice", "required"},
            {"seed", 1},
            {"max_tokens", 60}};
  const auto send = [&] { return http.send(post("/v1/chat/completions", key, body)); };
  const Json said = send().json()["choices"][0];
  CHECK(said["finish_reason"] == "tool_calls");
  const Json call = said["message"]["tool_calls"][0];
  CHECK(call["function"]["name"] == "turn \"it\"");
  CHECK(Json::parse(call["function"]["arguments"].get<std::string>()).contains("way"));

  body["messages"].push_back(said["message"]);
  body["messages"].push_back({{"role", "tool"}, {"tool_call_id", "unknown"}, {"content", "done"}});
  body["tool_choice"] = "auto";
  body["stream"] = true;
  body["max_tokens"] = 4;
  const auto events = send().events();
  REQUIRE(events.size() > 2);
  CHECK(events.back() == "[DONE]");
  body["tool_choice"] = "none";
  CHECK(send().status == 200);
  body["tool_choice"] = "auto";
  for (int i = 0; i < 63; ++i) body["tools"].push_back(tool);
  const HttpReply long_prompt = send();
  CHECK(long_prompt.status == 400);
  CHECK(long_prompt.json()["error"]["code"] == "context_length_exceeded");
}

}  // namespace leasehold::testing
