/// Precompiled for all other rooms: Asio, JSON and logging.
#pragma once

#include <spdlog/spdlog.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include "tools/cmake/external/standard.hpp"

// json.cpp instantiates these classes once.
#define LEASEHOLD_JSON_TEMPLATE extern template
#include "tools/cmake/external/json_templates.hpp"
#undef LEASEHOLD_JSON_TEMPLATE
