#include "tools/brokerctl/certificate.hpp"

#include <catch2/catch.hpp>

#include "common/machine/text_file.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/tools/brokerctl/fake_broker.hpp"
#include "tests/unit/tools/verify/small_log.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

/// A broker with this log.
struct LogBroker : FakeBroker {
  explicit LogBroker(const verify::SmallLog& log, const std::optional<std::string>& tenant = {}) {
    const auto page = log.page(0);
    const std::uint64_t last = page.records.empty() ? 0 : page.records.back().sequence;
    replies["audit.list"] = {page.to_json(), log.page(last).to_json()};
    replies["audit.key"] = {log.keys().to_json()};
    replies["audit.head"] = {log.head(tenant).envelope.to_json()};
  }
  Result<void> run_verb(Verb verb, Output output = Output::Table) {
    return run({.output = output, .verb = std::move(verb)}, dependencies());
  }
};

verify::SmallLog sample_log() {
  verify::SmallLog log;
  const LeaseId lease = log.grant("t7");
  log.grant("alice");
  log.settle(lease);
  return log;
}

}  // namespace

TEST_CASE("brokerctl audit certificate: the printed certificate is sound, also after retention") {
  verify::SmallLog log = sample_log();
  for (int round = 0; round < 2; ++round) {
    LogBroker broker(log, "t7");
    REQUIRE(broker.run_verb(MakeCertificate{.tenant = "t7", .since_unix_ms = log.now_ms() - 1}));
    const auto verdict = verify::verify(broker.out.str(), {.key = log.key()});
    REQUIRE(verdict.has_value());
    CHECK(verdict->is_complete());
    log.remove(1);
  }
}

TEST_CASE("brokerctl audit certificate: records that do not lead to the signed head are refused") {
  const verify::SmallLog log = sample_log();
  LogBroker broker(log, "t7");
  auto page = log.page(0);
  page.records[1].hash = std::string(64, 'a');
  broker.replies["audit.list"].front() = page.to_json();
  const auto refused = broker.run_verb(MakeCertificate{.tenant = "t7"});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::FileCorrupt);
  CHECK(refused.error().detail.contains("do not lead to the head"));
}

TEST_CASE("brokerctl audit certificate: a file and a kept head are written and read") {
  const auto directory = TemporaryDirectory::create("certificate").value();
  const std::string kept = directory.file("head.json");
  const std::string file = directory.file("t7.json");
  verify::SmallLog log = sample_log();
  REQUIRE(LogBroker(log).run_verb(ShowAuditHead{.file = kept}));
  log.use("alice");
  LogBroker broker(log, "t7");
  REQUIRE(broker.run_verb(MakeCertificate{.tenant = "t7", .kept_head = kept, .file = file}));
  CHECK(broker.out.str().contains("complete"));
  const auto verdict =
      verify::verify(read_text_file(file, 1 << 20).value(),
                     {.key = log.key(), .kept_head = read_text_file(kept, 1 << 20).value()});
  REQUIRE(verdict.has_value());
  CHECK(verdict->kept->size == 3);
}

TEST_CASE("brokerctl audit key: prints the key that signs, and rotates no key but the newest") {
  verify::SmallLog log = sample_log();
  log.change_key();
  LogBroker broker(log);
  REQUIRE(broker.run_verb(SigningKey{}));
  CHECK(broker.out.str() == log.key().text() + "\n");
  broker.replies["audit.rotate_key"] = {log.keys().to_json()};
  REQUIRE(broker.run_verb(SigningKey{.rotate = true}, Output::Json));
  CHECK(broker.calls.back().second == wire::Json{{"key", log.key().id()}});
}
