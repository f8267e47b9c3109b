// A text continues with the model, the arithmetic and the room that it began with.
#include <catch2/catch.hpp>

#include "tests/unit/ipc/client/fake_world.hpp"

namespace leasehold::client::identities {
namespace {

using namespace std::chrono_literals;

std::string identity(char content, const std::string& arithmetic = "int8") {
  return to_string(TextIdentity{
      .content = std::string(64, content), .arithmetic = arithmetic, .kv_type = "f16"});
}

/// The broker grants lease 1.1 on the first identity and later ones on the second.
void grant(World& world, const std::string& first, const std::string& second) {
  auto& grants = world.broker.answers["lease.acquire"];
  for (std::size_t i = 0; i < grants.size(); ++i) {
    (*grants[i])["text_identity"] = i == 0 ? first : second;
    (*grants[i])["max_context"] = 4096;
  }
}

void revoke_after(World& world, int tokens) {
  world.stream(true);
  world.emit(0, tokens);
  world.revoke({1, 1});
  world.timers.advance(0ns);
}

void run_until_submitted_again(World& world) {
  world.run_until([&] { return world.reported<Submitted>().size() == 2; });
}

wire::Json second_acquire(const World& world) {
  return world.broker.calls("lease.acquire").at(1);
}

}  // namespace

TEST_CASE("rebind: a text asks for the identity and the context that it began with") {
  World world;
  world.model = ModelName::parse("tiny").value();
  grant(world, identity('a'), identity('a'));
  revoke_after(world, 5);
  run_until_submitted_again(world);

  const wire::Json first = world.broker.calls("lease.acquire").at(0);
  CHECK(first.at("model") == "tiny");
  CHECK_FALSE(first.contains("text_identity"));
  CHECK(second_acquire(world).at("text_identity") == identity('a'));
  CHECK(second_acquire(world).at("min_context") == 104);  // 4 of the prompt and 100 of the text
}

TEST_CASE("rebind: a text never goes on in another model") {
  World world;
  world.any_arithmetic = GENERATE(false, true);
  grant(world, identity('a'), identity('b'));
  revoke_after(world, 5);

  const Ended ended = world.end();

  REQUIRE(ended.error);
  CHECK(ended.error->code == Errc::UnknownWorker);
  CHECK(ended.error->detail.contains("the content of the model is sha256:bbbbbbbbbbbb"));
  CHECK(world.worker.calls("request.submit").size() == 1);
}

TEST_CASE("rebind: a text goes on neither in another arithmetic nor with keys of another type") {
  World world;
  const TextIdentity other_keys{
      .content = std::string(64, 'a'), .arithmetic = "int8", .kv_type = "q8_0"};
  const auto granted = GENERATE_COPY(identity('a', "f32"), to_string(other_keys));
  grant(world, identity('a'), granted);
  revoke_after(world, 5);

  const Ended ended = world.end();

  REQUIRE(ended.error);
  CHECK(ended.error->code == Errc::UnknownWorker);
  CHECK(ended.error->detail.contains("--any-arithmetic"));
  CHECK(world.worker.calls("request.submit").size() == 1);
}

TEST_CASE("rebind: with any_arithmetic a text asks for its content only") {
  World world;
  world.any_arithmetic = true;
  grant(world, identity('a'), identity('a', "f32"));
  revoke_after(world, 5);
  run_until_submitted_again(world);

  CHECK(second_acquire(world).at("model") == "sha256:" + std::string(64, 'a'));
  CHECK_FALSE(second_acquire(world).contains("text_identity"));
}

TEST_CASE("rebind: before its first token a text keeps its model, and no more") {
  World world;
  grant(world, identity('a'), identity('a', "f32"));
  revoke_after(world, 0);
  run_until_submitted_again(world);

  CHECK(second_acquire(world).at("model") == "sha256:" + std::string(64, 'a'));
}

TEST_CASE("rebind: a text does not go on where its rest does not fit") {
  World world;
  grant(world, identity('a'), identity('a'));
  (*world.broker.answers["lease.acquire"][1])["max_context"] = 103;
  revoke_after(world, 5);

  const Ended ended = world.end();

  REQUIRE(ended.error);
  CHECK(ended.error->code == Errc::PromptTooLong);
  CHECK(ended.error->detail.contains("104"));
  CHECK(ended.error->detail.contains("103"));
  CHECK(ended.reason.empty());
}

TEST_CASE("resume: tokens of an earlier process go on under their identity only") {
  World world;
  world.text_identity = TextIdentity::parse(identity('a')).value();
  world.request.emitted = {token_at(0)};
  grant(world, identity('b'), identity('b'));
  world.start(true);

  const Ended ended = world.end();

  CHECK(world.broker.calls("lease.acquire").at(0).at("text_identity") == identity('a'));
  REQUIRE(ended.error);
  CHECK(ended.error->code == Errc::UnknownWorker);
  CHECK(world.worker.calls("request.submit").empty());
}

}  // namespace leasehold::client::identities
