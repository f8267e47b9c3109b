// Adapters as models: the names that a key sees, and the answer for any other name.
#include <boost/asio/co_spawn.hpp>

#include "tests/unit/worker/http/server_case.hpp"
#include "worker/http/api/embeddings.hpp"

namespace leasehold::http::adapter_case {
namespace {

using namespace server_case;

/// "ann" has an adapter, and all tenants have the shared one.
struct Adapters {
  std::atomic<int> asked = 0;
  std::atomic<bool> is_lost = false;
  TestServer server{{.list_adapters = [this](const TenantId& tenant, AdapterModels::OnListed done) {
    ++asked;
    if (is_lost) return done(fail(Errc::BrokerLost, "the broker is disconnected"));
    AdapterModels::Adapters adapters{{{"shared"}, 1}};
    if (tenant.value == "ann")
      adapters.insert(adapters.begin(), wire::VisibleAdapter{{"ann-tuned"}, 2});
    done(std::move(adapters));
  }}};

  std::string get(const std::string& path, const std::string& key) {
    return server.ask(request("GET", path, as(key)));
  }
  std::vector<std::string> models(const std::string& key) {
    std::vector<std::string> ids;
    for (const auto& entry : list(key)) ids.push_back(entry["id"]);
    return ids;
  }
  nlohmann::json list(const std::string& key) {
    const std::string reply = get("/v1/models", key);
    return nlohmann::json::parse(reply.substr(reply.find("\r\n\r\n") + 4))["data"];
  }
};

/// The reply without the head fields that differ in each, and with the name replaced.
std::string refusal_of(std::string reply, const std::string& name) {
  std::string body = reply.substr(reply.find("\r\n\r\n"));
  if (const auto at = body.find(name); at != std::string::npos) body.replace(at, name.size(), "?");
  return reply.substr(0, reply.find("\r\n")) + body;
}

using Names = std::vector<std::string>;

const ApiModel kModel{.name = "model",
                      .aliases = {"alias"},
                      .adapters = {{{"alias"}, 1}, {{"tuned"}, 3}},
                      .max_context = 256};

}  // namespace

TEST_CASE("http adapters: a key lists the model, its tenant's adapters and shared ones") {
  Adapters adapters;
  CHECK(adapters.models("ann") == Names{"model", "alias", "ann-tuned", "shared"});
  CHECK(adapters.models("bob") == Names{"model", "alias", "shared"});
  for (const auto& entry : adapters.list("ann")) {
    const bool is_adapter = entry["id"] == "ann-tuned" || entry["id"] == "shared";
    CHECK(entry.value("parent", "") == (is_adapter ? "model" : ""));
  }
}

TEST_CASE("http adapters: another tenant's adapter gets the answer of a name that does not exist") {
  Adapters adapters;
  CHECK(adapters.get("/v1/models/ann-tuned", "ann").contains(R"("parent":"model")"));
  const std::string foreign = refusal_of(adapters.get("/v1/models/ann-tuned", "bob"), "ann-tuned");
  CHECK(foreign.starts_with("HTTP/1.1 404"));
  CHECK(foreign == refusal_of(adapters.get("/v1/models/no-such-one", "bob"), "no-such-one"));
  const auto complete = [&](const std::string& name) {
    return refusal_of(adapters.server.ask(request("POST", "/v1/completions", as("bob"),
                                                  R"({"prompt":"a","model":")" + name + R"("})")),
                      name);
  };
  CHECK(complete("ann-tuned").starts_with("HTTP/1.1 404"));
  CHECK(complete("ann-tuned") == complete("no-such-one"));
}

TEST_CASE("http adapters: the broker is asked once for a tenant, and again after a change") {
  Adapters adapters;
  for (int i = 0; i < 3; ++i) (void)adapters.models("ann");
  CHECK(adapters.asked == 1);
  (void)adapters.models("bob");
  CHECK(adapters.asked == 2);
  adapters.server.server().forget_adapters();
  (void)adapters.models("ann");
  CHECK(adapters.asked == 3);
}

TEST_CASE("http adapters: requests of a tenant share one question to the broker") {
  boost::asio::io_context io;
  const ApiModel base{.name = "model"};
  std::vector<AdapterModels::OnListed> asked;
  AdapterModels models(io, base, [&](const TenantId&, AdapterModels::OnListed done) {
    asked.push_back(std::move(done));
  });
  std::vector<AdapterModels::Model> seen;
  const auto see = [&] {
    boost::asio::co_spawn(io, models.of({"ann"}), [&](const std::exception_ptr&, auto model) {
      seen.push_back(std::move(model));
    });
    io.restart();
    io.poll();
  };
  for (int i = 0; i < 3; ++i) see();
  REQUIRE(asked.size() == 1);
  models.forget();
  see();  // an answer from before the change is not its answer
  REQUIRE(asked.size() == 2);
  asked[0](AdapterModels::Adapters{{{"old"}, 1}});
  io.poll();
  REQUIRE(seen.size() == 3);
  for (const auto& model : seen) CHECK(is_adapter(*model, "old"));
  asked[1](AdapterModels::Adapters{{{"new"}, 1}});
  io.poll();
  REQUIRE(seen.size() == 4);
  CHECK(is_adapter(*seen[3], "new"));
  see();
  CHECK(asked.size() == 2);
  CHECK(seen.at(4) == seen[3]);
}

TEST_CASE("http adapters: without the broker a name that may be an adapter's is not unknown") {
  Adapters adapters;
  adapters.is_lost = true;
  CHECK(adapters.get("/v1/models/shared", "ann").starts_with("HTTP/1.1 503"));
  CHECK(adapters.get("/v1/models/alias", "ann").starts_with("HTTP/1.1 200"));
  adapters.is_lost = false;  // and the failure is not kept
  CHECK(adapters.get("/v1/models/shared", "ann").starts_with("HTTP/1.1 200"));
}

TEST_CASE("http adapters: a body that names an adapter asks the worker for it, in every API") {
  for (const Api api : {Api::Completions, Api::Chat, Api::Responses, Api::Messages}) {
    const auto read = [api](const std::string& model) {
      const std::string prompt = api == Api::Completions ? R"("prompt":"a")"
                                 : api == Api::Responses
                                     ? R"("input":"a")"
                                     : R"("messages":[{"role":"user","content":"a"}])";
      return parse_api_request(api, "{" + prompt + R"(,"max_tokens":4,"model":")" + model + R"("})",
                               kModel);
    };
    const auto adapted = read("tuned");
    REQUIRE(adapted);
    CHECK(adapted->model == "tuned");
    CHECK(adapted->submit.adapter == "tuned");
    CHECK(how_computed(*adapted, kModel) == full_identity(kModel) + ";adapter=tuned@3");
    // A name of the model is the model, whatever an adapter is called.
    for (const char* base : {"model", "alias"})
      CHECK(how_computed(*read(base), kModel) == full_identity(kModel));
    CHECK(read("other").error().code == "model_not_found");
  }
}

TEST_CASE("http adapters: a choice goes on under the version that the gateway names") {
  ApiRequest request{.model = "tuned", .emitted = {{1}, {2}}, .emitted_adapters = {"", "aa"}};
  request.n = 3;
  request.submit.sampling.logprobs = GENERATE(true, false);  // then they are generated again
  CHECK(submission_of(request, 0).adapter_digest.empty());
  CHECK(submission_of(request, 1).adapter_digest == "aa");
  CHECK(submission_of(request, 1).emitted.empty() == request.submit.sampling.logprobs);
  CHECK(submission_of(request, 2).adapter_digest.empty());
}

TEST_CASE("http adapters: embeddings under an adapter are refused") {
  const auto refused =
      parse_embeddings_request(R"({"input":"a","model":"tuned"})", kModel, RequestDefaults{});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().error.code == Errc::BadRequest);
  CHECK(refused.error().error.detail.contains("makes no embeddings"));
}

}  // namespace leasehold::http::adapter_case
