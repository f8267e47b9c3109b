/// The system tests of the CPU, repeated over a card: broker, device agent, worker and tenants.
///
/// The card is a fake whose kernels run on the CPU (tests/support/fake_cuda).
#include <signal.h>
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/machine/process.hpp"
#include "tests/support/fake_cuda/card_state.hpp"
#include "tests/support/lease_streams.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kAnn{.tenant = "ann", .prompt = "Once upon a time", .max_tokens = 24};
const TenantSpec kBob{.tenant = "bob", .prompt = "The little fox", .max_tokens = 24};
const TenantSpec kCat{.tenant = "cat", .prompt = "One morning", .max_tokens = 160};

/// All processes of this test share the card; the fake driver reads its path once per process.
void use_shared_card() {
  static const CardState card;
  ::setenv("FAKE_CUDA_STATE", card.path().c_str(), 1);
}

SystemSpec on_card(std::vector<std::string> worker_arguments = {}) {
  use_shared_card();
  return {.broker_arguments = {"--device", "cuda:0"},
          .worker_arguments = std::move(worker_arguments)};
}

/// The heads of the bundled model are too narrow for q8_0.
SystemSpec with_wide_heads(SystemSpec spec) {
  spec.start_worker = false;
  spec.model_name = "wide.gguf";
  return spec;
}
void start_with_wide_heads(System& system) {
  std::filesystem::copy_file(test_data_path("models/kq-llama-q4_k_m.gguf"),
                             system.directory() / "wide.gguf");
  system.start_ready_worker("w1");
}

void admit_all(System& system) {
  for (const char* tenant : {"ann", "bob", "cat"}) system.admit(tenant);
}

bool no_memory_lent(System& system) {
  const wire::StatusView status = system.status();
  return status.owned_bytes == 0 && status.free_bytes + status.held_bytes == status.capacity_bytes;
}

}  // namespace

TEST_CASE(
    "on a card: a tenant revoked mid-decode ends with a typed error and the others' texts are "
    "unchanged") {
  const std::string graphs = GENERATE("gated", "none");
  System system(on_card({"--graphs", graphs}));
  CAPTURE(graphs);
  admit_all(system);
  CHECK(system.status().device == "cuda:0");
  CHECK(system.view().workers().value().at(0).arithmetic == "int8");
  const auto ann_alone = system.undisturbed(kAnn);
  const auto bob_alone = system.undisturbed(kBob);
  const auto cat = system.start_tenant(kCat);
  const auto ann = system.start_tenant(kAnn);
  const auto bob = system.start_tenant(kBob);
  REQUIRE(cat->read_tokens(5));
  const LeaseId lease = cat->record().leases.back();

  REQUIRE(system.brokerctl({"revoke", to_string(lease)}) == 0);

  REQUIRE(system.eventually_fenced(lease));
  CHECK(system.lease(lease).proof == "WorkerAck");
  CHECK(cat->finish() == exit_code(Errc::LeaseRevoked));
  CHECK(cat->record().tokens.size() < kCat.max_tokens);
  check_whole(*ann, ann_alone);
  check_whole(*bob, bob_alone);
  CHECK(eventually([&] { return no_memory_lent(system); }));
}

TEST_CASE("on a card: a revoked tenant rebinds and its text is unchanged") {
  System system(on_card());
  admit_all(system);
  TenantSpec spec = kCat;
  spec.max_tokens = 40;
  const auto alone = system.undisturbed(spec);
  spec.rebind = true;
  const auto cat = system.start_streaming(spec, 10);

  system.revoke_mid_request("cat");

  check_whole(*cat, alone);
  CHECK(cat->record().leases.size() == 2);
  CHECK_FALSE(has_exited(system.worker().pidfd()));
}

TEST_CASE("on a card: weights revoked mid-decode are leased again and every text is unchanged") {
  System system(on_card());
  admit_all(system);
  const auto ann_alone = system.undisturbed(kAnn);
  const auto ann = system.start_streaming(kAnn, 8);
  const auto engine = system.engine_leases();
  REQUIRE(engine.size() == 1);

  system.revoke_mid_request(engine.front().lease);

  REQUIRE(system.eventually_fenced(engine.front().lease));
  check_whole(*ann, ann_alone);
  CHECK(system.engine_leases().size() == 2);
}

TEST_CASE("on a card: all memory of a worker killed mid-decode is free for another worker") {
  System system(on_card());
  admit_all(system);
  const auto ann_alone = system.undisturbed(kAnn);
  const auto cat = system.start_streaming(kCat, 5);
  const LeaseId lease = cat->record().leases.back();

  REQUIRE(system.worker().signal(SIGKILL));

  REQUIRE(system.eventually_fenced(lease));
  CHECK(system.lease(lease).proof == "ProcessExit");
  CHECK(cat->finish() != 0);
  CHECK(eventually([&] { return system.status().free_bytes == system.status().capacity_bytes; }));
  system.start_ready_worker("w2");
  CHECK(system.undisturbed(kAnn) == ann_alone);
}

