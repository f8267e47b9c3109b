#include "common/ids.hpp"

#include <catch2/catch.hpp>
#include <type_traits>
#include <unordered_set>

using namespace leasehold;
using namespace std::string_literals;

static_assert(!std::is_convertible_v<WorkerId, ExtentId>);
static_assert(!std::is_convertible_v<ExtentId, RegionId>);
static_assert(!std::is_convertible_v<TenantId, RequestId>);
static_assert(!std::is_constructible_v<TenantId, RequestId>);

namespace {

void check_bad(const auto& parsed) {
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == Errc::BadRequest);
  CHECK_FALSE(parsed.error().detail.empty());
}

}  // namespace

TEST_CASE("names: 1 to 64 characters of the plain set are valid") {
  for (const std::string& text :
       {"a"s, "acme:gold"s, "req-0123456789ab"s, "A.b_C-9:z"s, std::string(64, 'x')}) {
    CAPTURE(text);
    CHECK(TenantId::parse(text) == TenantId{text});
    CHECK(RequestId::parse(text) == RequestId{text});
  }
}

TEST_CASE("names: hostile text is rejected, never repaired") {
  for (const std::string& text :
       {""s, std::string(65, 'x'), std::string(1 << 20, 'x'), " acme"s, "acme "s, "ac me"s,
        "acme\n"s, "acme\0"s, "\0"s, "../acme"s, "acme/gold"s, "acme\"}"s, "acme;drop"s,
        "caf\xC3\xA9"s, "\xFF\xFE"s, "acme\x7F"s, "$(acme)"s}) {
    CAPTURE(text.size());
    check_bad(TenantId::parse(text));
    check_bad(RequestId::parse(text));
  }
}

TEST_CASE("lease id: printing and parsing round-trip") {
  for (const LeaseId id : {LeaseId{0, 1}, LeaseId{17, 4}, LeaseId{~0u, (1ull << 48) - 1}})
    CHECK(LeaseId::parse(to_string(id)) == id);
  CHECK(to_string(LeaseId{17, 4}) == "17.4");
}

TEST_CASE("lease id: anything but SLOT.GENERATION in range is rejected") {
  for (const std::string& text : {""s,
                                  "."s,
                                  "17"s,
                                  "17."s,
                                  ".4"s,
                                  "17.0"s,
                                  "-1.4"s,
                                  "+1.4"s,
                                  "17.-4"s,
                                  " 17.4"s,
                                  "17.4 "s,
                                  "17 .4"s,
                                  "17.4.5"s,
                                  "17,4"s,
                                  "0x11.4"s,
                                  "1e1.4"s,
                                  "17.4\n"s,
                                  "17.4\0"s,
                                  "\0"s + "17.4",
                                  "4294967296.1"s,             // one past the last slot
                                  "17.281474976710656"s,       // one past the last generation
                                  "17.18446744073709551617"s,  // would wrap to 1
                                  std::string(4096, '9') + ".1"}) {
    CAPTURE(text);
    check_bad(LeaseId::parse(text));
  }
}

TEST_CASE("ids: equal ids hash alike, generations of one slot do not") {
  const std::unordered_set<LeaseId> seen{LeaseId{1, 1}, LeaseId{1, 2}, LeaseId{2, 1},
                                         LeaseId{1, 1}};
  CHECK(seen.size() == 3);
  CHECK(std::hash<WorkerId>{}(WorkerId{3}) == std::hash<WorkerId>{}(WorkerId{3}));
  CHECK(std::hash<TenantId>{}(TenantId{"a"}) == std::hash<TenantId>{}(TenantId{"a"}));
}

TEST_CASE("lease id: order is by slot, then by generation") {
  CHECK(LeaseId{1, 9} < LeaseId{2, 1});
  CHECK(LeaseId{1, 1} < LeaseId{1, 2});
}
