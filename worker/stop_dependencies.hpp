/// Connects a WorkerStop to the parts of the worker program.
#pragma once

#include "worker/http_part.hpp"
#include "worker/lease/broker_session.hpp"
#include "worker/serving.hpp"
#include "worker/worker_stop.hpp"

namespace leasehold {

/// `http` may be null. Lifetime: the arguments outlive the WorkerStop.
WorkerStop::Dependencies stop_dependencies(boost::asio::io_context& io, EngineLoop& loop,
                                           Serving& serving, BrokerSession& broker, HttpPart* http);

}  // namespace leasehold
