// The verbs of `keys`, and `usage`.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/unit/tools/brokerctl/fake_broker.hpp"
#include "tools/brokerctl/audit.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

template <class Verb>
Verb key_verb(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  INFO((arguments ? "" : arguments.error().text));
  REQUIRE(arguments);
  return std::get<Verb>(arguments->verb);
}

std::string refusal_of(const std::vector<std::string>& words) {
  const auto arguments = parse_arguments(words);
  REQUIRE_FALSE(arguments);
  CHECK(arguments.error().exit_code == 2);
  return arguments.error().text;
}

Result<void> run_key_verb(FakeBroker& broker, Verb verb, Output output = Output::Table) {
  return run({.output = output, .verb = std::move(verb)}, broker.dependencies());
}

const std::string kId = "0011223344556677";

}  // namespace

TEST_CASE("brokerctl keys: create takes a name, an expiry and limits") {
  const auto create =
      key_verb<CreateKey>({"keys", "create", "--tenant", "A", "--name", "ci", "--expires-in", "30d",
                           "--max-concurrent", "2", "--tokens-per-minute", "3",
                           "--requests-per-minute", "4", "--tokens-per-day", "1000000000000"});
  CHECK(create.message.tenant == TenantId{"A"});
  CHECK(create.message.name == "ci");
  CHECK(create.expires_in_ms == std::int64_t{30} * 86'400'000);
  CHECK(create.message.limits.max_concurrent == 2u);
  CHECK(create.message.limits.rates == wire::RateLimits{3, 4, 1'000'000'000'000});
  const auto plain = key_verb<CreateKey>({"keys", "create", "--tenant", "A"});
  CHECK_FALSE(plain.expires_in_ms);
  CHECK_FALSE(plain.message.expires_unix_ms);
  CHECK(plain.message.limits.rates == wire::RateLimits{});
}

TEST_CASE("brokerctl keys: update changes only what is given") {
  const auto at = key_verb<UpdateKey>({"keys", "update", kId, "--expires-at", "1970-01-02"});
  CHECK(at.message.key == ApiKeyId{kId});
  CHECK(at.message.expires_unix_ms == 86'400'000);
  CHECK_FALSE(at.message.name);
  CHECK(key_verb<UpdateKey>({"keys", "update", kId, "--no-expiry"}).message.never_expires);
  CHECK(key_verb<UpdateKey>({"keys", "update", kId, "--name", "b"}).message.name == "b");
}

TEST_CASE("brokerctl keys: a wrong value is named before the broker is called") {
  const auto refused = [](const std::string& option, const std::string& value) {
    return refusal_of({"keys", "create", "--tenant", "A", option, value});
  };
  for (const char* text : {"30", "d", "-1d", "0d", "1.5h", "30 d", "9999999999d"})
    CHECK_THAT(refused("--expires-in", text), Catch::Contains("is not a time such as 45m"));
  CHECK_THAT(refused("--expires-at", "2027-02-30"), Catch::Contains("'2027-02-30' is neither"));
  CHECK_THAT(refused("--name", "a\x07z"), Catch::Contains("--name"));
  CHECK_THAT(refused("--name", "a b"), Catch::Contains("'a b' is not a name"));
  for (const char* option :
       {"--max-concurrent", "--tokens-per-minute", "--requests-per-minute", "--tokens-per-day"}) {
    for (const char* value : {"-1", "0", "9999999999999", "many"})
      CHECK_THAT(refused(option, value), Catch::Contains(option));
  }
  refusal_of({"keys", "update", kId, "--expires-in", "1d", "--no-expiry"});
  refusal_of({"keys", "update", kId, "--expires-in", "1d", "--expires-at", "2027-01-01"});
  refusal_of({"keys", "update"});
  CHECK_THAT(refusal_of({"usage", "--key", "ci"}), Catch::Contains("'ci' is not the id of a key"));
}

TEST_CASE("brokerctl keys: the list shows name, expiry, last use and, wide, the limits") {
  FakeBroker broker;
  broker.replies["key.list"] = {
      items<wire::KeyView>({{.key = {kId},
                             .tenant = {"acme"},
                             .name = "ci",
                             .created_unix_ms = 1'000,
                             .expires_unix_ms = 86'400'000,
                             .expired = true,
                             .last_used_unix_ms = 60'000,
                             .tokens_today = 77,
                             .limits = {.max_concurrent = 3, .rates = {.tokens_per_day = 999}}}})};
  REQUIRE(run_key_verb(broker, ListKeys{}, Output::Wide));
  for (const char* word : {"ci", "1970-01-02T00:00:00Z, expired", "1970-01-01T00:01Z ", " 77 ",
                           "1970-01-01T00:00:01Z", " 3 ", " 999"})
    CHECK_THAT(broker.out.str(), Catch::Contains(word));
}

