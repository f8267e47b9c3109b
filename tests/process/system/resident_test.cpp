/// Memory of a worker: the weights in the format of the file, shared by all workers,
/// and little else.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/process/tools/program_run.hpp"
#include "tests/support/system.hpp"
#include "tools/make_model/write_model.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kSequences = 2;

/// The number after `field` in a /proc file with lines "Field: number".
std::uint64_t field(pid_t pid, const std::string& file, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/" + file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1));
  FAIL("no " << field << " in " << file);
  return 0;
}

std::uint64_t resident_bytes(pid_t pid) {
  return field(pid, "status", "VmRSS") * 1024;
}

/// 94 MB in Q4_0, 670 MB in floats. Even a second copy in Q4_0 exceeds what a
/// worker may use besides the weights. Half of it is a vocabulary of common size.
make_model::ModelRequest wide_vocabulary() {
  return {.shape = {.layers = 5,
                    .embd = 768,
                    .heads = 12,
                    .kv_heads = 4,
                    .ffn = 3072,
                    .vocab = 151'936,
                    .context = 4096,
                    .tied = true},
          .type = TensorType::Q4_0,
          .seed = 5,
          .parts = 3};
}

/// Runs a worker that may lock so much, also if it is root's, until it ends.
std::pair<int, std::string> run_with_lock_limit(std::uint64_t bytes,
                                                const std::vector<std::string>& arguments) {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  const rlimit lower{.rlim_cur = bytes, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &lower) == 0);
  std::pair<int, std::string> ended;
  // A thread of its own, which cannot get the privilege back.
  std::thread([&] {
    (void)::prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
    ProgramRun run("leasehold-worker", arguments);
    ended.first = run.finish([] {});
    ended.second = run.errors();
  }).join();
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &before) == 0);
  return ended;
}

}  // namespace

TEST_CASE(
    "resident: a worker holds the weights as they are in the file, and "
    "the next one shares") {
  const auto request = wide_vocabulary();
  System system(
      {.worker_arguments = {}, .start_worker = false, .model_name = "m-00002-of-00003.gguf"});
  const auto written =
      make_model::write_model(request, system.directory() / "m.gguf", [](auto, auto) {});
  REQUIRE(written.has_value());
  const std::uint64_t file_bytes = *written;
  REQUIRE(file_bytes > 67 * kMiB);

  system.start_ready_worker("w1");
  CHECK(field(system.worker("w1").pid(), "io", "rchar") > file_bytes * 9 / 10);
  for (const char* tenant : {"ann", "bob"}) system.admit(tenant);
  const auto first = system.start_tenant({.tenant = "ann", .max_tokens = 6});
  const auto second = system.start_tenant({.tenant = "bob", .max_tokens = 6});
  CHECK(first->finish() == 0);
  CHECK(second->finish() == 0);
  CHECK(first->record().tokens == second->record().tokens);

  const std::uint64_t allowed = file_bytes + file_bytes * 3 / 100 + 64 * kMiB;
  const std::uint64_t resident = resident_bytes(system.worker("w1").pid());
  INFO("file " << file_bytes << " resident " << resident);
  CHECK(resident <= allowed + kSequences * 4 * kMiB);

  // Metadata is read through a mapping, so read() counts only loaded weights and the digest of the
  // file.
  system.start_ready_worker("w2");
  CHECK(field(system.worker("w2").pid(), "io", "rchar") < file_bytes + 4 * kMiB);
  CHECK(resident_bytes(system.worker("w2").pid()) <= allowed);
}

TEST_CASE(
    "resident: with --mlock the weights are locked, also after they return under a new lease") {
  System system;
  system.start_ready_worker("w2", {}, {"--mlock"});
  const auto locked_kib = [&](const std::string& worker) {
    return field(system.worker(worker).pid(), "status", "VmLck");
  };
  const std::uint64_t before = locked_kib("w2");
  CHECK(before >= locked_kib("w1") + 1024);  // the bundled model has 1.1 MiB

  const std::string part = system.engine_leases().front().part;
  CHECK(system.brokerctl({"revoke", "--part", part, "--worker", "w2", "--wait"}) == 0);
  system.admit("ann");
  const auto tenant =
      system.start_tenant({.tenant = "ann", .max_tokens = 6, .more = {"--worker", "w2"}});
  CHECK(tenant->finish() == 0);
  CHECK(locked_kib("w2") == before);
}

TEST_CASE("resident: with --mlock the draft model counts before anything is loaded") {
  System system({.start_worker = false});
  const std::string draft = system.directory() / "draft.gguf";
  std::filesystem::copy_file(bundled_model_path(), draft);
  const auto [code, error] = run_with_lock_limit(  // each has 1.1 MiB
      2 * kMiB,
      {"--broker", system.broker_socket(), "--model", bundled_model_path(), "--listen",
       system.directory() / "refused.sock", "--mlock", "--speculate", "4", "--draft-model", draft});
  CHECK(code == exit_code(Errc::BadRequest));
  CHECK_THAT(error, Catch::Contains("RLIMIT_MEMLOCK is 2097152 bytes"));
  CHECK_THAT(error, !Catch::Contains("weights bound"));
}

}  // namespace leasehold::testing
