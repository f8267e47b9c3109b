// Placement: rendezvous hashing with bounded loads, and the reasons why no host takes a request.
#include <catch2/catch.hpp>
#include <map>

#include "tools/gateway/decide/place.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

constexpr TimePoint kNow{1'000'000'000};
const std::string kDigits(64, '1');
const std::string kInt8 = "sha256:" + kDigits + "/int8/f16/1";
const std::string kF32 = "sha256:" + kDigits + "/f32/f16/1";
const std::string kOther = "sha256:" + std::string(64, '2') + "/int8/f16/1";

HostReport report(std::string identity = kInt8, std::uint32_t running = 0) {
  return {.name = "a",
          .models = {{"m", std::move(identity)}},
          .ready = true,
          .code = "",
          .running = running};
}

HostTable table(std::size_t count) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < count; ++i)
    addresses.push_back("10.0.0." + std::to_string(i) + ":80");
  HostTable hosts = *HostTable::create(addresses, std::chrono::seconds(1));
  for (std::size_t i = 0; i < count; ++i) hosts.reported(HostId{i}, report(), kNow);
  return hosts;
}

std::uint64_t placed(const HostTable& hosts, std::uint64_t digest) {
  return place(hosts, {.model = "m", .digest = digest}, kNow)->value;
}

Error refusal(const HostTable& hosts, const PlaceQuery& query) {
  const Result<HostId> host = place(hosts, query, kNow);
  REQUIRE_FALSE(host.has_value());
  return host.error();
}

}  // namespace

TEST_CASE("place: digests and weights are the same in every version") {
  CHECK(placement_digest("", "") == 0xAF63BD4C8601B7DFull);
  CHECK(placement_digest("key", "Once upon a time") == 0x4962E2127B717F69ull);
  CHECK(placement_weight(1, "10.0.0.1:80") == 0x7DC0D1C9228D2B22ull);
}

TEST_CASE("place: the key, its end and the first KiB of the prompt make the digest") {
  CHECK(placement_digest("ab", "c") != placement_digest("a", "bc"));
  const std::string long_prompt(kPlacedPromptBytes, 'x');
  CHECK(placement_digest("k", long_prompt + "y") == placement_digest("k", long_prompt + "z"));
  CHECK(placement_digest("k", "y" + long_prompt) != placement_digest("k", "z" + long_prompt));
}

TEST_CASE("place: the same request goes to the same host, different ones to all") {
  const HostTable hosts = table(5);
  std::map<std::uint64_t, int> counts;
  for (std::uint64_t digest = 0; digest < 1000; ++digest) {
    CHECK(placed(hosts, digest) == placed(hosts, digest));
    ++counts[placed(hosts, digest)];
  }
  REQUIRE(counts.size() == 5);
  for (const auto& [host, count] : counts) CHECK((count > 140 && count < 260));
}

TEST_CASE("place: without its host a request goes elsewhere, and the others stay") {
  HostTable hosts = table(5);
  std::vector<std::uint64_t> before;
  for (std::uint64_t digest = 0; digest < 200; ++digest) before.push_back(placed(hosts, digest));
  hosts.unreachable(HostId{2});
  for (std::uint64_t digest = 0; digest < 200; ++digest) {
    const std::uint64_t now = placed(hosts, digest);
    CHECK((before[digest] == 2 ? now != 2 : now == before[digest]));
  }
}

TEST_CASE("place: a host above 1.25 times the mean load is left out") {
  HostTable hosts = table(4);
  const std::uint64_t home = placed(hosts, 7);
  // With the request 21 on four hosts: at most ceil(1.25 * 5.25) = 7 on one.
  for (std::uint64_t i = 0; i < 4; ++i)
    hosts.reported(HostId{i}, report(kInt8, i == home ? 6 : 4), kNow);
  hosts.reported(HostId{(home + 1) % 4}, report(kInt8, 6), kNow);
  CHECK(placed(hosts, 7) == home);
  hosts.reported(HostId{home}, report(kInt8, 7), kNow);
  hosts.reported(HostId{(home + 1) % 4}, report(kInt8, 5), kNow);
  CHECK(placed(hosts, 7) != home);
}

TEST_CASE("place: every request finds a host, whatever the loads are") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    HostTable hosts = table(1 + seed % 5);
    for (std::uint64_t i = 0; i < hosts.size(); ++i)
      hosts.reported(HostId{i}, report(kInt8, static_cast<std::uint32_t>(seed * (i + 3) % 17)),
                     kNow);
    CHECK(place(hosts, {.model = "m", .digest = seed}, kNow).has_value());
  }
}

TEST_CASE("place: only hosts with the model and the identity are chosen") {
  HostTable hosts = table(3);
  hosts.reported(HostId{0}, report(kF32), kNow);
  hosts.reported(HostId{1}, report(kOther), kNow);
  hosts.reported(HostId{2}, {.name = "c", .models = {{"n", kInt8}}, .ready = true, .code = ""},
                 kNow);
  const WantedIdentity exact{kInt8, false};
  const WantedIdentity any{kInt8, true};
  for (std::uint64_t digest = 0; digest < 20; ++digest) {
    CHECK(place(hosts, {.model = "n", .digest = digest}, kNow)->value == 2);
    CHECK(place(hosts, {.model = "m", .digest = digest, .wanted = &any}, kNow)->value == 0);
  }
  const Error refused = refusal(hosts, {.model = "m", .wanted = &exact});
  CHECK(refused.code == Errc::UnknownWorker);
  CHECK(refused.detail.contains(kInt8));
}

