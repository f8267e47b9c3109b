/// `brokerctl plan`, compared with what a worker leases for the longest request of a model.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/process/tools/program_run.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kPlannedContext = 512;
constexpr std::uint32_t kLastTokens = 12;  // of the request, after its prompt

/// The request fills the context. It runs under a lease of its own, which is live until the object
/// is destroyed.
class LongestRequest {
 public:
  LongestRequest(System& system, const std::string& tenant, std::uint64_t max_blocks)
      : system_(&system), tenant_(tenant) {
    system.admit(tenant, {"--max-blocks", std::to_string(max_blocks)});
    auto broker = control::Client::connect(system.broker_socket()).value();
    lease_ = acquire(broker, tenant);
    broker_.emplace(std::move(broker));
    peer_ = connect_peer(io_, lease_,
                         [this](const std::string& method, const control::Payload& params) {
                           if (method == wire::RequestCompleted::kMethod)
                             end_ = wire::RequestCompleted::from_json(params.body).value().reason;
                         });
  }

  /// Returns how it ended, or the code of its refusal.
  std::string run() {
    wire::RequestSubmit ask{.token = lease_.token,
                            .request_id = {"r"},
                            .prompt_tokens = std::vector<std::int32_t>(),
                            .max_emitted_tokens = kLastTokens,
                            .ignore_eos = true};
    for (std::uint32_t i = 0; i + kLastTokens < kPlannedContext; ++i)
      ask.prompt_tokens->push_back(static_cast<std::int32_t>(20 + i % 200));
    peer_->call("request.submit", {ask.to_json(), {}}, [this](const auto& reply) {
      if (!reply) end_ = name(reply.error().code);
    });
    while (end_.empty()) REQUIRE(io_.run_one_for(std::chrono::seconds(60)) > 0);
    return end_;
  }
  wire::LeaseView lease() { return system_->lease(lease_.lease); }

 private:
  System* system_;
  std::string tenant_;
  boost::asio::io_context io_;
  wire::LeaseAcquired lease_;
  std::optional<control::Client> broker_;  // holds the lease
  std::shared_ptr<control::Peer> peer_;
  std::string end_;
};

nlohmann::json planned(const std::string& model, std::uint32_t tenants) {
  const ProgramEnd end = run_to_end(
      "brokerctl", {"plan", "--model", model, "--context", std::to_string(kPlannedContext),
                    "--tenants", std::to_string(tenants), "-o", "json"});
  INFO(end.errors);
  REQUIRE(end.exit_code == 0);
  return nlohmann::json::parse(end.output);
}

Family with_context(std::string_view family_name) {
  Family family = family_named(family_name);
  family.context = kPlannedContext;
  return family;
}

}  // namespace

TEST_CASE("plan: a worker leases what it says, with windows, states and latent keys") {
  static const GeneratedModel kLatent(with_context("deepseek2"));
  const std::string model =
      GENERATE_COPY(as<std::string>(), test_data_path("models-2026/tiny-gemma3-f32.gguf"),
                    test_data_path("models-2026/tiny-gpt-oss-f32.gguf"),
                    test_data_path("models-2026/tiny-qwen35-f32.gguf"),
                    test_data_path("models-2026/tiny-lfm2-f32.gguf"), kLatent.path());
  REQUIRE_FALSE(model.empty());
  CAPTURE(model);
  const nlohmann::json plan = planned(model, 2);
  const std::uint64_t blocks = plan["blocks_per_tenant"];
  System system({.capacity = std::to_string(plan["capacity_bytes"].get<std::uint64_t>()),
                 .worker_arguments = {"--max-context", std::to_string(kPlannedContext)},
                 .start_worker = false});
  system.start_ready_worker_on(model, "w1");
  CHECK(system.status().capacity_bytes == plan["capacity_bytes"]);
  const auto engine_leases = system.engine_leases();
  CHECK(std::accumulate(engine_leases.begin(), engine_leases.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const wire::LeaseView& lease) {
                          return sum + lease.size_bytes;
                        }) == plan["weights_bytes"]);
  CHECK_THAT(system.worker_log(),
             Catch::Contains(fmt::format(
                 "block_size_bytes={} blocks_per_extent={} ", plan["block_bytes"].get<int>(),
                 plan["extent_bytes"].get<std::uint64_t>() / plan["block_bytes"].get<int>())));

  LongestRequest fits(system, "ann", blocks);
  CHECK(fits.run() == "MaxTokensReached");
  CHECK(fits.lease().extents == plan["extents_per_tenant"]);
  CHECK(fits.lease().size_bytes == plan["extents_per_tenant"].get<std::uint64_t>() *
                                       plan["extent_bytes"].get<std::uint64_t>());
  LongestRequest lacks_a_block(system, "bob", blocks - 1);
  CHECK(lacks_a_block.run() == name(Errc::QuotaBlocks));
}

}  // namespace leasehold::testing
