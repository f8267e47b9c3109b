// Keys that are created: printed, revoked, or neither.
#include "tools/brokerctl/changes/key_calls.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "ipc/control/tokens/api_key.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/tools/brokerctl/fake_broker.hpp"
#include "tools/brokerctl/run.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

Result<void> create(FakeBroker& broker, CreateKey key, Output output = Output::Table) {
  return run({.output = output, .verb = std::move(key)}, broker.dependencies());
}

}  // namespace

TEST_CASE("brokerctl: a key that stdout does not accept is revoked") {
  FakeBroker broker;
  broker.replies["key.create"] = {wire::Empty{}.to_json()};
  const bool is_revoked = GENERATE(true, false);
  if (is_revoked) broker.replies["key.revoke"] = {wire::LeasesTouched{}.to_json()};
  broker.out.setstate(std::ios::badbit);

  const auto created = create(broker, CreateKey{.message = {.tenant = {"bob"}}});

  REQUIRE_FALSE(created);
  CHECK(created.error().code == Errc::DiskFull);
  REQUIRE(broker.calls.size() == 2);
  const std::string hash = broker.calls[0].second.at("hash");
  CHECK(broker.calls[1].second.at("key") == hash.substr(0, 16));
  CHECK(created.error().detail.contains("keys revoke") == !is_revoked);
}

TEST_CASE("brokerctl: a key whose reply is lost is revoked, or the error has the command for it") {
  FakeBroker broker;
  const Errc why = GENERATE(Errc::TimedOut, Errc::ConnectionLost);
  broker.replies["key.create"] = {fail(why, "no reply")};
  const Errc answer = GENERATE(Errc::BadRequest, Errc::ConnectionLost);
  broker.replies["key.revoke"] = {fail(answer, "the answer to the revocation")};

  const auto created = create(broker, CreateKey{.message = {.tenant = {"bob"}}});

  REQUIRE_FALSE(created);
  CHECK(created.error().code == why);
  CHECK(created.error().detail.contains("no reply"));
  REQUIRE(broker.calls.size() == 2);
  const std::string id = std::string(broker.calls[0].second.at("hash")).substr(0, 16);
  CHECK(broker.calls[1].second.at("key") == id);
  CHECK(created.error().detail.contains("keys revoke " + id) == (answer != Errc::BadRequest));
}

TEST_CASE("brokerctl: a key that the broker refuses is not revoked") {
  FakeBroker broker;
  broker.replies["key.create"] = {fail(Errc::UnknownTenant, "no tenant bob")};
  const auto created = create(broker, CreateKey{.message = {.tenant = {"bob"}}});
  REQUIRE_FALSE(created);
  CHECK(created.error() == Error{Errc::UnknownTenant, "no tenant bob"});
  CHECK(broker.calls.size() == 1);
}

TEST_CASE("brokerctl: a key from a file is neither printed nor revoked") {
  const std::string key = mint_api_key();
  const std::string id = api_key_id(hash_of_api_key(key)).value;
  const auto directory = TemporaryDirectory::create("key").value();
  std::ofstream(directory.file("key")) << key << "\n";
  FakeBroker broker;
  const CreateKey from_file{.message = {.tenant = {"bob"}}, .key_file = directory.file("key")};
  for (const Output output : {Output::Table, Output::Json}) {
    broker.replies["key.create"] = {wire::Empty{}.to_json()};
    broker.out.str("");
    REQUIRE(create(broker, from_file, output));
    CHECK(std::string(broker.calls.back().second.at("hash")).starts_with(id));
    CHECK(broker.out.str().contains(id));
    CHECK_FALSE(broker.out.str().contains(key));
  }
  broker.replies["key.create"] = {fail(Errc::TimedOut, "no reply")};
  const auto lost = create(broker, from_file);
  REQUIRE_FALSE(lost);
  CHECK(lost.error() == Error{Errc::TimedOut, "no reply"});
  broker.replies["key.create"] = {wire::Empty{}.to_json()};
  broker.out.setstate(std::ios::badbit);
  CHECK(create(broker, from_file));
  CHECK(broker.calls.back().first == "key.create");
}