TEST_CASE("on a card: blocks move to host memory and back, unless the driver registers none") {
  constexpr std::uint32_t kRequests = 3;
  constexpr std::uint32_t kTokens = 100;  // 7 blocks and one for the record
  const bool registers = GENERATE(true, false);
  CAPTURE(registers);
  if (!registers) ::setenv("FAKE_CUDA_FAIL", "cuMemHostRegister", 1);
  SystemSpec spec = on_card();
  spec.broker_arguments.insert(spec.broker_arguments.end(), {"--swap-capacity", "64MiB"});
  System system(std::move(spec));
  ::unsetenv("FAKE_CUDA_FAIL");
  system.admit("calm", {"--ttl-ms", "600000"});
  system.admit("tight", {"--ttl-ms", "600000", "--max-blocks", "18"});
  LeaseStreams calm(system, "calm");
  LeaseStreams tight(system, "tight");
  for (std::uint32_t i = 0; i < kRequests; ++i) calm.submit(i, kTokens);
  calm.wait_for_ends(kRequests);
  REQUIRE(calm.preemptions == 0);

  for (std::uint32_t i = 0; i < kRequests; ++i) tight.submit(i, kTokens);
  tight.wait_for_ends(kRequests);

  CHECK(tight.preemptions > 0);
  CHECK((tight.swaps > 0) == registers);
  for (const auto& [number, end] : tight.ends) {
    CAPTURE(number);
    CHECK(end == "MaxTokensReached");
    CHECK((tight.tokens[number] == calm.tokens[number]));
  }
  const wire::SwapView swap = system.status().swap;
  CHECK((swap.owned_bytes > 0) == registers);
  REQUIRE(system.brokerctl({"revoke", to_string(tight.lease())}) == 0);
  REQUIRE(system.eventually_fenced(tight.lease()));
  CHECK(system.lease(tight.lease()).proof == "WorkerAck");
  CHECK(eventually([&] { return system.status().swap.free_bytes == swap.capacity_bytes; }));
  CHECK_FALSE(has_exited(system.worker().pidfd()));
}

TEST_CASE("on a card: a text in int8 goes on on a CPU and back, and every token is the same") {
  constexpr std::uint32_t kTokens = 40;
  const auto [kv_type, announced] =
      GENERATE(std::pair<std::string, std::string>{"f16", "int8"},
               std::pair<std::string, std::string>{"q8_0", "int8+q8_0"});
  CAPTURE(kv_type);
  System card(with_wide_heads(on_card({"--arithmetic", "int8", "--kv-type", kv_type})));
  System cpu(with_wide_heads(
      {.worker_arguments = {"--arithmetic", "int8", "--kv-type", kv_type, "--threads", "2"}}));
  for (System* system : {&card, &cpu}) {
    start_with_wide_heads(*system);
    admit_all(*system);
    CHECK(system->view().workers().value().at(0).arithmetic == announced);
  }
  using Tokens = std::vector<std::int32_t>;
  const auto text_on = [](System& system, std::uint32_t end, Tokens begun = {}) {
    LeaseStreams stream(system, "ann");
    stream.submit(7, end, begun);
    stream.wait_for_ends(1);
    CHECK(stream.ends.at("7") == "MaxTokensReached");
    const Tokens& rest = stream.tokens["7"];
    begun.insert(begun.end(), rest.begin(), rest.end());
    return begun;
  };
  const Tokens alone = text_on(cpu, kTokens);
  REQUIRE(alone.size() == kTokens);

  CHECK((text_on(card, kTokens) == alone));
  const Tokens begun = text_on(card, 13);
  const Tokens moved = text_on(cpu, 27, begun);
  const Tokens back = text_on(card, kTokens, moved);

  CHECK(begun.size() == 13);
  CHECK(moved.size() == 27);
  CHECK((back == alone));
}

TEST_CASE("on a CPU: a worker that requests halves fails with a hint") {
  System system({.start_worker = false});
  system.start_worker("w1", {}, {"--arithmetic", "f16"});
  CHECK(exit_status_of(system.worker()) == exit_code(Errc::BadRequest));
  CHECK(system.worker_log().find("--arithmetic f16 needs a card") != std::string::npos);
}

TEST_CASE("on a card: a worker that requests q8_0 for heads of 16 elements fails with a hint") {
  SystemSpec spec = on_card({"--kv-type", "q8_0"});
  spec.start_worker = false;
  System system(std::move(spec));
  system.start_worker("w1");
  CHECK(exit_status_of(system.worker()) == exit_code(Errc::BadRequest));
  CHECK(system.worker_log().find("use --kv-type f16") != std::string::npos);
}

TEST_CASE("on a card: a worker that requests the CPU fails with a hint") {
  struct RejectedOptions {
    std::vector<std::string> arguments;
    std::string hint;
  };
  const auto [arguments, hint] =
      GENERATE(RejectedOptions{{"--device", "cpu"}, "--device auto"},
               RejectedOptions{{"--backend", "cpu"}, "omit --backend"},
               RejectedOptions{{"--backend", "reference"}, "omit --backend"});
  CAPTURE(arguments);
  SystemSpec spec = on_card(arguments);
  spec.start_worker = false;
  System system(std::move(spec));
  system.start_worker("w1");
  CHECK(exit_status_of(system.worker()) == exit_code(Errc::BadRequest));
  CHECK(system.worker_log().find(hint) != std::string::npos);
}

}  // namespace leasehold::testing