TEST_CASE("brokerctl keys: the list may be of one tenant, which must exist") {
  CHECK(key_verb<ListKeys>({"keys", "--tenant", "acme"}).tenant == TenantId{"acme"});
  FakeBroker broker;
  broker.replies["key.list"] = {items<wire::KeyView>(
      {{.key = {kId}, .tenant = {"acme"}}, {.key = {"ff00"}, .tenant = {"other"}}})};
  REQUIRE(run_key_verb(broker, ListKeys{.tenant = TenantId{"other"}}, Output::Name));
  CHECK(broker.out.str() == "ff00\n");
  broker.replies["tenant.list"] = {items<wire::TenantView>({})};
  CHECK(run_key_verb(broker, ListKeys{.tenant = TenantId{"none"}}, Output::Name).error().code ==
        Errc::UnknownTenant);
}

TEST_CASE("brokerctl keys: update changes something, and none removes a limit") {
  const wire::KeyUpdate update = key_verb<UpdateKey>({"keys", "update", kId, "--tokens-per-day",
                                                      "none", "--max-concurrent", "3"})
                                     .message;
  CHECK(update.removes == std::vector<std::string>{"tokens_per_day"});
  CHECK(update.limits.max_concurrent == 3);
  CHECK_FALSE(update.limits.rates.tokens_per_day);
  CHECK_THAT(refusal_of({"keys", "update", kId}), Catch::Contains("nothing to change"));
}

TEST_CASE("brokerctl keys: an expiry counts from the call, and update prints the key") {
  FakeBroker broker;
  const wire::KeyView view{.key = {kId}, .tenant = {"acme"}, .name = "ci"};
  broker.replies["key.update"] = {view.to_json()};
  REQUIRE(run_key_verb(broker, UpdateKey{.message = {.key = {kId}}, .expires_in_ms = 60'000},
                       Output::Json));
  CHECK(broker.calls.at(0).second.at("expires_unix_ms") > 1'700'000'000'000);
  CHECK(wire::Json::parse(broker.out.str()) == view.to_json());
}

TEST_CASE("brokerctl usage: adds up finished requests by tenant and key") {
  FakeBroker broker;
  std::vector<wire::AuditRecordView> records;
  audit::Link head;
  const auto add = [&](const char* tenant, const char* key, int generated, int at_ms) {
    wire::Json fields{{"record", generated == 0 ? "revocation" : "usage_record"},
                      {"tenant", tenant},
                      {"at_unix_ms", at_ms},
                      {"prompt_tokens", 10},
                      {"cached_tokens", 4},
                      {"generated_tokens", generated}};
    if (*key != '\0') fields["key"] = key;
    const auto record = audit::next_record(head, fields);
    records.push_back(
        {.sequence = record.sequence, .content = record.content, .hash = record.hash});
    head = {record.sequence, record.hash};
  };
  add("alice", kId.c_str(), 1, 1'000);
  add("alice", kId.c_str(), 2, 2'000);
  add("alice", "", 4, 3'000);
  add("bob", "", 8, 4'000);
  add("bob", "", 0, 5'000);
  const auto sums = [&](const ShowUsage& request) {
    const auto page = [&](std::vector<wire::AuditRecordView> part) {
      return wire::AuditPage{.records = std::move(part),
                             .removed_hash = std::string(64, '0'),
                             .head_sequence = head.sequence,
                             .head_hash = head.hash}
          .to_json();
    };
    broker.replies["audit.list"] = {page(records), page({})};
    broker.out.str("");
    REQUIRE(run_key_verb(broker, request, Output::Json));
    return wire::Json::parse(broker.out.str()).at("items");
  };
  const wire::Json all = sums({});
  REQUIRE(all.size() == 3);
  CHECK(all[0] == wire::Json{{"tenant", "alice"},
                             {"requests", 1},
                             {"prompt_tokens", 10},
                             {"cached_tokens", 4},
                             {"generated_tokens", 4}});
  CHECK(all[1] == wire::Json{{"tenant", "alice"},
                             {"key", kId},
                             {"requests", 2},
                             {"prompt_tokens", 20},
                             {"cached_tokens", 8},
                             {"generated_tokens", 3}});
  CHECK(all[2].at("generated_tokens") == 8);
  CHECK(sums({.key = ApiKeyId{kId}}).size() == 1);
  CHECK(sums({.tenant = TenantId{"bob"}}).at(0).at("requests") == 1);
  CHECK(sums({.since_unix_ms = 2'000}).at(1).at("generated_tokens") == 2);
  broker.replies["audit.list"] = {fail(Errc::BadRequest, "start it with --state-dir")};
  CHECK(run_key_verb(broker, ShowUsage{}).error().code == Errc::BadRequest);
}
