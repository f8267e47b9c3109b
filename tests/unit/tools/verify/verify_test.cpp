#include "tools/verify/verify.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/random.hpp"
#include "ipc/control/transport/base64.hpp"
#include "tests/unit/tools/verify/certificate_checks.hpp"
#include "tools/verify/report.hpp"

using namespace leasehold;
using namespace leasehold::verify;
using wire::ErasureState;
using wire::MemoryFate;

namespace {

/// A log of a few leases of two tenants, and changes of the key.
SmallLog random_log(SeededRandom& random) {
  SmallLog log;
  std::vector<LeaseId> open;
  const bool ends_all = random.below(2) == 0;
  for (int step = 0; step < 30; ++step) {
    const std::uint64_t kind = random.below(8);
    if (kind < 3)
      open.push_back(
          log.grant(kind == 0 ? "alice" : "t7", static_cast<std::uint32_t>(1 + random.below(3))));
    if (kind == 3) log.use("t7");
    if (kind == 4 && random.below(4) == 0) log.change_key();
    if (kind < 5 || open.empty()) continue;
    const bool is_held = !ends_all && random.below(6) == 0;
    log.settle(open.back(), is_held ? MemoryFate::Held : MemoryFate::VerifiedZero);
    open.pop_back();
  }
  if (ends_all)
    for (const LeaseId lease : open) log.settle(lease);
  return log;
}

std::string head_text(const SignedHead& head) {
  return head.envelope.to_json().dump() + "\n";
}

/// A certificate of t7 that a dishonest tool changed.
template <class Change>
std::string changed(const SmallLog& log, Change change) {
  auto certificate = log.build("t7");
  REQUIRE(certificate.has_value());
  change(*certificate);
  return certificate->text();
}

}  // namespace

TEST_CASE("verify: a certificate of erased leases is complete, and says how they were erased") {
  const SmallLog log = sample_log();
  const Verdict verdict = sound(log.certificate("t7"), log.key());
  CHECK(verdict.is_complete());
  CHECK(verdict.after_unix_ms == 0);
  REQUIRE(verdict.leases.size() == 3);
  const LeaseAccount& grown = std::next(verdict.leases.begin())->second;
  CHECK(amount_of(grown.memory, MemoryFate::VerifiedZero) == Amount{5, 5 * SmallLog::kExtentBytes});
  CHECK(exit_code(verdict) == 0);
}

TEST_CASE("verify: a certificate shows no record of another tenant") {
  const SmallLog log = sample_log();
  const std::string text = log.certificate("t7");
  CHECK_FALSE(text.contains("alice"));
  CHECK_FALSE(text.contains("bob"));
  for (const auto& entry : wire::Json::parse(text)["records"])
    CHECK(entry["record"]["tenant"] == "t7");
}

TEST_CASE("verify: every byte of a certificate that is flipped once is detected") {
  SmallLog log;
  log.grant("alice");
  const SignedHead kept = log.head();
  const LeaseId lease = log.grant("t7");
  log.change_key();
  log.settle(lease);
  const LeaseId last = log.grant("t7", 1);
  log.settle(last);
  const std::string text = log.certificate("t7", log.now_ms() - 1500, kept);
  const Expected expected{.key = log.key()};
  REQUIRE(verify::verify(text, expected));
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ (1 << at % 7));
    if (verify::verify(other, expected)) FAIL("byte " << at << " may be flipped");
  }
}

