/// Certificates of erased memory, as an operator makes them and an auditor checks them: the routine
/// of OPERATING, a journal whose newest records were removed, a lost key.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string_view>

#include "tests/process/restart/restartable.hpp"
#include "tests/support/child_process.hpp"
#include "tests/unit/broker/journal/state_dir.hpp"

namespace leasehold::testing {
namespace {

/// The commands of OPERATING's section about certificates, in their order.
std::string routine() {
  const std::string document = file_bytes(source_dir() + "/tools/package/OPERATING.md");
  std::string_view rest = document;
  rest.remove_prefix(std::min(rest.find("## Prove that memory was erased"), rest.size()));
  rest = rest.substr(0, rest.find("\n## "));
  constexpr std::string_view kBegin = "```sh\n", kEnd = "```\n";
  std::string commands;
  for (std::size_t at = 0; (at = rest.find(kBegin)) != rest.npos;) {
    rest.remove_prefix(at + kBegin.size());
    const std::size_t end = rest.find(kEnd);
    commands += rest.substr(0, end);
    rest.remove_prefix(end + kEnd.size());
  }
  return commands;
}

/// A broker with a tenant t7, and a folder of an operator and an auditor.
struct Operator {
  Operator() { fixture.system.admit("t7"); }

  /// Runs a text of the tenant, and waits until all of its leases are erased.
  void use_memory() {
    REQUIRE(fixture.system.start_tenant({.tenant = "t7"})->finish() == 0);
    REQUIRE(eventually([this] {
      const auto tenants = fixture.system.view().tenants().value();
      const auto t7 = std::ranges::find(tenants, TenantId{"t7"},
                                        [](const auto& each) { return each.policy.tenant; });
      return t7 != tenants.end() && t7->leases && t7->leases->erased > 0 &&
             t7->leases->granted == t7->leases->erased;
    }));
  }

  /// The exit code of the first command that fails, or 0. What they print is in `printed`.
  int run(const std::string& commands) {
    std::filesystem::remove(log());
    Child shell =
        Child::start({.argv = {"/bin/bash", "-ec", commands},
                      .log_path = log(),
                      .environment = {"LEASEHOLD_BROKER=" + fixture.system.broker_socket(),
                                      "PATH=" + program_dir() + ":/usr/bin:/bin"}})
            .value();
    const int code = exit_status_of(shell);
    printed = file_bytes(log());
    UNSCOPED_INFO(printed);
    return code;
  }
  int run_in_folder(const std::string& commands) {
    return run("cd '" + folder.path().string() + "'\n" + commands);
  }

  /// Removes the records after this one, and what else the journal has about them. What is left is
  /// a journal as it was before them.
  void cut_journal_after(std::uint64_t sequence) {
    const std::string sql =
        "DELETE FROM audit_record WHERE sequence > " + std::to_string(sequence) +
        "; UPDATE audit_tenant SET granted = 1, erased = 1, (records, hash, unix_ms) ="
        " (SELECT json_extract(content, '$.tenant_record'), hash, at_unix_ms FROM audit_record"
        " WHERE json_extract(content, '$.tenant') = 't7'"
        " AND json_extract(content, '$.tenant_record') > 0 ORDER BY sequence DESC LIMIT 1)"
        " WHERE tenant = 't7'";
    journal::run_sql(journal_file(), sql.c_str());
    std::filesystem::remove(fixture.state.file("audit_head"));
  }
  std::string journal_file() const { return fixture.state.file("journal.db"); }
  std::string log() const { return folder.file("log"); }

  Restartable fixture;
  TemporaryDirectory folder = TemporaryDirectory::create("auditor").value();
  std::string printed;
};

}  // namespace

TEST_CASE("certificates: OPERATING's monthly routine runs as written and proves memory erased") {
  Operator person;
  person.use_memory();
  REQUIRE(routine().contains("brokerctl audit key rotate"));
  CHECK(person.run_in_folder(routine()) == 0);
  CHECK(person.printed.contains("COMPLETE: "));
  CHECK(person.printed.contains("verified_zero"));
  CHECK(person.printed.contains("The chain continues the head of"));
  // the next month, over a restart
  person.fixture.restart_broker();
  person.use_memory();
  CHECK(person.run_in_folder(routine()) == 0);
  CHECK(person.printed.contains("3 keys"));
}

TEST_CASE("certificates: a journal without its newest records is found by a kept head") {
  Operator person;
  person.use_memory();
  const auto newest = [&] {
    return journal::Database::open(person.journal_file())
        .value()
        .number("SELECT max(sequence) FROM audit_record")
        .value();
  };
  const auto before = static_cast<std::uint64_t>(newest());
  person.use_memory();
  REQUIRE(person.run_in_folder("brokerctl audit key >pub; brokerctl audit head -o kept.json") == 0);
  person.fixture.restart_broker([&] { person.cut_journal_after(before); });

  // The chain that is left is sound: without a kept head nothing shows.
  CHECK(person.run_in_folder("brokerctl audit certificate --tenant t7 -o t7.json\n"
                             "leasehold-verify t7.json --key pub") == 0);
  CHECK(person.printed.contains("COMPLETE: 1 lease "));
  CHECK(person.run_in_folder("leasehold-verify t7.json --key pub --head kept.json") == 1);
  CHECK(person.printed.contains("records were removed from the end of the chain"));
  CHECK(person.run_in_folder("brokerctl audit certificate --tenant t7 --head kept.json") ==
        exit_code(Errc::FileCorrupt));
}

TEST_CASE("certificates: after the loss of the key auditors must trust the new one anew") {
  Operator person;
  person.use_memory();
  REQUIRE(person.run_in_folder("brokerctl audit key >old.pub") == 0);
  person.fixture.restart_broker(
      [&] { std::filesystem::remove(person.fixture.state.file("audit-key")); });
  CHECK(person.run_in_folder("brokerctl audit key -o wide") == 0);
  CHECK(person.printed.contains("UNLINKED"));
  CHECK(person.run_in_folder("brokerctl audit key >new.pub\n"
                             "brokerctl audit certificate --tenant t7 -o t7.json\n"
                             "leasehold-verify t7.json --key new.pub") == 0);
  CHECK(person.run_in_folder("leasehold-verify t7.json --key old.pub") == 1);
  CHECK(person.printed.contains("does not lead to"));
  // The doctor says so until the new key is rotated; a missing systemd user fails it anyway.
  CHECK(person.run_in_folder("brokerctl doctor | grep 'audit key *wrong'") == 0);
  CHECK(person.run_in_folder(
            "brokerctl audit key rotate; brokerctl doctor | grep 'audit key *ok'") == 0);
}

}  // namespace leasehold::testing
