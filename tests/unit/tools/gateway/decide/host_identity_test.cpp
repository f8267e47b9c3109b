// Models that hosts serve under one name and compute differently.
#include <catch2/catch.hpp>

#include "tools/gateway/decide/host_identity.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

constexpr TimePoint kReported{1'000'000'000};
const std::string kServed = "sha256:" + std::string(64, '1') + "/int8/f16/5;context=512";
const std::string kServedF32 = "sha256:" + std::string(64, '1') + "/f32/f16/5;context=512";
const std::string kServedLonger = "sha256:" + std::string(64, '1') + "/int8/f16/5;context=1024";

/// Hosts of the model "m" with these identities.
HostTable hosts_of(const std::vector<std::string>& identities) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < identities.size(); ++i)
    addresses.push_back("h" + std::to_string(i) + ":1");
  HostTable hosts = *HostTable::create(addresses, std::chrono::seconds(1));
  for (std::size_t i = 0; i < identities.size(); ++i)
    hosts.reported(HostId{i},
                   {.name = "h", .models = {{"m", identities[i]}}, .ready = true, .code = ""},
                   kReported);
  return hosts;
}

std::vector<std::string> differences(const HostTable& hosts, TimePoint now = kReported) {
  return identity_differences(hosts, served_identities(hosts, now));
}

}  // namespace

TEST_CASE("host identity: hosts that compute alike, or do not say how, differ in nothing") {
  const HostTable hosts = hosts_of({kServed, "", kServed});
  CHECK(differences(hosts).empty());
  CHECK(count_ambiguous(served_identities(hosts, kReported)) == 0);
}

TEST_CASE("host identity: each further identity is named with its hosts and what differs") {
  const HostTable hosts = hosts_of({kServed, kServedF32, kServedF32, kServedLonger});
  const auto found = differences(hosts);
  REQUIRE(found.size() == 2);
  CHECK(found[0].starts_with("host h1:1 computes the model 'm' otherwise than host h0:1: "));
  CHECK(found[0].contains("the arithmetic is f32 and not int8"));
  CHECK(found[1].contains("host h3:1"));
  CHECK(found[1].contains("context=1024"));
  CHECK(count_ambiguous(served_identities(hosts, kReported)) == 1);
}

TEST_CASE("host identity: hosts that are silent or have left the list do not count") {
  HostTable hosts = hosts_of({kServed, kServedF32});
  CHECK(differences(hosts).size() == 1);
  CHECK(differences(hosts, kReported + std::chrono::seconds(2)).empty());
  REQUIRE(hosts.set_list({"h1:1"}));
  CHECK(differences(hosts).empty());
}

TEST_CASE("host identity: an identity of another form is shown as it is") {
  const auto found = differences(hosts_of({kServed, "other\x1b[2J"}));
  REQUIRE(found.size() == 1);
  CHECK(found[0].contains("its identity is other"));
  CHECK_FALSE(found[0].contains('\x1b'));
}
