/// A worker is killed in the middle of its tenants' texts, and its successor adopts their memory.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "common/machine/process.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing::adoption {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::size_t kReadBeforeKill = 60;

// A text that is computed again from its beginning takes a step per 16 rows.
const SystemSpec kSpec{.worker_arguments = {"--slow-motion-us", "30", "--token-budget", "16",
                                            "--max-batch-size", "8"}};

TenantSpec spec_of(int tenant) {
  return {.tenant = "t" + std::to_string(tenant),
          .prompt = tenant % 2 == 0 ? "Once upon a time" : "The little fox",
          .max_tokens = 200,
          .rebind = true,
          .more = {"--seed", std::to_string(tenant), "--temperature", "0.8"}};
}

/// For each lease the positions in the cache after its first step, by a worker's event log.
std::map<std::string, std::size_t> first_positions(const std::string& path) {
  std::map<std::string, std::size_t> first;
  std::ifstream log(path);
  for (std::string line; std::getline(log, line);) {
    const auto step = nlohmann::json::parse(line, nullptr, false);
    if (step.is_discarded() || step.value("event", "") != "batched_decode_step") continue;
    for (std::size_t i = 0; i < step.at("per_seq_leases").size(); ++i) {
      first.try_emplace(step["per_seq_leases"][i].get<std::string>(),
                        step["per_seq_kv_positions"][i].get<std::size_t>());
    }
  }
  return first;
}

void start_successor(System& system, const std::string& fault = {},
                     const std::vector<std::string>& more = {}) {
  REQUIRE(eventually([&] { return has_exited(system.worker().pidfd()); }));
  system.remove_worker("w1");
  system.start_worker("w1", fault, more);
}

void kill_and_restart(System& system, const std::string& fault = {}) {
  REQUIRE(system.worker().signal(SIGKILL));
  start_successor(system, fault);
}

/// Of worker w1 that is killed at its `fault`, and of its successor.
void check_text_over_death(const std::string& fault, const std::vector<std::int32_t>& alone) {
  CAPTURE(fault);
  SystemSpec spec = kSpec;
  spec.worker_fault = fault;
  System system(spec);
  system.admit(spec_of(0).tenant);
  system.admit("short");
  const auto tenant = system.start_streaming(spec_of(0), kBlock + 1);
  // Its lease ends, so the worker unmaps memory while it computes the other text.
  const auto short_text = system.start_tenant({.tenant = "short", .max_tokens = 2, .rebind = true});

  start_successor(system);

  check_whole(*tenant, alone);
  CHECK(short_text->finish() == 0);
  CHECK(tenant->record().leases.size() == 2);
  CHECK(count_of(system.worker_log(), "memory adopted") > 0);
  CHECK(count_of(system.worker_log(), "records=1 ") == 1);
  CHECK(count_of(system.worker_log(), "dropped=0") == count_of(system.worker_log(), "dropped="));
  CHECK(system.pool_is_fully_free());
}

}  // namespace

