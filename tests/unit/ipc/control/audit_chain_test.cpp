#include "ipc/control/tokens/audit_chain.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using audit::ChainCheck;
using audit::Link;
using audit::Record;

namespace {

struct Chain {
  std::vector<Record> records;
  Link head;
  explicit Chain(int count, Link before = {}) : head(std::move(before)) {
    for (int i = 0; i < count; ++i) {
      records.push_back(audit::next_record(head, {{"tenant", "a"}, {"n", i}}));
      head = {records.back().sequence, records.back().hash};
    }
  }
};

std::vector<audit::Finding> findings(const Chain& chain, const Link& removed = {}) {
  ChainCheck check(removed, chain.head);
  for (const Record& record : chain.records) check.add(record);
  check.finish();
  CHECK(check.findings().size() == check.finding_count());
  for (const audit::Finding& each : check.findings()) CHECK_FALSE(each.next.empty());
  return check.findings();
}

/// The only finding.
audit::Finding only(const Chain& chain, const Link& removed = {}) {
  const auto all = findings(chain, removed);
  REQUIRE(all.size() == 1);
  return all.front();
}

}  // namespace

TEST_CASE(
    "audit chain: a hash is the SHA-256 of the content, and the content holds the one before") {
  // FIPS 180-4, example of one block.
  CHECK(audit::hash_of("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const Chain chain(2);
  CHECK(chain.records[0].content ==
        R"({"n":0,"previous":")" + std::string(64, '0') + R"(","sequence":1,"tenant":"a"})");
  CHECK(chain.records[1].content.contains(R"("previous":")" + chain.records[0].hash));
}

TEST_CASE("audit chain: an unchanged chain has no finding, also after its beginning was removed") {
  const Link removed{41, std::string(64, '7')};
  CHECK(findings(Chain(5)).empty());
  CHECK(findings(Chain(5, removed), removed).empty());
  CHECK(findings(Chain(0)).empty());
}

TEST_CASE("audit chain: each flipped byte of a content or a hash is found in its record") {
  const Chain sound(4);
  for (std::size_t at = 0; at < sound.records[1].content.size(); ++at) {
    Chain chain = sound;
    chain.records[1].content[at] ^= 1;
    CHECK(only(chain).sequence == 2);
  }
  for (std::size_t at = 0; at < 64; ++at) {
    Chain chain = sound;
    chain.records[1].hash[at] ^= 1;
    CHECK(only(chain).sequence == 2);
  }
}

TEST_CASE("audit chain: a record that was hashed again does not fit the next one") {
  Chain chain(4);
  chain.records[1].content.replace(chain.records[1].content.find(R"("a")"), 3, R"("b")");
  chain.records[1].hash = audit::hash_of(chain.records[1].content);
  const auto found = only(chain);
  CHECK(found.sequence == 2);
  CHECK(found.problem.contains("record 3 holds another hash of it"));
}

TEST_CASE("audit chain: a last record that was hashed again is not the head") {
  Chain chain(4);
  chain.records[3].content.replace(chain.records[3].content.find(R"("a")"), 3, R"("b")");
  chain.records[3].hash = audit::hash_of(chain.records[3].content);
  CHECK(only(chain).sequence == 4);
}

TEST_CASE("audit chain: removed records are found at the beginning, inside and at the end") {
  Chain chain(6);
  SECTION("at the beginning") {
    chain.records.erase(chain.records.begin(), chain.records.begin() + 2);
    CHECK(only(chain).problem == "records 1 to 2 are missing");
  }
  SECTION("inside") {
    chain.records.erase(chain.records.begin() + 2);
    const auto found = only(chain);
    CHECK(found.sequence == 3);
    CHECK(found.problem == "record 3 is missing");
  }
  SECTION("at the end") {
    chain.records.resize(3);
    const auto found = only(chain);
    CHECK(found.sequence == 4);
    CHECK(found.problem == "records 4 to 6 are missing at the end: the tail was cut off");
  }
  SECTION("all") {
    chain.records.clear();
    CHECK(only(chain).sequence == 1);
  }
}

TEST_CASE("audit chain: records in another order are found, each in its place") {
  Chain chain(5);
  std::swap(chain.records[1].content, chain.records[3].content);
  std::swap(chain.records[1].hash, chain.records[3].hash);
  const auto all = findings(chain);
  REQUIRE(all.size() == 2);
  CHECK(all[0].problem == "the order was changed: the place of record 2 holds record 4");
  CHECK(all[1].problem == "the order was changed: the place of record 4 holds record 2");
}

TEST_CASE("audit chain: a content of another form is found, and findings are bounded") {
  Chain chain(200);
  for (Record& record : chain.records) {
    record.content = "[1]";
    record.hash = audit::hash_of(record.content);
  }
  chain.head.hash = chain.records.back().hash;
  ChainCheck check({}, chain.head);
  for (const Record& record : chain.records) check.add(record);
  check.finish();
  CHECK(check.finding_count() == 200);
  CHECK(check.findings().size() == ChainCheck::kMaxFindings);
}

TEST_CASE("audit chain: records that retention removes during the check are not missed") {
  const Chain chain(6);
  ChainCheck check({}, chain.head);
  check.add(chain.records[0]);
  check.skip_to({3, chain.records[2].hash});
  for (std::size_t i = 3; i < 6; ++i) check.add(chain.records[i]);
  check.finish();
  CHECK(check.finding_count() == 0);
}
