// Which worker a lease is on when workers serve several models, or compute one in several ways.
#include <catch2/catch.hpp>

#include "tests/unit/broker/world.hpp"

namespace leasehold::models {
namespace {

using Catch::Matchers::Contains;

constexpr ConnectionId kOtherSocket{11};
constexpr ConnectionId kThirdSocket{12};

TextIdentity identity(char content, const std::string& arithmetic = "int8",
                      const std::string& kv_type = "f16", std::uint32_t version = 1) {
  return {.content = std::string(64, content),
          .arithmetic = arithmetic,
          .kv_type = kv_type,
          .version = version};
}

/// w1 serves model a and holds a lease; w2 serves model b and holds none.
struct ModelWorld : World {
  explicit ModelWorld(std::optional<TextIdentity> first = identity('a'),
                      std::optional<TextIdentity> second = identity('b')) {
    admit_tenant("t");
    attach("w1", kWorkerSocket, "a", first);
    attach("w2", kOtherSocket, "b", second);
    lease = answer<wire::LeaseAcquired>(ask({.worker = "w1"})).lease;
  }
  AttachmentId attach(const std::string& name, ConnectionId socket, const std::string& model,
                      const std::optional<TextIdentity>& text, std::uint32_t context = 4096,
                      std::vector<std::string> aliases = {}) {
    const CallId attached = call(socket, wire::WorkerAttach{.worker = name});
    call(socket, wire::WorkerReady{.address = "/run/" + name,
                                   .model = model,
                                   .aliases = std::move(aliases),
                                   .kv_block_size_bytes = kTestBlockBytes,
                                   .text_identity = text,
                                   .max_context = context});
    return std::get<WorkerDescriptors>(answers.at(attached)->descriptors).worker;
  }
  CallId ask(wire::LeaseAcquire acquire) {
    acquire.tenant = {"t"};
    acquire.blocks = 8;
    return call(kHolder, acquire);
  }
  std::string worker_of(CallId call) { return answer<wire::LeaseAcquired>(call).worker; }
  std::string why(CallId call) { return error_of(call).detail; }
  CallId replace_worker(bool any_arithmetic = false) {
    return call(kOperator,
                wire::WorkerReplace{.worker = "w1", .by = "w2", .any_arithmetic = any_arithmetic});
  }
  LeaseId lease;
};

ModelName model(const std::string& text) {
  return ModelName::parse(text).value();
}

}  // namespace

TEST_CASE("models: a lease that replaces another one stays on its model") {
  ModelWorld world;
  world.revoke(world.lease);

  CHECK(world.worker_of(world.ask({.replaces = world.lease})) == "w1");
}

TEST_CASE("models: a text continues on its identity only, whatever leases workers hold") {
  ModelWorld world;

  CHECK(world.worker_of(world.ask({.text_identity = identity('a')})) == "w1");
  const TextIdentity other =
      GENERATE(identity('c'), identity('a', "f32"), identity('a', "int8", "q8_0"),
               identity('a', "int8", "f16", 2));
  const CallId refused = world.ask({.text_identity = other});
  CHECK(world.refusal(refused) == Errc::UnknownWorker);
  CHECK_THAT(world.why(refused), Contains("on worker w1 the"));
  CHECK_THAT(world.why(refused), Contains("on worker w2 the content of the model is"));
}

TEST_CASE("models: a new text names its model where workers serve several") {
  ModelWorld world;

  const CallId open = world.ask({});
  CHECK(world.refusal(open) == Errc::BadRequest);
  CHECK_THAT(world.why(open), Contains("a (sha256:aaaaaaaaaaaa), b (sha256:bbbbbbbbbbbb)"));
  CHECK_THAT(world.why(open), Contains("--model"));
  CHECK(world.worker_of(world.ask({.model = model("a")})) == "w1");
  CHECK(world.worker_of(world.ask({.model = model("sha256:aaaaaaaa")})) == "w1");
  CHECK(world.worker_of(world.ask({.worker = "w2"})) == "w2");
}

TEST_CASE(
    "models: a copy of the same content is the same model, and the emptier worker serves it") {
  ModelWorld world(identity('a'), identity('a'));

  CHECK(world.worker_of(world.ask({})) == "w2");
}

TEST_CASE("models: two files of one name are two models") {
  ModelWorld world;
  world.attach("w3", kThirdSocket, "a", identity('c'));

  const CallId open = world.ask({.model = model("a")});
  CHECK(world.refusal(open) == Errc::BadRequest);
  CHECK_THAT(world.why(open), Contains("a (sha256:cccccccccccc)"));
  CHECK(world.worker_of(world.ask({.model = model("sha256:cccccccc")})) == "w3");
}

TEST_CASE("models: an alias reaches its worker, and copies under several names are one model") {
  ModelWorld world;
  world.attach("w3", kThirdSocket, "c", identity('a'), 4096, {"chat", "org/c"});

  CHECK(world.worker_of(world.ask({.model = model("chat")})) == "w3");
  CHECK(world.worker_of(world.ask({.worker = "w3", .model = model("org/c")})) == "w3");
  CHECK(world.worker_of(world.ask({.model = model("sha256:aaaaaaaa")})) != "w2");
  CHECK(world.worker_of(world.ask({.model = model("a")})) == "w1");
  CHECK(world.refusal(world.ask({.worker = "w2", .model = model("chat")})) == Errc::UnknownWorker);
}

TEST_CASE("models: a named worker that serves another model is refused") {
  ModelWorld world;
  const CallId by_model = world.ask({.worker = "w2", .model = model("a")});
  const CallId by_text = world.ask({.worker = "w2", .text_identity = identity('a')});

  CHECK(world.refusal(by_model) == Errc::UnknownWorker);
  CHECK_THAT(world.why(by_model), Contains("worker w2 serves b (sha256:bbbbbbbbbbbb)"));
  CHECK(world.refusal(by_text) == Errc::UnknownWorker);
}

TEST_CASE("models: a model that no worker serves is refused with what is served") {
  ModelWorld world;
  const CallId refused = world.ask({.model = model("c")});

  CHECK(world.refusal(refused) == Errc::UnknownWorker);
  CHECK_THAT(world.why(refused), Contains("no ready worker serves model c"));
  CHECK_THAT(world.why(refused), Contains("worker w2 serves b"));
}

TEST_CASE("models: the refusal is retryable while a worker that serves it may come") {
  ModelWorld world;
  SECTION("because it has ended and may be started again") {
    world.post(ConnectionClosed{kWorkerSocket});
    CHECK(world.refusal(world.ask({.text_identity = identity('a')})) == Errc::NoModelLoaded);
  }
  SECTION("because a worker loads its model") {
    world.call(kThirdSocket, wire::WorkerAttach{.worker = "w3"});
    CHECK(world.refusal(world.ask({.model = model("c")})) == Errc::NoModelLoaded);
  }
  SECTION("but not once another one has its name") {
    world.post(ConnectionClosed{kWorkerSocket});
    world.attach("w1", kThirdSocket, "b", identity('b'));
    CHECK(world.refusal(world.ask({.text_identity = identity('a')})) == Errc::UnknownWorker);
  }
}

TEST_CASE("models: workers of an earlier version serve a model by its name") {
  ModelWorld world(std::nullopt, std::nullopt);

  CHECK(world.refusal(world.ask({})) == Errc::BadRequest);
  CHECK(world.worker_of(world.ask({.model = model("a")})) == "w1");
  CHECK(world.worker_of(world.ask({.replaces = world.lease})) == "w1");
  CHECK(world.refusal(world.ask({.text_identity = identity('a')})) == Errc::UnknownWorker);
}

TEST_CASE("models: a text continues where its context fits") {
  ModelWorld world(identity('a'), identity('c'));
  world.attach("w3", kThirdSocket, "a", identity('a'), 300);

  CHECK(world.worker_of(world.ask({.text_identity = identity('a')})) == "w3");
  CHECK(world.worker_of(world.ask({.text_identity = identity('a'), .min_context = 301})) == "w1");
  const CallId refused = world.ask({.text_identity = identity('a'), .min_context = 5000});
  CHECK(world.refusal(refused) == Errc::UnknownWorker);
  CHECK_THAT(world.why(refused), Contains("worker w3 holds 300 tokens, and the text needs 5000"));
}

TEST_CASE("models: the lease says what its tokens depend on") {
  ModelWorld world;
  const auto acquired = world.answer<wire::LeaseAcquired>(world.ask({.worker = "w2"}));

  CHECK(acquired.text_identity == identity('b'));
  CHECK(acquired.max_context == 4096);
}

TEST_CASE("worker replace: a copy of the same content takes over, and another content never") {
  {
    ModelWorld copy(identity('a'), identity('a'));
    copy.answer<wire::LeasesTouched>(copy.replace_worker());
  }
  const bool any_arithmetic = GENERATE(false, true);
  ModelWorld other;
  const CallId refused = other.replace_worker(any_arithmetic);
  CHECK(other.refusal(refused) == Errc::BadRequest);
  CHECK_THAT(other.why(refused), Contains("sha256:bbbbbbbbbbbb"));
}

TEST_CASE("worker replace: another arithmetic, KV cache or version takes over only when allowed") {
  const TextIdentity other = GENERATE(identity('a', "f32"), identity('a', "int8", "q8_0"),
                                      identity('a', "int8", "f16", 2));
  ModelWorld world(identity('a'), other);

  CHECK(world.refusal(world.replace_worker()) == Errc::BadRequest);
  world.answer<wire::LeasesTouched>(world.replace_worker(true));
  CHECK(
      world.refusal(world.call(
          kHolder, wire::LeaseReplace{.lease = world.lease, .mode = wire::RebindMode::Failover})) ==
      Errc::IllegalTransition);
}

TEST_CASE("worker replace: a worker with a smaller context is refused with both numbers") {
  ModelWorld world(identity('a'), std::nullopt);
  world.post(ConnectionClosed{kOtherSocket});
  world.attach("w2", kThirdSocket, "a", identity('a'), 300);

  const CallId refused = world.replace_worker();

  CHECK(world.refusal(refused) == Errc::BadRequest);
  CHECK_THAT(world.why(refused), Contains("4096") && Contains("300"));
}

}  // namespace leasehold::models
