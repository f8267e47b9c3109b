/// Restores a revoked part of the weights under a new lease, and logs it.
#pragma once

#include "worker/engine/engine.hpp"
#include "worker/lease/broker_session.hpp"
#include "worker/lease/weights_source.hpp"
#include "worker/load_progress.hpp"

namespace leasehold {

/// Restores the first revoked part. Blocks. Errors: BrokerLost while the broker is disconnected;
/// those of WeightsSource::restore. Threads: the engine's, between steps.
Result<void> restore_weights(Engine& engine, WeightsSource& source, const BrokerSession& broker,
                             RestoreLog& log);

}  // namespace leasehold
