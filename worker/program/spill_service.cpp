#include "worker/program/spill_service.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace leasehold {
namespace {

constexpr Duration kOpenTimeout = std::chrono::seconds(10);

}  // namespace

std::unique_ptr<SpillService> SpillService::take(BrokerLink& broker, Engine& engine,
                                                 std::function<void()> on_answer) {
  auto spill = open(broker, engine.kv_block_size_bytes(), std::move(on_answer));
  if (!spill) {
    spdlog::warn("nothing is spilled error={} reason=\"{}\"", name(spill.error().code),
                 spill.error().detail);
    return nullptr;
  }
  if (*spill == nullptr) return nullptr;
  engine.lend_spill(*(*spill)->store_, (*spill)->thread_);
  spdlog::info("spill file lent blocks={}", (*spill)->store_->slot_count());
  return *std::move(spill);
}

Result<std::unique_ptr<SpillService>> SpillService::open(BrokerLink& broker,
                                                         std::uint64_t block_size_bytes,
                                                         std::function<void()> on_answer) {
  control::Payload reply = TRY(broker.call(std::string(wire::SpillOpened::kOpen),
                                           {.body = wire::Empty{}.to_json()}, kOpenTimeout));
  const wire::SpillOpened opened = TRY(wire::SpillOpened::from_json(reply.body));
  if (opened.size_bytes == 0) return nullptr;
  if (reply.fds.size() != 1) {
    return fail(Errc::UntrustedSegment,
                fmt::format("the answer to spill.open has {} descriptors, 1 is expected",
                            reply.fds.size()));
  }
  SpillFile file = TRY(SpillFile::adopt(std::move(reply.fds[0]), opened.size_bytes));
  std::shared_ptr<SpillStore> store = TRY(SpillStore::create(std::move(file), block_size_bytes));
  return std::unique_ptr<SpillService>(new SpillService(store, std::move(on_answer)));
}

}  // namespace leasehold
