#include "tools/tenant/printer.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace leasehold;
using namespace leasehold::client;
using namespace leasehold::tenant;

TEST_CASE("tenant printer: each event is one JSON object with name and boot time") {
  const auto json = to_json(
      TokenArrived{.lease = {1, 2}, .token = {.token = 7, .position = 3, .text = " fox"}}, {42});

  CHECK(json == wire::Json{{"event", "token"},
                           {"at_boottime_ns", 42},
                           {"lease", "1.2"},
                           {"position", 3},
                           {"token", 7},
                           {"text", " fox"}});
}

TEST_CASE("tenant printer: the event names are fixed") {
  const wire::RequestCompleted completed{.reason = "Revoked", .lease = LeaseId{1, 1}};

  CHECK(to_json(Acquired{}, {})["event"] == "acquired");
  CHECK(to_json(Submitted{}, {})["event"] == "submitted");
  CHECK(to_json(Interrupted{.completed = completed}, {})["event"] == "revoked");
  CHECK(to_json(Rebound{}, {})["event"] == "rebound");
  CHECK(to_json(Retrying{}, {})["event"] == "retry");
  CHECK(to_json(BrokerDisconnected{}, {})["event"] == "broker_lost");
  CHECK(to_json(Ended{.reason = "EndOfSequence"}, {})["event"] == "completed");
  CHECK(to_json(Ended{.cached_tokens = 16}, {})["cached_tokens"] == 16);
  CHECK(to_json(Ended{.error = Error{Errc::LeaseRevoked, ""}}, {})["code"] == "LeaseRevoked");
}

TEST_CASE("tenant printer: adopted blocks are announced with the lease that they come from") {
  std::ostringstream out, notes;
  print_text(Acquired{.lease = {1, 2}, .replaces = LeaseId{1, 1}, .adopted_blocks = 8}, {out},
             notes);
  CHECK(notes.str() == "leasehold-tenant: lease 1.2 adopted 8 blocks of lease 1.1\n");
  notes.str("");
  print_text(Acquired{.lease = {1, 2}, .adopted_blocks = 8}, {out}, notes);  // says only the broker
  CHECK(notes.str().empty());
}

TEST_CASE("tenant printer: a text that continues in another arithmetic is announced") {
  const Rebound rebound{
      .old_lease = {1, 1}, .new_lease = {1, 2}, .delivered_tokens = 5, .other_arithmetic = "int8"};
  std::ostringstream out, notes;
  print_text(rebound, {out}, notes);
  CHECK(notes.str() ==
        "leasehold-tenant: lease 1.1 ended after 5 tokens; continuing under lease 1.2 "
        "(reprefill, new lease after 0 ms)\n"
        "leasehold-tenant: the text is computed again in int8; its tokens may differ from here "
        "on\n");
  CHECK(to_json(rebound, {})["other_arithmetic"] == "int8");
  CHECK_FALSE(to_json(Rebound{}, {}).contains("other_arithmetic"));
}

TEST_CASE("tenant printer: both formats list what the worker does not check") {
  const Submitted submitted{.unchecked = {"#: 'not'", "#/a\x1b: 'if'"}, .unchecked_omitted = 3};
  std::ostringstream out, notes;
  print_text(submitted, {out}, notes);
  CHECK(out.str().empty());
  CHECK(notes.str() ==
        "leasehold-tenant: not checked: #: 'not'\n"
        "leasehold-tenant: not checked: #/a : 'if'\n"
        "leasehold-tenant: not checked: 3 more\n");
  const auto json = to_json(submitted, {});
  CHECK(json["unchecked"] == submitted.unchecked);
  CHECK(json["unchecked_omitted"] == 3);
  CHECK_FALSE(to_json(Submitted{}, {}).contains("unchecked"));
}

TEST_CASE("tenant printer: partial text stays on stdout, the reason goes to stderr") {
  std::ostringstream out, notes;
  print_text(TokenArrived{.token = {.text = "Once"}}, {out}, notes);
  print_text(Ended{.error = Error{Errc::LeaseRevoked, "lease 1.1 is over"}, .delivered_tokens = 1},
             {out}, notes);

  CHECK(out.str() == "Once\n");
  CHECK(notes.str().starts_with("leasehold-tenant: lease 1.1 is over (LeaseRevoked); next: "));
}

TEST_CASE("tenant printer: generated text cannot control a terminal, a file gets every byte") {
  const std::string text =
      "a\x1b[2Jb\tc\n\xC2\x9B"
      "d\xC3\xA9";
  std::ostringstream terminal, file, notes;
  print_text(TokenArrived{.token = {.text = text}}, {terminal, true}, notes);
  print_text(TokenArrived{.token = {.text = text}}, {file, false}, notes);

  CHECK(terminal.str() == "a [2Jb\tc\n d\xC3\xA9");
  CHECK(file.str() == text);
}

TEST_CASE("tenant printer: both formats show the scope of a failure") {
  const Error engine{Errc::WeightsLoading, "part blk.1 is being restored"};
  const Error tenant{Errc::OutOfBlocks, "0 free"};
  CHECK(to_json(Retrying{.error = engine}, {})["scope"] == "engine");
  CHECK(to_json(Ended{.error = engine}, {})["scope"] == "engine");
  CHECK(to_json(Ended{.error = tenant}, {})["scope"] == "tenant");
  for (const auto& [error, shown] : {std::pair(engine, true), std::pair(tenant, false)}) {
    std::ostringstream out;
    std::ostringstream retry;
    std::ostringstream ended;
    print_text(Retrying{.error = error}, {out}, retry);
    print_text(Ended{.error = error}, {out}, ended);
    CHECK((retry.str().find("engine scope") != std::string::npos) == shown);
    CHECK((ended.str().find("engine scope") != std::string::npos) == shown);
  }
}

TEST_CASE("tenant printer: a failure of engine scope is not blamed on a worker that there is not") {
  std::ostringstream out, notes;
  print_text(Ended{.error = Error{Errc::NoModelLoaded, "no worker is ready"}}, {out}, notes);
  CHECK_THAT(notes.str(),
             Catch::Contains("concerns every tenant") && !Catch::Contains("this worker"));
}

TEST_CASE("tenant printer: both formats show that the context is full") {
  const Ended ended{.reason = "MaxTokensReached",
                    .delivered_tokens = 3,
                    .note = "the model's context of 8 tokens is full"};
  std::ostringstream out;
  std::ostringstream notes;

  print_text(ended, {out}, notes);

  CHECK(notes.str().find("context of 8 tokens is full") != std::string::npos);
  CHECK(to_json(ended, {})["note"] == ended.note);
  CHECK_FALSE(to_json(Ended{.reason = "MaxTokensReached"}, {}).contains("note"));
}
