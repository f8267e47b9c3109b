#include "broker/server/lent_device.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/device_name.hpp"

namespace leasehold {
namespace {

std::string card_of(const BrokerOptions& options) {
  return options.device == "auto" ? "cuda:0" : options.device;
}

/// Leases are granted by the books, long before their memory is allocated. Weights are asked for by
/// name and refused one by one, so room for them is only warned about.
Result<void> check_capacity(const BrokerOptions& options, const std::string& card,
                            std::uint64_t total_bytes) {
  if (options.capacity_bytes > total_bytes) {
    return fail(Errc::BadRequest,
                fmt::format("--capacity {} is more than {} has: {} bytes; its weights and kernels "
                            "need some of them, too",
                            options.capacity_bytes, card, total_bytes));
  }
  if (options.weights_capacity_bytes > total_bytes - options.capacity_bytes) {
    spdlog::warn(
        "capacity and weights capacity are together more than the card has, so both cannot be "
        "used up capacity_bytes={} weights_capacity_bytes={} total_bytes={}",
        options.capacity_bytes, options.weights_capacity_bytes, total_bytes);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DeviceAgentLink>> start_agent(boost::asio::io_context& io,
                                                 const BrokerOptions& options) {
  if (options.device == "cpu") return nullptr;
  const int ordinal = cuda_ordinal(card_of(options)).value();  // options checked it
  auto agent = DeviceAgentLink::start(io, {.program = options.agent, .ordinal = ordinal});
  if (agent || options.device != "auto") return agent;
  spdlog::info("no card is used, lending memory of the machine reason=\"{}\"",
               agent.error().detail);
  return nullptr;
}

Result<LentDevice> lent_device(const BrokerOptions& options, const DeviceAgentLink* agent) {
  if (agent == nullptr) return LentDevice{};
  const std::string name = card_of(options);
  TRY(check_capacity(options, name, agent->card().total_bytes));
  spdlog::info("lending memory of a card device={} uuid={} name=\"{}\" agent_pid={}", name,
               agent->card().uuid, agent->card().name, agent->pid());
  return LentDevice{.name = name, .uuid = agent->card().uuid};
}

}  // namespace leasehold
