// A tenant server parses, submits and cancels requests, and answers them.
#include "tests/unit/worker/serve/server_fixture.hpp"

namespace leasehold::testing {

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
  CHECK(fixture.metrics.refused_count(Errc::Draining) == 2);
  CHECK(fixture.parse() == 1);
}

}  // namespace leasehold::testing