TEST_CASE("place: an identity that cannot be read continues nothing") {
  CHECK(may_continue({kInt8, false}, kInt8));
  CHECK_FALSE(may_continue({kInt8, false}, kF32));
  CHECK(may_continue({kInt8, true}, kF32));
  CHECK_FALSE(may_continue({kInt8, true}, kOther));
  CHECK_FALSE(may_continue({"", false}, ""));
  CHECK_FALSE(may_continue({"x", true}, "x"));
}

TEST_CASE("place: each reason without a host has its code") {
  const HostTable silent = *HostTable::create({"a:1"}, std::chrono::seconds(1));
  CHECK(refusal(silent, {.model = "q"}).code == Errc::NoModelLoaded);
  HostTable hosts = table(2);
  const Error unknown = refusal(hosts, {.model = "q"});
  CHECK(unknown.code == Errc::UnknownWorker);
  CHECK(unknown.detail.contains("'q'"));
  const std::string long_name(100'000, 'q');
  CHECK(refusal(hosts, {.model = long_name}).detail.size() < 200);
  const std::vector<HostId> all{HostId{0}, HostId{1}};
  CHECK(refusal(hosts, {.model = "m", .without = all}).code == Errc::NoModelLoaded);
  hosts.refused(HostId{0}, std::chrono::seconds(3), kNow);
  hosts.refused(HostId{1}, std::chrono::seconds(2), kNow);
  const Error full = refusal(hosts, {.model = "m"});
  CHECK(full.code == Errc::QueueFull);
  CHECK(full.retry_after_ms == 2000);
  hosts.unreachable(HostId{0});
  hosts.unreachable(HostId{1});
  CHECK(refusal(hosts, {.model = "m"}).code == Errc::NoModelLoaded);
}

TEST_CASE("place: a sleeping host is woken only if no other one can take the request") {
  HostTable hosts = table(2);
  HostReport asleep = report();
  asleep.asleep = true;
  hosts.reported(HostId{0}, asleep, kNow);
  for (std::uint64_t digest = 0; digest < 20; ++digest) CHECK(placed(hosts, digest) == 1);
  hosts.refused(HostId{1}, std::chrono::seconds(5), kNow);
  CHECK(placed(hosts, 0) == 0);
  CHECK(refusal(hosts, {.model = "m", .only_ready = true}).code == Errc::QueueFull);
}

TEST_CASE("place: a late host takes a request only if no other one can") {
  HostTable hosts = table(2);
  const TimePoint later = kNow + std::chrono::milliseconds(600);
  hosts.reported(HostId{1}, report(), later);
  for (std::uint64_t digest = 0; digest < 20; ++digest)
    CHECK(place(hosts, {.model = "m", .digest = digest}, later)->value == 1);
  const HostId other{1};
  const std::span<const HostId> without(&other, 1);
  CHECK(place(hosts, {.model = "m", .without = without}, later)->value == 0);
  CHECK_FALSE(place(hosts, {.model = "m", .without = without, .only_ready = true}, later));
}

TEST_CASE("place: a host that left the list gets nothing, and is not counted") {
  HostTable hosts = table(2);
  REQUIRE(hosts.set_list({hosts.address(HostId{1})}).has_value());
  for (std::uint64_t digest = 0; digest < 20; ++digest) CHECK(placed(hosts, digest) == 1);
  const HostId left{1};
  CHECK(refusal(hosts, {.model = "m", .without = {&left, 1}}).detail.starts_with("1 hosts serve"));
}

TEST_CASE("place: a name that no host reports goes to the hosts that load adapters") {
  HostTable hosts = table(3);
  CHECK(refusal(hosts, {.model = "tuned"}).code == Errc::UnknownWorker);
  HostReport loads = report();
  loads.loads_adapters = true;
  for (const std::uint64_t host : {1, 2}) hosts.reported(HostId{host}, loads, kNow);
  bool is_spread = false;
  for (std::uint64_t digest = 0; digest < 20; ++digest) {
    const std::uint64_t first = place(hosts, {.model = "tuned", .digest = digest}, kNow)->value;
    CHECK(first != 0);
    is_spread = is_spread || first != place(hosts, {.model = "tuned"}, kNow)->value;
    CHECK(placed(hosts, digest) <= 2);  // the model is on all
  }
  CHECK(is_spread);
  const HostId others[] = {HostId{1}, HostId{2}};
  CHECK(refusal(hosts, {.model = "tuned", .without = others}).code == Errc::NoModelLoaded);
  // A text under an adapter stays with the identity of the model.
  const WantedIdentity same{kInt8}, other{kF32};
  CHECK(place(hosts, {.model = "tuned", .wanted = &same}, kNow));
  CHECK(refusal(hosts, {.model = "tuned", .wanted = &other}).code == Errc::UnknownWorker);
  // The name of a model is that model, although the host does not answer now.
  hosts.unreachable(HostId{0});
  HostReport more = loads;
  more.models.push_back({"large", kOther});
  hosts.reported(HostId{1}, more, kNow);
  hosts.unreachable(HostId{1});
  CHECK(refusal(hosts, {.model = "large"}).code == Errc::NoModelLoaded);
}

TEST_CASE("place: files go to hosts that keep them") {
  HostTable hosts = table(2);
  HostReport without = report();
  without.keeps_files = false;
  hosts.reported(HostId{0}, without, kNow);
  for (std::uint64_t digest = 0; digest < 20; ++digest)
    CHECK(place(hosts, {.digest = digest, .needs_files = true}, kNow)->value == 1);
  hosts.reported(HostId{1}, without, kNow);
  CHECK(refusal(hosts, {.model = "", .needs_files = true}).detail.contains("--batch-dir"));
}
