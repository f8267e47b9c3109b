#include "worker/program/restore_weights.hpp"

#include <spdlog/spdlog.h>

namespace leasehold {
namespace {

Result<void> restore_part(Engine& engine, WeightsSource& source, const BrokerSession& broker) {
  if (broker.is_disconnected()) {
    return fail(Errc::BrokerLost,
                "the weights were revoked and the broker is disconnected; retry once it is back");
  }
  const auto restored = TRY(source.restore(engine.weights()));
  if (!restored) return {};
  engine.prepare_steps();
  spdlog::info("weights restored part={}", restored->part);
  if (!restored->from_copy) return {};
  spdlog::info("the model file was replaced by a copy since this worker started part={}",
               restored->part);
  return {};
}

}  // namespace

Result<void> restore_weights(Engine& engine, WeightsSource& source, const BrokerSession& broker,
                             RestoreLog& log) {
  const Result<void> restored = restore_part(engine, source, broker);
  log.note(restored);
  return restored;
}

}  // namespace leasehold