TEST_CASE(
    "the successor of a killed worker adopts its tenants' memory, and computes no text again") {
  constexpr int kTenants = 8;
  System system(kSpec);
  std::vector<std::vector<std::int32_t>> alone;
  std::vector<std::unique_ptr<Tenant>> tenants;
  for (int i = 0; i < kTenants; ++i) {
    system.admit(spec_of(i).tenant);
    alone.push_back(system.undisturbed(spec_of(i)));
  }
  for (int i = 0; i < kTenants; ++i) tenants.push_back(system.start_tenant(spec_of(i)));
  for (const auto& tenant : tenants) REQUIRE(tenant->read_tokens(kReadBeforeKill));

  kill_and_restart(system);

  for (int i = 0; i < kTenants; ++i) {
    CAPTURE(i);
    CHECK(tenants[i]->finish() == 0);
    CHECK((tenants[i]->record().tokens == alone[i]));
    CHECK(tenants[i]->record().leases.size() == 2);
  }
  const std::string log = system.worker_log();
  CHECK(count_of(log, "memory adopted") == kTenants);
  CHECK(count_of(log, "records=1 ") == kTenants);
  CHECK(count_of(log, "dropped=0") == kTenants);
  const auto first = first_positions(system.event_logs().back().path);
  CHECK(first.size() == kTenants);
  // The first step computes the row of the last token that arrived, and no other.
  const auto rebinds = system.recorded<events::Rebind>();
  for (const events::Rebind& rebind : rebinds) {
    CAPTURE(to_string(rebind.new_lease));
    CHECK(first.at(to_string(rebind.new_lease)) == rebind.prompt_tokens + rebind.emitted_tokens);
  }
  CHECK(rebinds.size() == kTenants);
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("a worker killed while it adopts memory leaves texts unchanged") {
  System system(kSpec);
  system.admit(spec_of(0).tenant);
  const auto alone = system.undisturbed(spec_of(0));
  const auto tenant = system.start_tenant(spec_of(0));
  REQUIRE(tenant->read_tokens(kReadBeforeKill));

  kill_and_restart(system, "worker.extents.mapped:kill");
  REQUIRE(eventually([&] { return has_exited(system.worker().pidfd()); }));
  system.remove_worker("w1");
  system.start_worker("w1");

  check_whole(*tenant, alone);
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("without a grace a killed worker's memory is scrubbed, and texts are computed again") {
  SystemSpec spec = kSpec;
  spec.broker_arguments = {"--adopt-grace-ms", "0"};
  System system(spec);
  system.admit(spec_of(0).tenant);
  const auto alone = system.undisturbed(spec_of(0));
  const auto tenant = system.start_tenant(spec_of(0));
  REQUIRE(tenant->read_tokens(kReadBeforeKill));

  kill_and_restart(system);

  check_whole(*tenant, alone);
  CHECK(count_of(system.worker_log(), "memory adopted") == 0);
  const auto first = first_positions(system.event_logs().back().path);
  REQUIRE(first.size() == 1);
  CHECK(first.begin()->second <= kBlock);
}

TEST_CASE("adoption: a worker killed at any point of a commit or an unmap costs no text a token") {
  const auto alone = System::alone(spec_of(0));
  for (const char* fault :
       {"worker.commit.before_record:kill:50", "worker.commit.before_record:kill:51",
        "worker.commit.after_record:kill:50", "worker.commit.after_record:kill:51",
        "worker.unit.polled:kill:9000", "worker.unit.polled:kill:9007",
        "worker.unit.polled:kill:9013", "worker.extents.unmapped:kill"})
    check_text_over_death(fault, alone);
}

TEST_CASE("adoption: after the grace the memory is zero, and its text is computed again") {
  SystemSpec spec = kSpec;
  spec.broker_arguments = {"--adopt-grace-ms", "300"};
  System system(spec);
  system.admit(spec_of(0).tenant);
  const auto alone = system.undisturbed(spec_of(0));
  const auto tenant = system.start_streaming(spec_of(0), kReadBeforeKill);
  const auto kept = runner::open_extents(system.view(), tenant->record().leases.back());
  REQUIRE(kept);
  REQUIRE(runner::sum({kept->front().before}).nonzero_bytes > 0);

  REQUIRE(system.worker().signal(SIGKILL));
  REQUIRE(eventually([&] { return has_exited(system.worker().pidfd()); }));
  REQUIRE(eventually([&] { return all_zero_and_free(*kept); }));
  CHECK(system.status().retained_bytes == 0);
  start_successor(system);

  check_whole(*tenant, alone);
  CHECK(count_of(system.worker_log(), "memory adopted") == 0);
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("adoption: a successor with another arithmetic adopts nothing, and never unnoticed") {
  const bool is_allowed = GENERATE(false, true);
  CAPTURE(is_allowed);
  System system(kSpec);
  system.admit(spec_of(0).tenant);
  const auto alone = system.undisturbed(spec_of(0));
  TenantSpec spec = spec_of(0);
  if (is_allowed) spec.more.push_back("--any-arithmetic");
  const auto tenant = system.start_streaming(spec, kReadBeforeKill);

  REQUIRE(system.worker().signal(SIGKILL));
  start_successor(system, {}, {"--arithmetic", "f32"});

  const int code = tenant->finish();
  const runner::TenantRecord& record = tenant->record();
  CHECK(count_of(system.worker_log(), "memory adopted") == 0);
  if (is_allowed) {
    CHECK(code == 0);
    CHECK(record.tokens.size() == spec.max_tokens);
    const auto rebound = std::ranges::find(record.reported, "rebound", &runner::TenantEvent::event);
    REQUIRE(rebound != record.reported.end());
    CHECK(rebound->other_arithmetic == "f32");
  } else {
    CHECK(code == exit_code(Errc::UnknownWorker));
    CHECK(is_prefix(record.tokens, alone));
    CHECK(record.failed.value_or("").contains("--any-arithmetic"));
  }
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("adoption: a successor with another type of KV cache adopts nothing, never unnoticed") {
  const bool is_allowed = GENERATE(false, true);
  const std::string type = GENERATE("f32", "q8_0");
  CAPTURE(is_allowed, type);
  SystemSpec wide = kSpec;
  wide.start_worker = false;
  wide.model_name = "wide.gguf";  // the heads of the bundled model are too narrow for q8_0
  System system(wide);
  std::filesystem::copy_file(test_data_path("models/kq-llama-q4_k_m.gguf"),
                             system.directory() / wide.model_name);
  system.start_worker("w1");
  system.admit(spec_of(0).tenant);
  TenantSpec spec = spec_of(0);
  if (is_allowed) spec.more.push_back("--any-arithmetic");
  const auto tenant = system.start_streaming(spec, kBlock + 1);

  REQUIRE(system.worker().signal(SIGKILL));
  start_successor(system, {}, {"--kv-type", type});

  const int code = tenant->finish();
  const runner::TenantRecord& record = tenant->record();
  CHECK(count_of(system.worker_log(), "memory adopted") == 0);
  if (is_allowed) {
    CHECK(code == 0);
    const auto rebound = std::ranges::find(record.reported, "rebound", &runner::TenantEvent::event);
    REQUIRE(rebound != record.reported.end());
    CHECK(rebound->other_arithmetic == "int8+" + type);
  } else {
    CHECK(code == exit_code(Errc::UnknownWorker));
    CHECK(record.failed.value_or("").contains("--any-arithmetic"));
  }
  CHECK(system.pool_is_fully_free());
}

}  // namespace leasehold::testing::adoption
