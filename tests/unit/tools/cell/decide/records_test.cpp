// The values of a cell's keys, and their names.
#include <catch2/catch.hpp>

#include "tools/cell/decide/cell_keys.hpp"
#include "tools/cell/decide/records.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using Catch::Contains;

namespace {

const CellKeys kCellKeys(CellName{"c"});

}  // namespace

TEST_CASE("records: wrong values are named, and unknown fields are ignored") {
  const auto problem = [](const std::string& value) {
    const auto read = read_config(kCellKeys.config(), value);
    REQUIRE(!read);
    CHECK_THAT(read.error().detail, Contains("/leasehold/c/config"));
    return read.error().detail;
  };
  CHECK(read_config("k", text_of(CellConfig{.ttl_ms = 0})).value().ttl_ms == 0);
  CHECK(read_config("k", R"({"version":1,"ttl_ms":5000,"slack_ms":500,"new":1})"));
  CHECK_THAT(problem(R"({"version":2,"ttl_ms":5000,"slack_ms":500})"), Contains("version"));
  CHECK_THAT(problem(R"({"version":1,"ttl_ms":500,"slack_ms":500})"), Contains("ttl_ms is 500"));
  CHECK_THAT(problem(R"({"version":1,"ttl_ms":"5 s","slack_ms":500})"), Contains("ttl_ms"));
}

TEST_CASE("records: a beat leaves out the models that do not fit, and says so") {
  HostRecord host{.beat = {7},
                  .ttl_ms = 30'000,
                  .doors = {"http://10.0.0.5:8080", "unix:/run/w2"},
                  .free_blocks = 12,
                  .is_draining = true,
                  .audit_head = "17:" + std::string(32, 'a')};
  CHECK(read_host("k", text_of(host).value()).value() == host);
  CHECK(fitted(host) == host);
  for (int i = 0; i < 20; ++i)
    host.models.push_back(
        {"model " + std::to_string(i),
         TextIdentity::parse("sha256:" + std::string(64, '1') + "/int8/f16/1").value()});
  const auto text = text_of(host);
  REQUIRE(!text);
  CHECK(text.error().code == Errc::MessageTooLarge);
  const HostRecord announced = read_host("k", text_of(fitted(host)).value()).value();
  CHECK(announced.has_more_models);
  REQUIRE(announced.models.size() == 2);
  CHECK(announced.models.front().name == "model 0");
}

TEST_CASE("keys: names in keys are read only from keys of their kind") {
  CHECK(kCellKeys.host_in("/leasehold/c/hosts/h1") == HostName{"h1"});
  CHECK(!kCellKeys.host_in("/leasehold/d/hosts/h1"));
  CHECK(!kCellKeys.host_in("/leasehold/c/hosts/a/b"));
  CHECK(kCellKeys.tenant_in_mail(HostName{"h1"}, "/leasehold/c/mail/h1/ann") == TenantId{"ann"});
  CHECK(!kCellKeys.tenant_in_mail(HostName{"h1"}, "/leasehold/c/mail/h12/ann"));
}
