#include "broker/server/lent_device.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "common/machine/available_memory.hpp"
#include "common/machine/device_name.hpp"

namespace leasehold {
namespace {

std::string card_of(const BrokerOptions& options) {
  return options.device == "auto" ? "cuda:0" : options.device;
}

/// Checks the capacities against the memory of the machine or its control group: a worker that
/// touches memory beyond it would be killed. Swap uses memory of the machine even if a card's
/// memory is lent. Weights need not fill their capacity, so if only the sum with weights is too
/// large, that is just a warning.
Result<void> check_host_memory(const BrokerOptions& options, bool lends_card) {
  const MachineMemory memory = TRY(machine_memory());
  TRY(check_fits_machine("--swap-capacity", options.swap_capacity_bytes, memory));
  if (lends_card) return {};
  const std::uint64_t kv_bytes = options.capacity_bytes + options.swap_capacity_bytes;
  TRY(check_fits_machine("--capacity", options.capacity_bytes, memory));
  TRY(check_fits_machine("--capacity plus --swap-capacity", kv_bytes, memory));
  TRY(check_fits_machine("--weights-capacity", options.weights_capacity_bytes, memory));
  if (!memory.limit_file.empty() &&
      options.weights_capacity_bytes > memory.total_bytes - kv_bytes) {
    spdlog::warn(
        "capacity, swap capacity and weights capacity exceed the memory of the control group; when "
        "they are used, the kernel ends its processes capacity_bytes={} swap_capacity_bytes={} "
        "weights_capacity_bytes={} limit_bytes={} limit_file={}",
        options.capacity_bytes, options.swap_capacity_bytes, options.weights_capacity_bytes,
        memory.total_bytes, memory.limit_file);
  }
  return {};
}

/// Leases are granted before their memory is allocated, so a capacity beyond the card's memory is
/// an error. Each weights region is allocated when it is opened and can be refused then, so too
/// little room for weights is only a warning.
Result<void> check_capacity(const BrokerOptions& options, const std::string& card,
                            std::uint64_t total_bytes) {
  if (options.capacity_bytes > total_bytes) {
    return fail(Errc::BadRequest,
                fmt::format("--capacity {} exceeds the {} bytes of {}; choose less, and leave room "
                            "for weights and kernels",
                            options.capacity_bytes, total_bytes, card));
  }
  if (options.weights_capacity_bytes > total_bytes - options.capacity_bytes) {
    spdlog::warn(
        "capacity plus weights capacity exceeds the card's memory capacity_bytes={} "
        "weights_capacity_bytes={} total_bytes={}",
        options.capacity_bytes, options.weights_capacity_bytes, total_bytes);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DeviceAgentLink>> start_agent(boost::asio::io_context& io,
                                                     const BrokerOptions& options) {
  if (options.device == "cpu") return nullptr;
  const int ordinal = cuda_ordinal(card_of(options)).value();  // parse_options validated it
  auto agent = DeviceAgentLink::start(io, {.program = options.agent, .ordinal = ordinal});
  if (agent || options.device != "auto") return agent;
  spdlog::info("lending host memory because no card can be used reason=\"{}\"",
               agent.error().detail);
  return nullptr;
}

Result<LentDevice> lent_device(const BrokerOptions& options, const DeviceAgentLink* agent) {
  if (agent == nullptr) {
    TRY(check_host_memory(options, false));
    return LentDevice{};
  }
  const std::string name = card_of(options);
  TRY(check_host_memory(options, true));
  TRY(check_capacity(options, name, agent->card().total_bytes));
  spdlog::info("lending device memory device={} uuid={} name=\"{}\" agent_pid={}", name,
               agent->card().uuid, agent->card().name, agent->pid());
  return LentDevice{.name = name, .uuid = agent->card().uuid};
}

}  // namespace leasehold