TEST_CASE("verify: a cut or extended certificate is detected") {
  const SmallLog log = sample_log();
  const std::string text = log.certificate("t7");
  for (const std::string& other :
       {text.substr(0, text.size() - 1), text + "\n", " " + text, text.substr(0, text.size() / 2),
        std::string(), std::string("{}"), std::string(100'000, '['),
        "{\"a\":1," + text.substr(1)}) {
    CHECK(fault(other, log.key()).starts_with("the file is not a certificate"));
  }
}

TEST_CASE("verify: a record that is left out, edited or of another tenant is named") {
  const SmallLog log = sample_log();
  CHECK(fault(changed(log, [](auto& c) { c.records.erase(c.records.begin() + 2); }), log.key()) ==
        "the tenant's record 3 is missing before record 7");
  const auto edit = [](auto& c) {
    std::string& content = c.records[1].content;
    content.replace(content.find("verified_zero"), 13, "never_lent");
  };
  CHECK(fault(changed(log, edit), log.key()) ==
        "record 4 was changed: record 5 has another hash of it");
  const auto rename = [](auto& c) {
    std::string& content = c.records[1].content;
    content.replace(content.find(R"("tenant":"t7")"), 13, R"("tenant":"t8")");
  };
  CHECK(fault(changed(log, rename), log.key()) == "record 4 is of another tenant");
  const auto insert_foreign = [&](auto& c) {
    const auto foreign = log.build("alice");
    c.records.insert(c.records.begin() + 1, foreign->records.front());
  };
  CHECK(fault(changed(log, insert_foreign), log.key()) == "record 2 is of another tenant");
  CHECK(fault(changed(log, [](auto& c) { c.records.push_back(c.records.back()); }), log.key())
            .contains("is in the place of 6"));
}

TEST_CASE("verify: the proof of another head, and leaves in other places, are detected") {
  SmallLog log = sample_log();
  const auto earlier = log.build("t7");
  log.use("bob");
  const std::string why = "the proof does not lead from the records to the signed root of 14";
  CHECK(
      fault(changed(log, [&](auto& c) { c.proof = earlier->proof; }), log.key()).starts_with(why));
  CHECK(fault(changed(log, [](auto& c) { ++c.records.back().leaf; }), log.key()).starts_with(why));
  CHECK(fault(changed(log, [](auto& c) { c.proof.pop_back(); }), log.key()).starts_with(why));
}

TEST_CASE("verify: another head of the same chain does not fit the records") {
  SmallLog log = sample_log();
  const std::string certificate = log.certificate("t7");
  const LeaseId open = log.grant("t7");
  CHECK(fault(changed(log, [&](auto& c) { c.records.pop_back(); }), log.key()) ==
        "the tenant's record 8 is missing before the signed head");
  log.settle(open);
  // the head of all records, which has no tenant
  CHECK(fault(changed(log, [&](auto& c) { c.head = log.head().envelope; }), log.key()) ==
        "the signed head is not one of a tenant's leases");
  CHECK(fault(changed(log, [&](auto& c) { c.head = log.head("alice").envelope; }), log.key())
            .contains("is of another tenant"));
}

TEST_CASE("verify: JSON that nests without end, in what is not signed yet, is refused") {
  const std::string deep =
      R"({"predicate":)" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  const SmallLog log = sample_log();
  const auto replace = [&](auto& c) { c.keys[0].payload = control::to_base64(deep); };
  CHECK(fault(changed(log, replace), log.key()) ==
        "key 1 of the audit chain is not introduced by a statement about a key");
  CHECK(fault(log.certificate("t7"), log.key(), deep).contains("the kept head is not a head"));
  CHECK(fault(deep, log.key()).contains("it has more than 16 levels"));
}

TEST_CASE("verify: a window begins with the first record of its time, wherever that is") {
  SmallLog log = sample_log();
  const std::int64_t noon = log.now_ms() - 1000;  // of the tenant's newest record
  CHECK(sound(log.certificate("t7", noon + 1), log.key()).records == 0);
  const LeaseId late = log.grant("t7");
  log.settle(late);
  const Verdict verdict = sound(log.certificate("t7", noon + 1), log.key());
  CHECK(verdict.records == 2);
  CHECK(verdict.after_unix_ms == noon);
  CHECK(verdict.is_complete());
  CHECK(verify::verify(log.certificate("t7", noon + 1),
                       {.key = log.key(), .since_unix_ms = noon + 1}));
  const auto refused = verify::verify(log.certificate("t7", noon + 1),
                                      {.key = log.key(), .since_unix_ms = SmallLog::kStart_ms});
  REQUIRE_FALSE(refused.has_value());
  CHECK(
      refused.error().detail.starts_with("the tenant's records up to 7 are missing before record "
                                         "14, and one of 2026-11-30T00:00:12Z is of the time"));
  CHECK(sound(log.certificate("t9"), log.key()).is_complete());
}

TEST_CASE("verify: a clock that was set back leaves no lease out of a window") {
  SmallLog log = sample_log();
  const std::int64_t since = log.now_ms() + 1;
  log.settle(log.grant("t7"));
  log.set_clock_back(10'000);
  log.settle(log.grant("t7"));
  const Verdict verdict = sound(log.certificate("t7", since), log.key());
  CHECK(verdict.leases.size() == 2);
  CHECK(verdict.after_unix_ms < since);
  CHECK(verify::verify(log.certificate("t7", since), {.key = log.key(), .since_unix_ms = since}));
  const auto cut =
      changed(log, [](auto& c) { c.records.erase(c.records.begin(), c.records.end() - 2); });
  CHECK(fault(cut, log.key()).starts_with("the proof does not lead"));
}

TEST_CASE("verify: open leases from before the window are not complete either") {
  SmallLog log = sample_log();
  log.grant("t7");
  const std::int64_t noon = log.now_ms();
  const LeaseId late = log.grant("t7");
  log.settle(late);
  const Verdict verdict = sound(log.certificate("t7", noon + 1), log.key());
  CHECK(exit_code(verdict) == 3);
  CHECK(report_text(verdict).contains("1 lease granted before this time"));
}

TEST_CASE("verify: retention that removed records of the window is refused, naming the first day") {
  SmallLog log = sample_log();
  log.remove(5);
  const auto refused = log.build("t7", SmallLog::kStart_ms);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::BadRequest);
  CHECK(refused.error().detail ==
        "retention removed records of that time: the first kept record is of "
        "2026-11-30T00:00:06Z; use --since 2026-12-01");
  // record 5 is the newest that was removed, and is of 00:00:05
  CHECK(sound(log.certificate("t7", SmallLog::kStart_ms + 5001), log.key()).is_complete());
}

TEST_CASE("verify: a new key is trusted if the auditor's key signed it, and not after a lost one") {
  SmallLog log = sample_log();
  const audit::PublicKey first = log.key();
  log.change_key();
  const audit::PublicKey second = log.key();
  CHECK(sound(log.certificate("t7"), first).key_count == 2);
  CHECK(sound(log.certificate("t7"), second).signer == second);
  log.change_key(true);
  CHECK(fault(log.certificate("t7"), first).contains("does not lead to"));
  const Verdict after_loss = sound(log.certificate("t7"), log.key());
  CHECK(after_loss.key_count == 3);
  CHECK(report_text(after_loss).contains("3 keys, 1 of them lost"));
  CHECK(fault(log.certificate("t7"), audit::SigningKey::create().public_key())
            .contains("does not lead to"));
}

TEST_CASE("verify: a certificate that continues a kept head says so") {
  SmallLog log = sample_log();
  const SignedHead kept = log.head();
  log.use("bob");
  log.change_key();
  const Verdict verdict = sound(log.certificate("t7", 0, kept), log.key(), head_text(kept));
  REQUIRE(verdict.kept.has_value());
  CHECK(verdict.kept->size == 13);
  CHECK(report_text(verdict).contains("continues the head"));
  CHECK(fault(log.certificate("t7"), log.key(), head_text(kept)).contains("ask for one made with"));
  // the present head needs no proof
  CHECK(sound(log.certificate("t7"), log.key(), head_text(log.head())).kept.has_value());
}

TEST_CASE("verify: a chain whose newest records were removed is found by a kept head") {
  SmallLog log = sample_log();
  const LeaseId lease = log.grant("t7");
  const SmallLog earlier = log;
  log.settle(lease, MemoryFate::Quarantined);
  const SignedHead kept = log.head();
  // The records after `earlier` are removed, and the chain goes on with others.
  log.cut_to(earlier);
  CHECK(fault(log.certificate("t7"), log.key(), head_text(kept))
            .contains("records were removed from the end of the chain"));
  log.settle(lease);
  CHECK(fault(log.certificate("t7"), log.key(), head_text(kept)).contains("the roots differ"));
  log.use("bob");
  CHECK(fault(log.certificate("t7"), log.key(), head_text(kept)).contains("ask for one made with"));
  const auto refused = log.build("t7", 0, kept);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().detail.contains("records up to there were changed"));
  // A forged proof does not help.
  auto forged = log.build("t7", 0, earlier.head());
  forged->kept->tree = {kept.head.size, *audit::hash_from_hex(kept.head.root)};
  CHECK(fault(forged->text(), log.key(), head_text(kept))
            .contains("does not continue the kept head of 15 records"));
}

TEST_CASE("verify: a kept head of another chain, or without a signature of it, is refused") {
  const SmallLog log = sample_log();
  const SmallLog other = sample_log();
  CHECK(fault(log.certificate("t7"), log.key(), head_text(other.head()))
            .contains("is not one of the certificate's audit chain"));
  SignedHead unsigned_head = log.head();
  unsigned_head.envelope.signatures = other.head().envelope.signatures;
  CHECK(fault(log.certificate("t7"), log.key(), head_text(unsigned_head))
            .contains("is not one of the certificate's audit chain"));
  CHECK(fault(log.certificate("t7"), log.key(), "{}").contains("the kept head is not a head"));
}

TEST_CASE("verify: the report says what was erased, what was not, and what is not proven") {
  SmallLog log = sample_log();
  const std::string complete = report_text(sound(log.certificate("t7"), log.key()));
  for (const char* words : {"COMPLETE: 3 leases granted in this time, 3 erased", "verified_zero",
                            "released_by_driver", "LaunchQuiet", "does not prove", "root",
                            "lease: the right of one tenant", "about one broker, on one host"})
    CHECK(complete.contains(words));
  const LeaseId lease = log.grant("t7");
  log.settle(lease, MemoryFate::Quarantined);
  const std::string open = report_text(sound(log.certificate("t7"), log.key()));
  CHECK(open.contains("NOT COMPLETE: 4 leases granted in this time, 3 erased"));
  CHECK(open.contains(to_string(lease) + "    quarantined"));
  const auto json = report_json(sound(log.certificate("t7"), log.key()));
  CHECK(json["result"] == "incomplete");
  CHECK(json["not_erased"][0]["lease"] == to_string(lease));
}

TEST_CASE("verify: certificates of random logs, for another verifier", "[.certificates]") {
  REQUIRE(::getenv("CERTIFICATES") != nullptr);
  const std::filesystem::path directory = ::getenv("CERTIFICATES");
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SeededRandom random(seed);
    const SmallLog log = random_log(random);
    std::string text = log.certificate("t7", log.now_ms() - 1000 * random.below(40));
    for (const char* kind : {"sound", "flipped"}) {
      const std::string name = std::to_string(seed) + "-" + kind;
      std::ofstream(directory / (name + ".json")) << text;
      std::ofstream(directory / (name + ".pub")) << log.key().text() << "\n";
      text[random.below(text.size())] ^= 1;
    }
  }
}

TEST_CASE("verify: a certificate of 10 000 leases, between those of others, has at most 15 MB") {
  SmallLog log;
  for (int i = 0; i < 10'000; ++i) {
    const LeaseId lease = log.grant("t7");
    const LeaseId other = log.grant("alice");
    log.settle(other);
    log.settle(lease);
  }
  const std::clock_t begin = std::clock();
  const std::string text = log.certificate("t7");
  const std::clock_t made = std::clock();
  const Verdict verdict = sound(text, log.key());
  const std::clock_t checked = std::clock();
  CHECK(verdict.is_complete());
  CHECK(verdict.leases.size() == 10'000);
  CHECK(text.size() <= 15'000'000);
  const auto seconds = [](std::clock_t ticks) { return double(ticks) / CLOCKS_PER_SEC; };
  // Figures for people. A loaded machine must not fail the test.
  std::cout << text.size() << " bytes; " << seconds(made - begin) << " s of a CPU to make, "
            << seconds(checked - made) << " s to check\n";
}
